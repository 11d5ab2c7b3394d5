"""A site's models in MLflow: what a version holds, which one is in use, and what a kill cannot spoil."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spinney.choice.saved import ModelRefused
from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import LATE, Registry, RegistryFailed, lineage_of
from spinney.connectors.mlflow.card import card
from tests.connectors.mlflow.registered import frame, register
from tests.places import ROOT
from tests.servers.migrated import registry_in
from tests.spinney.in_process import SITES, Wood, cohorts, study


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# ---------------------------------------------------------------------------------------------------------------
# A version


def test_a_registered_model_gives_the_same_probabilities_when_it_is_loaded(registry, wood):
    version = register(registry, wood)
    loaded, rows = registry.model(version), frame()
    assert loaded.digest == wood.outcomes["elm"].model.digest
    assert np.array_equal(loaded.predict_proba(rows), wood.outcomes["elm"].model.predict_proba(rows))


def test_no_file_of_a_version_is_a_pickle_and_none_tells_of_a_patient(registry, wood, tmp_path):
    register(registry, wood)
    names = {path.name for path in files_of(tmp_path / "registry" / "artifacts")}
    assert names == {
        "MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt", "input_example.json",
        "serving_input_example.json", "model.json", "forest.spny", "evidence.json", "lineage.json",
    }  # fmt: skip
    example = json.loads(next((tmp_path / "registry").rglob("input_example.json")).read_text(encoding="utf-8"))
    assert example["data"] == [[0.5] * 4]


def test_registering_does_not_look_through_everything_that_is_installed(registry, wood, monkeypatch):
    from mlflow.utils import requirements_utils

    looked = []
    monkeypatch.setattr(requirements_utils, "_MODULES_TO_PACKAGES", None)  # as in a new process
    monkeypatch.setattr("importlib_metadata.packages_distributions", lambda: looked.append(True) or {})
    register(registry, wood)
    assert not looked


def test_the_evidence_is_kept_with_all_candidates(registry, wood):
    evidence = registry.evidence(register(registry, wood))
    decision = wood.outcomes["elm"].decision
    assert evidence["choice"]["model"] == decision.name
    assert set(evidence["choice"]["cross_validated"]) == set(decision.cross_validated)
    assert evidence["test"]["auroc"]["low"] <= evidence["test"]["auroc"]["value"] <= evidence["test"]["auroc"]["high"]


def test_a_version_that_was_changed_on_disk_is_refused(registry, wood, tmp_path):
    version = register(registry, wood)
    words = next((tmp_path / "registry").rglob("model.json"))
    plain = json.loads(words.read_text(encoding="utf-8"))
    plain["weights"][0] += 1
    words.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(ModelRefused, match="its digest is another"):
        registry.model(version)


def test_only_the_house_can_read_its_registry(registry, wood, tmp_path):
    register(registry, wood)
    assert (tmp_path / "registry").stat().st_mode & 0o777 == 0o700


# ---------------------------------------------------------------------------------------------------------------
# Once


def test_a_round_is_registered_once_however_often_it_is_run(registry, wood):
    versions = [register(registry, wood) for _ in range(3)]
    assert [version.number for version in versions] == [1, 1, 1]
    assert len(registry.versions("wood")) == 1


def test_the_next_round_is_the_next_version_and_the_candidate(registry, wood):
    register(registry, wood)
    assert register(registry, wood, 2).aliases == ("candidate",)
    assert [(one.number, one.round, one.aliases) for one in registry.versions("wood")] == [
        (2, 2, ("candidate",)),
        (1, 1, ()),
    ]


KILLED = """
import os, signal, sys
from pathlib import Path
from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import Registry
from tests.connectors.mlflow.registered import register
from tests.spinney.in_process import Wood, cohorts, study

