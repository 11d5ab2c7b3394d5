"""A round between houses over a folder: the same model as in one process, and none the worse for being killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from spinney.federation.seam import Message
from spinney.house.audit import Audit
from spinney.house.channel import RoundChannel
from spinney.house.rounds import CoordinatorSession, Over, SiteSession
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.spinney.house.houses import PATIENCE, SITES, World, small_cohorts, small_study


class Killed(BaseException):
    """Stands for SIGKILL: no handler runs."""


@pytest.fixture(scope="module")
def study() -> Study:
    return small_study()


@pytest.fixture(scope="module")
def cohorts(study: Study) -> dict[str, Cohort]:
    return small_cohorts(study)


@pytest.fixture
def world(tmp_path: Path, study: Study, cohorts: dict[str, Cohort]) -> World:
    return World(tmp_path, study, cohorts)


def test_a_round_over_a_folder_gives_the_model_of_the_simulation(world: World) -> None:
    coordinator, sites = world.coordinator(), {name: world.site(name) for name in SITES}
    night = {"coordinator": coordinator.run, **{name: partial(site.run, PATIENCE) for name, site in sites.items()}}
    over = world.night(night)["coordinator"]
    reference = simulate(world.study, world.cohorts)
    assert over == Over(reference.model_digest, "")
    for name, site in sites.items():
        assert site.outcome is not None
        assert site.outcome.model.digest == reference.outcomes[name].model.digest
    assert coordinator.left_out == {}


@pytest.mark.parametrize("algorithm", sorted({*ALGORITHMS} - {"dp-forest"}))  # its noise is never the same
def test_with_every_algorithm_a_house_that_is_killed_at_the_very_end_has_its_model_after_a_restart(
    tmp_path: Path, study: Study, cohorts: dict[str, Cohort], algorithm: str
) -> None:
    words = {**study.model_dump(mode="json"), "algorithm": {"name": algorithm}}
    world = World(tmp_path, Study.model_validate(words), cohorts)
    over = world.night({"coordinator": world.coordinator().run, **world.honest(*SITES)})["coordinator"]
    reference = simulate(world.study, cohorts)
    assert over == Over(reference.model_digest, "")
    for name in SITES:
        again = world.site(name)
        again.run(PATIENCE)
        assert again.outcome is not None
        assert again.outcome.model.digest == reference.outcomes[name].model.digest


@pytest.mark.parametrize("mode", ["masked", "ring", "trusted-third-party"])
def test_a_round_that_fills_with_federated_means_gives_the_model_of_the_simulation(
    tmp_path: Path, study: Study, cohorts: dict[str, Cohort], mode: str
) -> None:
    filling = Study.model_validate(
        {**study.model_dump(mode="json"), "imputation": "federated-means", "privacy": {"secure_sum": mode}}
    )
    gappy = {}
    for seed, (name, cohort) in enumerate(cohorts.items()):
        X = cohort.X.copy()
        X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
        gappy[name] = replace(cohort, X=X)
    world = World(tmp_path, filling, gappy)
    sites = {name: world.site(name) for name in SITES}
    night = {"coordinator": world.coordinator().run}
    over = world.night(night | {name: partial(site.run, PATIENCE) for name, site in sites.items()})["coordinator"]
    reference = simulate(filling, gappy)
    assert over == Over(reference.model_digest, "")
    for name in SITES:
        again = world.site(name)  # a house that was killed at the very end does its last step again
        again.run(PATIENCE)
        for outcome in (sites[name].outcome, again.outcome):
            assert outcome is not None
            assert outcome.model.digest == reference.outcomes[name].model.digest


def test_the_coordinator_s_log_says_what_came_in_the_words_of_the_house_that_sent_it(world: World) -> None:
    world.night({"coordinator": world.coordinator().run, **world.honest(*SITES)})
    came = {line.entry.digest: line.entry for line in world.audit("coordinator").lines()}
    for name in SITES:
        lines = [line.entry for line in world.audit(name).lines()]
        sent = [one for one in lines if one.direction == "sent" and one.peer == "coordinator"]
        assert [came[one.digest].words for one in sent] == [
            one.words.replace("Sent to coordinator", f"Received from {name}") for one in sent
        ]


def test_what_was_sent_and_received_is_in_every_house_s_log(world: World) -> None:
    night = {"coordinator": world.coordinator().run}
    night |= {name: partial(world.site(name).run, PATIENCE) for name in SITES}
    world.night(night)
    for name in ("coordinator", *SITES):
        audit = Audit(world.home(name) / "audit.jsonl")
        audit.verify()
        kinds = {(line.entry.direction, line.entry.kind) for line in audit.lines()}
        assert ("sent", "MaskedCounts") in kinds or name == "coordinator"
        assert not [line for line in audit.lines() if line.entry.direction == "refused"]


@pytest.mark.parametrize("step", ["join", "grow", "check", "score", "sign", "release", "finish"])
def test_a_site_killed_in_a_step_goes_on_where_it_was(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[str] = []
    publish = RoundChannel.publish

    def fragile(self: RoundChannel, name: str, *arguments: object) -> None:
        if self.me == "birch" and name == step and not killed:
            killed.append(step)
            raise Killed
        publish(self, name, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(RoundChannel, "publish", fragile)

    def stubborn() -> SiteSession:
        site = world.site("birch")
        try:
            site.run(PATIENCE)
        except Killed:
            site = world.site("birch")
            site.run(PATIENCE)
        return site

    night: dict[str, Callable[[], object]] = {"coordinator": world.coordinator().run, "birch": stubborn}
    night |= {name: partial(world.site(name).run, PATIENCE) for name in ("ash", "cedar")}
    results = world.night(night)
    reference = simulate(world.study, world.cohorts)
    assert killed == [step]
    assert results["coordinator"] == Over(reference.model_digest, "")
    birch = results["birch"]
    assert isinstance(birch, SiteSession)
    assert birch.outcome is not None
    assert birch.outcome.model.digest == reference.outcomes["birch"].model.digest


@pytest.mark.parametrize("asked", range(1, 8))
def test_a_coordinator_killed_after_any_ask_goes_on_where_it_was(
    world: World, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = CoordinatorSession._replies
    killed: list[int] = []

    def fragile(self: CoordinatorSession, *arguments: object) -> dict[str, Message]:
        if self._asked == asked and not killed:
            killed.append(asked)
            raise Killed
        return replies(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(CoordinatorSession, "_replies", fragile)

    def stubborn() -> Over:
        try:
            return world.coordinator().run()
        except Killed:
            return world.coordinator().run()

    night: dict[str, Callable[[], object]] = {"coordinator": stubborn}
    night |= {name: partial(world.site(name).run, PATIENCE) for name in SITES}
    assert world.night(night)["coordinator"] == Over(simulate(world.study, world.cohorts).model_digest, "")
    assert killed == [asked]


def test_a_finished_round_run_again_does_nothing_but_show_its_result(world: World) -> None:
    night: dict[str, Callable[[], object]] = {"coordinator": world.coordinator().run}
    night |= {name: partial(world.site(name).run, PATIENCE) for name in SITES}
    first = world.night(night)["coordinator"]
    before = sorted((world.folder / "exchange").rglob("*.*"))
    assert world.coordinator().run() == first
    assert sorted((world.folder / "exchange").rglob("*.*")) == before


def test_a_site_that_never_answers_is_named_and_voids_only_what_can_not_go_on(world: World) -> None:
    coordinator = world.coordinator(timedelta(seconds=3))
    night: dict[str, Callable[[], object]] = {"coordinator": coordinator.run}
    night |= {name: partial(world.site(name).run, PATIENCE) for name in ("ash", "cedar")}
    over = world.night(night)["coordinator"]
    assert isinstance(over, Over)
    assert over.model == ""
    assert "2 sites are left" in over.void
    assert coordinator.left_out == {"birch": "no answer to join in time"}


def test_an_answer_that_says_too_much_is_refused_at_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    site, coordinator = world.site("cedar"), world.coordinator()
    answer = site._part.answer
    monkeypatch.setattr(site._part, "answer", lambda step, order: _exact_rows(answer(step, order)))
    night: dict[str, Callable[[], object]] = {"coordinator": coordinator.run, "cedar": lambda: site.run(PATIENCE)}
    night |= {name: partial(world.site(name).run, PATIENCE) for name in ("ash", "birch")}
    world.night(night)
    assert coordinator.left_out == {"cedar": "a message breaks the rule: rows are rounded"}
    refused = [line.entry for line in Audit(world.home("cedar") / "audit.jsonl").lines()]
    assert "a message breaks the rule: rows are rounded" in {entry.words for entry in refused}


def _exact_rows(message: object) -> object:
    if type(message).__name__ == "Description":
        return type(message)(**{**message.__dict__, "rows": 123})
    return message


def test_a_round_key_that_is_none_costs_its_owner_and_not_its_peers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, coordinator = world.site("cedar"), world.coordinator()
    answer = site._part.answer
    monkeypatch.setattr(site._part, "answer", lambda step, order: _no_key(answer(step, order)))
    night: dict[str, Callable[[], object]] = {"coordinator": coordinator.run, "cedar": lambda: site.run(PATIENCE)}
    night |= {name: partial(world.site(name).run, PATIENCE) for name in ("ash", "birch")}
    world.night(night)
    assert list(coordinator.left_out) == ["cedar"]
    assert "no proper X25519 key" in coordinator.left_out["cedar"]


def _no_key(message: object) -> object:
    if type(message).__name__ == "Description":
        return type(message)(**{**message.__dict__, "key": bytes(32)})
    return message
