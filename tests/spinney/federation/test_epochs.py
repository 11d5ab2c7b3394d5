"""What is told about patients is told when an epoch opens; the nights after use it again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spinney.errors import Refused, RoundVoid
from spinney.federation.epochs import open_epoch, resume_epoch
from spinney.federation.messages import GrowOrder, Invitation, LendOrder, ResumeOrder, Weights
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort
from spinney.study.study import Study
from spinney.trial.simulate import Simulation, simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study

LATER = 3


@pytest.fixture(scope="module")
def wood() -> Study:
    return study()


@pytest.fixture(scope="module")
def people(wood: Study) -> dict[str, Cohort]:
    return cohorts(wood)


@pytest.fixture(scope="module")
def opening(wood: Study, people: dict[str, Cohort]) -> Simulation:
    return simulate(wood, people)


def tonight(wood: Study) -> dict[str, Cohort]:
    """Other patients than when the epoch opened."""
    return {name: cohort(wood, 170, 40 + seed) for seed, name in enumerate(SITES)}


def resumed(wood: Study, people: dict[str, Cohort], opening: Simulation, **kwargs: Any) -> Wood:
    """A night after, of which a test sees every message."""
    night = Wood(wood, people, round=LATER, **kwargs)
    for name, house in night.houses.items():
        house.epoch = opening.epoch
        house.memory.update(opening.kept.get(name, {}))
    return night


def go_on(night: Wood, opening: Simulation) -> str:
    assert opening.release is not None
    return resume_epoch(night, ALGORITHMS[night.study.algorithm.name], opening.epoch, opening.release)


def test_on_a_night_after_the_opening_nothing_is_asked_but_who_is_there_and_what_they_choose(
    wood: Study, opening: Simulation
) -> None:
    night = resumed(wood, tonight(wood), opening)
    assert go_on(night, opening) == opening.model_digest
    assert night.steps() == ["resume 1", "finish 1"]
    assert night.left_out == {}


def test_no_tree_leaves_and_none_is_sealed_anew(wood: Study, opening: Simulation) -> None:
    night = resumed(wood, tonight(wood), opening)
    go_on(night, opening)
    assert night.post.contents == {}


def test_the_model_of_a_night_after_has_the_trees_of_the_others_and_own_ones_of_tonight(
    wood: Study, opening: Simulation
) -> None:
    outcomes = simulate(wood, tonight(wood), round=LATER, after=opening).outcomes
    first = simulate(wood, cohorts(wood)).outcomes
    for name in SITES:
        model, before = outcomes[name].model, first[name].model
        lent = {tree for tree, owner in zip(model.forest_.digests, model.owners_, strict=True) if owner != name}
        known = {tree for tree, owner in zip(before.forest_.digests, before.owners_, strict=True) if owner != name}
        mine = {tree for tree, owner in zip(model.forest_.digests, model.owners_, strict=True) if owner == name}
        assert lent
        assert lent <= known
        assert mine
        assert not mine & {*before.forest_.digests}


def test_own_trees_of_tonight_count_in_common_as_much_as_the_lent_ones_on_average(
    wood: Study, opening: Simulation
) -> None:
    night = resumed(wood, tonight(wood), opening)
    go_on(night, opening)
    told: Weights = night.order("finish")
    site = night.site("ash")
    seen = site._with_trees_of_home(told)
    mine = np.asarray(seen.manifest.owners) == "ash"
    lent = np.asarray(told.manifest.owners) == "ash"
    assert np.allclose(seen.weights[mine], told.weights[lent].mean())
    assert np.array_equal(seen.weights[~mine], told.weights[~lent])
    assert len(seen.manifest) == len(told.manifest) - lent.sum() + wood.forest.trees


def test_the_model_depends_on_the_patients_of_tonight(wood: Study, opening: Simulation) -> None:
    tonights = simulate(wood, tonight(wood), round=LATER, after=opening).outcomes
    others = {**tonight(wood), "ash": cohort(wood, 170, 99)}
    again = simulate(wood, others, round=LATER, after=opening).outcomes
    assert again["ash"].model.digest != tonights["ash"].model.digest
    assert again["beech"].model.digest == tonights["beech"].model.digest


def test_whatever_a_coordinator_asks_a_site_tells_nothing_new_before_the_next_epoch(
    wood: Study, opening: Simulation
) -> None:
    night = resumed(wood, tonight(wood), opening)
    part = type(night.site("ash"))
    for step in (part.steps | part.first_steps) - {part.last_step}:
        order = GrowOrder(SITES) if step == "grow" else Invitation(LATER)
        with pytest.raises(Refused, match="tells something new"):
            night.site("ash").answer(step, order)


def test_on_the_night_of_an_opening_nothing_is_resumed(wood: Study, people: dict[str, Cohort]) -> None:
    night = Wood(wood, people)
    night.run()
    for step, order in (("resume", ResumeOrder(1)), ("lend", LendOrder(("beech",)))):
        with pytest.raises(Refused, match="is not a step of a night on which an epoch opens"):
            night.site("ash").answer(step, order)


def test_a_site_ends_an_epoch_with_the_weights_that_it_was_told_first(wood: Study, opening: Simulation) -> None:
    def heavier(step: str, site: str, order: Any) -> Any:
        return replace(order, weights=np.zeros(len(order.weights))) if step == "finish" and site == "ash" else order

    night = resumed(wood, tonight(wood), opening, tamper=heavier)
    go_on(night, opening)
    assert "other weights" in night.left_out["ash"]
    assert {*night.outcomes} == {*SITES} - {"ash"}


def test_figures_are_shared_once_in_an_epoch(people: dict[str, Cohort]) -> None:
    shared = study(privacy={"share_metrics": True}, choice={"bootstrap": 100, "folds": 3, "fewest_test_patients": 2})
    opening = simulate(shared, people)
    night = resumed(shared, tonight(shared), opening)
    assert opening.release is not None
    release = opening.release
    night.ask("resume", dict.fromkeys(SITES, ResumeOrder(opening.epoch)))
    told = night.ask("finish", {site: release.order_of(site) for site in SITES})
    assert [reply.figures for reply in told.values()] == [{}] * len(SITES)  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------------
# Guests


@pytest.fixture(scope="module")
def without_elm(wood: Study, people: dict[str, Cohort]) -> Simulation:
    return simulate(wood, {name: people[name] for name in SITES if name != "elm"})


def test_a_site_that_was_away_when_the_epoch_opened_still_gets_a_model_of_everybodys_trees(
    wood: Study, without_elm: Simulation
) -> None:
    night = resumed(wood, tonight(wood), without_elm)
    go_on(night, without_elm)
    assert night.left_out == {}
    assert night.steps() == ["resume 1", "lend 1", "finish 1"]
    assert {*night.outcomes["elm"].model.owners_} == {*SITES}


def test_a_guest_lends_nothing_and_tells_nothing_about_its_patients(wood: Study, without_elm: Simulation) -> None:
    night = resumed(wood, tonight(wood), without_elm)
    go_on(night, without_elm)
    assert {sender for sender, _ in night.post.contents} == {"ash", "beech", "cedar"}
    assert "elm" not in {parcel.sender for parcel in night.order("finish", "elm").manifest.forests}
    told = night.site("elm").answer("resume", ResumeOrder(1))
    assert {type(value) for value in vars(told).values()} == {bool, np.ndarray, bytes}
    assert told.present.dtype == bool


def test_what_is_lent_to_a_guest_is_what_was_lent_when_the_epoch_opened(wood: Study, without_elm: Simulation) -> None:
    night = resumed(wood, tonight(wood), without_elm)
    go_on(night, without_elm)
    told = {(one.sender, one.digest) for one in night.order("finish", "ash").manifest.forests}
    assert {*night.post.contents} == told


def test_a_guest_keeps_what_it_was_lent_and_is_none_the_night_after(wood: Study, without_elm: Simulation) -> None:
    second = simulate(wood, tonight(wood), round=2, after=without_elm)
    night = resumed(wood, tonight(wood), second)
    go_on(night, second)
    assert night.steps() == ["resume 1", "finish 1"]
    assert {*night.outcomes["elm"].model.owners_} == {*SITES}


def test_trees_of_a_site_that_is_away_tonight_are_lent_to_a_guest_the_night_after(
    wood: Study, without_elm: Simulation
) -> None:
    people = tonight(wood)
    second = simulate(wood, {name: people[name] for name in SITES if name != "beech"}, round=2, after=without_elm)
    assert {*second.outcomes["elm"].model.owners_} == {"ash", "cedar", "elm"}
    third = simulate(wood, people, round=LATER, after=second)
    assert {*third.outcomes["elm"].model.owners_} == {*SITES}


def test_a_site_that_has_lost_what_it_had_comes_back_as_a_guest_and_its_own_trees_of_tonight_vote(
    wood: Study, opening: Simulation
) -> None:
    lost = replace(opening, kept={name: kept for name, kept in opening.kept.items() if name != "ash"})
    night = resumed(wood, tonight(wood), lost)
    go_on(night, lost)
    assert night.left_out == {}
    assert {*night.outcomes["ash"].model.owners_} == {*SITES}


@pytest.mark.parametrize("name", ["bofrf", "fedrf", "boppid"])
def test_trees_that_were_taken_back_vote_no_more_on_the_nights_that_follow(
    name: str, people: dict[str, Cohort]
) -> None:
    wood = study(algorithm={"name": name})
    opening = simulate(wood, people)
    night = resumed(wood, tonight(wood), opening)
    for house in night.houses.values():
        house.withdrawn = frozenset({"cedar"})
    go_on(night, opening)
    outcome = night.houses["ash"].outcome
    assert outcome is not None
    assert "cedar" not in outcome.model.owners_
    assert "beech" in outcome.model.owners_


def test_a_guest_is_on_nobodys_map(wood: Study, without_elm: Simulation) -> None:
    night = resumed(wood, tonight(wood), without_elm)
    go_on(night, without_elm)
    assert night.outcomes["elm"].map.sites == ()
    assert night.outcomes["ash"].map.sites == ("ash", "beech", "cedar")


def test_a_guest_learns_with_the_largest_group() -> None:
    names = [f"s{place}" for place in range(7)]
    wood = study(algorithm={"name": "bofrf", "clusters": 2}, quorum=3)
    shifts = [0, 0, 0, 0, 0.4, 0.4, 0.4]
    everybody = {name: cohort(wood, 160, seed, shift=shifts[seed]) for seed, name in enumerate(names)}
    opening = simulate(wood, everybody)
    assert opening.release is not None
    groups = {name: {one.sender for one in order.manifest.forests} for name, order in opening.release.orders.items()}  # type: ignore[attr-defined]
    largest = max(groups.values(), key=len)
    assert sorted(map(len, groups.values())) == [3, 3, 3, 4, 4, 4, 4]
    guest = opening.release.order_of("elm")
    assert {one.sender for one in guest.manifest.forests} == largest  # type: ignore[attr-defined]


def test_missing_values_of_a_guest_are_filled_with_the_means_of_the_opening(people: dict[str, Cohort]) -> None:
    wood = study(imputation="federated-means")
    opening = simulate(wood, {name: people[name] for name in SITES if name != "elm"})
    night = resumed(wood, tonight(wood), opening)
    go_on(night, opening)
    fills = {name: night.houses[name].cohort.fill for name in SITES}
    assert fills["elm"] is not None
    assert np.array_equal(fills["elm"], fills["ash"])


# ---------------------------------------------------------------------------------------------------------------
# The whole


def test_a_night_to_which_nobody_comes_is_void_and_the_epoch_goes_on(wood: Study, opening: Simulation) -> None:
    with pytest.raises(RoundVoid, match="the epoch of round 1 goes on"):
        simulate(wood, tonight(wood), round=LATER, after=opening, lost=dict.fromkeys(SITES, "resume"))


def test_two_sites_that_come_are_enough_because_nothing_is_summed(wood: Study, opening: Simulation) -> None:
    people = {name: tonight(wood)[name] for name in ("ash", "elm")}
    assert {*simulate(wood, people, round=LATER, after=opening).outcomes} == {"ash", "elm"}


@pytest.mark.parametrize("name", sorted({*ALGORITHMS} - {"dp-forest"}))  # its noise is never the same
def test_every_algorithm_goes_on(name: str, people: dict[str, Cohort]) -> None:
    wood = study(algorithm={"name": name})
    opening = simulate(wood, {site: people[site] for site in SITES if site != "elm"})
    later = simulate(wood, tonight(wood), round=LATER, after=opening)
    assert later.left_out == {}
    assert {*later.outcomes} == {*SITES}
    assert later.model_digest == opening.model_digest


def test_the_order_of_answers_and_the_number_of_workers_change_nothing(wood: Study, without_elm: Simulation) -> None:
    one, four = (simulate(wood, tonight(wood), round=LATER, after=without_elm, workers=n) for n in (1, 4))
    assert {name: outcome.model.digest for name, outcome in one.outcomes.items()} == {
        name: outcome.model.digest for name, outcome in four.outcomes.items()
    }


def test_an_opening_notes_what_it_told_last(wood: Study, people: dict[str, Cohort]) -> None:
    night = Wood(wood, people)
    release = open_epoch(night, wood, ALGORITHMS["bofrf"])
    assert release.orders == night.asked[-1][2]
    assert release.lenders == {*SITES}