made = Wood(study(), cohorts(study()))
made.run()
registry = Registry(Path(sys.argv[1]), RegistrySettings())
if sys.argv[2] != "nowhere":
    setattr(registry.store.client, sys.argv[2], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
register(registry, made)
"""


def run_killed_at(home: Path, call: str) -> int:
    command = [sys.executable, "-c", KILLED, str(home), call]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode


@pytest.mark.parametrize("call", ["log_artifacts", "create_model_version", "set_registered_model_alias"])
def test_a_kill_half_way_leaves_one_version_after_the_next_run(tmp_path, wood, call):
    registry = registry_in(tmp_path)
    assert run_killed_at(tmp_path, call) == -signal.SIGKILL
    version = register(registry, wood)
    assert [one.number for one in registry.versions("wood")] == [version.number] == [1]
    assert version.aliases == ("candidate",)
    assert len([path for path in files_of(tmp_path / "registry") if path.name == "forest.spny"]) == 1


# ---------------------------------------------------------------------------------------------------------------
# Champion, candidate, previous


def aliases(registry: Registry) -> dict[str, int]:
    return {alias: one.number for one in registry.versions("wood") for alias in one.aliases}


def test_promotion_moves_the_champion_to_previous(registry, wood):
    for number in (1, 2, 3):
        registry.promote("wood", register(registry, wood, number).number)
    assert aliases(registry) == {"champion": 3, "previous": 2}
    assert registry.champion("wood")[0].number == 3


def test_a_rollback_brings_the_previous_champion_back_and_a_second_one_undoes_it(registry, wood):
    for number in (1, 2):
        registry.promote("wood", register(registry, wood, number).number)
    registry.rollback("wood")
    assert aliases(registry) == {"champion": 1, "previous": 2}
    registry.rollback("wood")
    assert aliases(registry) == {"champion": 2, "previous": 1}


@pytest.mark.parametrize("moved", [0, 1])
@pytest.mark.parametrize("wanted", ["rollback", "promotion"])
def test_a_kill_in_the_middle_of_a_change_and_the_same_command_again_give_the_champion_that_was_wanted(
    registry, wood, monkeypatch, wanted, moved
):
    for number in (1, 2, 3):
        registry.promote("wood", register(registry, wood, number).number)
    change = {"rollback": lambda: registry.rollback("wood"), "promotion": lambda: registry.promote("wood", 1)}[wanted]
    point, calls = registry.store.point, []

    def killed(*words):
        calls.append(words)
        if len(calls) > moved:
            raise KeyboardInterrupt
        point(*words)

    monkeypatch.setattr(registry.store, "point", killed)
    with pytest.raises(KeyboardInterrupt):
        change()
    monkeypatch.undo()
    change()
    assert aliases(registry)["champion"] == {"rollback": 2, "promotion": 1}[wanted]


def test_promoting_the_champion_again_changes_nothing(registry, wood):
    for number in (1, 2):
        registry.promote("wood", register(registry, wood, number).number)
    registry.promote("wood", 2)
    assert aliases(registry) == {"champion": 2, "previous": 1}


def test_a_round_that_is_run_again_after_a_rollback_does_not_promote_again(registry, wood):
    for number in (1, 2):
        registry.settle("wood", register(registry, wood, number).number, promote=True)
    registry.rollback("wood")
    registry.settle("wood", register(registry, wood, 2).number, promote=True)
    assert aliases(registry) == {"champion": 1, "previous": 2}


def test_a_candidate_that_is_not_promoted_stays_candidate(registry, wood):
    registry.settle("wood", register(registry, wood, 1).number, promote=True)
    registry.settle("wood", register(registry, wood, 2).number, promote=False)
    assert aliases(registry) == {"champion": 1, "candidate": 2}


def test_a_late_yes_does_not_take_the_place_of_a_later_round(registry, wood):
    waiting, later = (register(registry, wood, number).number for number in (1, 2))
    registry.settle("wood", later, promote=True)
    assert registry.settle("wood", waiting, promote=True).said("settled") == LATE
    assert aliases(registry) == {"champion": later}
    registry.promote("wood", waiting)  # a person may still want it
    assert aliases(registry) == {"champion": waiting, "previous": later}


def test_there_is_no_champion_before_the_first_promotion(registry, wood):
    assert registry.champion("wood") is None
    with pytest.raises(RegistryFailed, match="there is no wood previous in the registry"):
        registry.rollback("wood")
    register(registry, wood)
    assert registry.champion("wood") is None


# ---------------------------------------------------------------------------------------------------------------
# Withdrawal


def test_a_withdrawn_site_s_trees_are_in_no_version_and_no_file(registry, wood, tmp_path):
    registry.promote("wood", register(registry, wood, 1).number)
    register(registry, wood, 2)
    made = registry.withdraw("wood", "ash")
    assert aliases(registry) == {"champion": made[-1].number, "candidate": made[0].number}
    for version in registry.versions("wood"):
        assert "ash" not in registry.model(version).owners_
    for path in (tmp_path / "registry" / "artifacts").rglob("model.json"):
        assert "ash" not in json.loads(path.read_text(encoding="utf-8"))["owners"]


def test_the_other_weights_are_renormalised_and_the_evidence_says_what_remains(registry, wood):
    registry.promote("wood", register(registry, wood).number)
    (made,) = registry.withdraw("wood", "ash")
    lineage = registry.lineage(made)
    assert sum(lineage.weights.values()) == pytest.approx(1, abs=0.001)
    assert lineage.without == ("ash",)
    assert "remains until the next round" in registry.evidence(made)["withdrawn"]
    original = wood.outcomes["elm"].model.without("ash")
    assert registry.model(made).digest == original.digest


def test_a_blend_is_one_model_with_odds_ratios_and_a_withdrawal_says_what_stays_of_its_regression(registry):
    joint = study(algorithm={"name": "bofrf", "companion": "linear"})
    night = Wood(joint, cohorts(joint))
    night.run()
    site = next(name for name, one in night.outcomes.items() if one.decision.name == "blend")
    version = register(registry, night, site=site)
    rows, model = frame(), night.outcomes[site].model
    np.testing.assert_array_equal(registry.model(version).predict_proba(rows), model.predict_proba(rows))
    evidence = registry.evidence(version)
    assert {one["name"] for one in evidence["odds_ratios"]} == {"x0", "x1", "x2", "x3"}
    assert "gain_over_alone" in evidence
    told = card(version, registry.lineage(version), evidence, model.features_)
    assert "odds ratio per standard deviation" in told
    (made,) = registry.withdraw("wood", next(name for name in SITES if name != site))
    assert "common logistic regression ends with the next epoch" in registry.evidence(made)["withdrawn"]


def test_a_second_withdrawal_finds_nothing_to_do(registry, wood):
    registry.promote("wood", register(registry, wood).number)
    registry.withdraw("wood", "ash")
    before = [one.number for one in registry.versions("wood")]
    assert registry.withdraw("wood", "ash") == []
    assert [one.number for one in registry.versions("wood")] == before


def test_versions_of_later_rounds_keep_a_site_that_came_back(registry, wood):
    register(registry, wood, 1)
    register(registry, wood, 2)
    registry.withdraw("wood", "ash", until=1)
    assert [one.round for one in registry.versions("wood")] == [2]
    assert "ash" in registry.model(registry.version("wood", 2)).owners_


def test_a_model_of_one_site_alone_is_gone_when_it_withdraws(registry, wood):
    outcome = wood.outcomes["elm"]
    alone = outcome.model
    for site in ("ash", "beech", "cedar"):
        alone = alone.without(site)
    lineage = lineage_of(wood.study, "elm", alone, 1)
    registry.promote("wood", registry.register(wood.study, replace(outcome, model=alone), lineage).number)
    assert registry.withdraw("wood", "elm") == []
    assert registry.champion("wood") is None


# ---------------------------------------------------------------------------------------------------------------
# Trees of patients who object


def own_trees(registry, number):
    model = registry.model(registry.version("wood", number))
    return [tree for tree, owner in zip(model.forest_.digests, model.owners_, strict=True) if owner == "elm"]


def test_silent_trees_are_in_no_version_and_all_others_stay(registry, wood):
    number = register(registry, wood).number
    registry.promote("wood", number)
    before, silent = registry.model(registry.version("wood", number)), set(own_trees(registry, number)[:2])
    (made,) = registry.silence("wood", silent)
    assert aliases(registry) == {"champion": made.number}
    after = registry.model(made)
    assert [*after.forest_.digests] == [tree for tree in before.forest_.digests if tree not in silent]
    assert after.weights_.sum() == pytest.approx(before.weights_.sum())
    assert [one.number for one in registry.versions("wood")] == [made.number]


def test_the_evidence_of_a_model_with_silent_trees_says_how_many_and_never_which(registry, wood):
    number = register(registry, wood).number
    silent = set(own_trees(registry, number)[:2])
    (made,) = registry.silence("wood", silent)
    assert registry.evidence(made)["silenced"].startswith("2 own trees vote no more")
    assert registry.lineage(made).silenced == 2
    assert not any(tree in json.dumps([registry.evidence(made), dict(made.tags)]) for tree in silent)


def test_more_trees_fall_silent_later_and_asking_again_changes_nothing(registry, wood):
    number = register(registry, wood).number
    trees = own_trees(registry, number)
    registry.silence("wood", {trees[0]})
    assert registry.silence("wood", {trees[0]}) == []
    (made,) = registry.silence("wood", {*trees[:2]})
    assert registry.lineage(made).silenced == 2
    assert registry.silence("wood", {*trees[:2]}) == []


def test_where_fewer_than_half_of_the_own_trees_are_left_others_take_the_place_of_all_that_are_gone(registry, wood):
    number, asked = register(registry, wood).number, []
    before, trees = registry.model(registry.version("wood", number)), own_trees(registry, number)
    spare = wood.outcomes["ash"].model.forest_

    def regrow(model, round_, count):
        asked.append((len(model.forest_), round_, count))
        return spare.take(np.arange(count))

    half = len(trees) // 2
    registry.silence("wood", {*trees[:half]}, regrow)
    assert asked == []
    (made,) = registry.silence("wood", {*trees[: half + 1]}, regrow)
    assert asked == [(len(before.forest_) - half, 1, half + 1)]
    model, lineage = registry.model(made), registry.lineage(made)
    assert (lineage.silenced, lineage.regrown) == (half + 1, half + 1)
    assert model.owners_.count("elm") == len(trees)
    assert model.weights_.sum() == pytest.approx(before.weights_.sum())
    foreign = np.asarray(before.owners_) != "elm"
    assert [*np.asarray(model.forest_.digests)[np.asarray(model.owners_) != "elm"]] == [
        *np.asarray(before.forest_.digests)[foreign]
    ]


def test_a_model_of_silent_trees_alone_goes_on_with_those_that_were_grown_instead(registry, wood):
    number = register(registry, wood).number
    registry.promote("wood", number)
    everything, spare = registry.model(registry.version("wood", number)).forest_, wood.outcomes["ash"].model.forest_
    registry.silence("wood", {*everything.digests}, lambda _model, _round, count: spare.take(np.arange(count)))
    version, model = registry.champion("wood")
    assert {*model.owners_} == {registry.lineage(version).site}


def test_where_no_tree_is_left_there_is_no_model(registry, wood):
    number = register(registry, wood).number
    registry.promote("wood", number)
    everything = set(registry.model(registry.version("wood", number)).forest_.digests)
    assert registry.silence("wood", everything) == []
    assert registry.champion("wood") is None


# ---------------------------------------------------------------------------------------------------------------
# Elsewhere


def test_a_prefix_keeps_the_models_of_sites_on_one_server_apart(tmp_path, wood):
    server = registry_in(tmp_path).store.tracking
    for site in ("ash", "elm"):
        house = Registry(tmp_path / site, RegistrySettings(tracking=server, prefix=f"{site}-"))
        house.store._artifacts = tmp_path / "files"
        register(house, wood, site=site)
        assert [str(one) for one in house.versions("wood")] == [f"{site}-wood/1"]
