"""A whole federation in one process: what comes out, what is asked, and the pooled forest that nobody may have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.choice.metrics import auroc
from spinney.errors import Refused, RoundVoid
from spinney.plugins import ALGORITHMS
from spinney.rows.parts import Part
from spinney.trial.simulate import LocalMail, pooled_forest, simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study


@pytest.fixture(scope="module")
def wood():
    return study()


@pytest.fixture(scope="module")
def people(wood):
    return cohorts(wood)


@pytest.fixture(scope="module")
def result(wood, people):
    return simulate(wood, people)


@pytest.mark.parametrize("name", sorted({*ALGORITHMS} - {"dp-forest"}))  # its noise is never the same
def test_every_algorithm_runs_and_repeats_itself_bit_for_bit(people, name):
    wood = study(algorithm={"name": name})
    first, second = (simulate(wood, people, workers=workers) for workers in (1, 2))
    assert first.model_digest == second.model_digest
    assert [one.model.digest for one in first.outcomes.values()] == [
        one.model.digest for one in second.outcomes.values()
    ]
    assert set(first.outcomes) == {*SITES}


def test_a_simulation_says_how_many_bytes_of_trees_and_sums_passed_between_sites(wood, people, result):
    federation = Wood(wood, people)
    federation.run()
    assert result.parcel_bytes == sum(len(house.memory["forest"]) for house in federation.houses.values())


def test_progress_counts_the_sites_that_have_answered(wood, people):
    seen = []
    simulate(wood, people, progress=lambda step, done, asked: seen.append((step, done, asked)))
    assert [line for line in seen if line[0] == "join"] == [
        ("join", 1, 4),
        ("join", 2, 4),
        ("join", 3, 4),
        ("join", 4, 4),
    ]
    assert [*dict.fromkeys(step for step, _, _ in seen)] == [
        "join",
        "grow",
        "check",
        "score",
        "sign",
        "release",
        "finish",
    ]


def test_an_outcome_counts_rows_patients_and_positives(wood):
    people = {**cohorts(wood), "elm": cohort(wood, 300, seed=3, rows_per_patient=3)}
    outcome = simulate(wood, people).outcomes["elm"]
    assert (outcome.rows, outcome.patients, outcome.positives) == (300, 100, int(people["elm"].y.sum()))


def test_who_was_left_out_is_said_with_the_reason(wood, people):
    result = simulate(wood, {**people, "elm": cohort(wood, 20)}, lost={"ash": "finish"})
    assert result.left_out["ash"] == "no answer to finish"
    assert "smallest cohort" in result.left_out["elm"]


def test_a_federation_of_too_small_sites_is_void(wood):
    with pytest.raises(RoundVoid, match="0 sites are left and 3 are needed"):
        simulate(wood, cohorts(wood, rows=20))


def test_a_defect_in_a_site_s_part_is_not_mistaken_for_a_lost_site(wood, people):
    class Broken(ALGORITHMS["bofrf"].site_part):
        def check(self, _order):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Wood(wood, people, parts={"elm": Broken}).run()


def test_local_settings_are_searched_within_the_time_budget(people):
    wood = study(forest={"tuning": {"seconds": 60, "draws": 3, "folds": 2}})
    asked = []

    def budget(seconds):
        asked.append(seconds)
        return lambda: False  # the time is over at once

    untuned = simulate(study(), people)
    tuned = simulate(wood, people, budget=budget)
    assert asked == [60] * 4
    assert [one.auroc["local"] for one in tuned.outcomes.values()] == [
        one.auroc["local"] for one in untuned.outcomes.values()
    ]


def test_a_search_with_time_tries_other_settings(people):
    wood = study(forest={"trees": 4, "tuning": {"seconds": 60, "draws": 4, "folds": 2}})
    plain = study(forest={"trees": 4})
    searched, as_it_was = simulate(wood, people), simulate(plain, people)
    assert any(
        searched.outcomes[name].model.forest_.digests != as_it_was.outcomes[name].model.forest_.digests
        for name in SITES
    )


def test_the_pooled_forest_learns_from_everybody(wood, people):
    model = pooled_forest(wood, people)
    assert {*model.owners_} == {"pooled"}
    test = people["elm"].rows(Part.TEST)
    assert auroc(test.y, model.votes(test.X, test.present)) > 0.75


def test_the_pooled_forest_keeps_patients_of_different_sites_apart(wood):
    people = cohorts(wood, rows=200, rows_per_patient=2)  # every site numbers its patients from 0
    pooled = pooled_forest(wood, people)
    apart = {
        name: replace(one, patients=one.patients + 1000 * place) for place, (name, one) in enumerate(people.items())
    }
    assert pooled.digest == pooled_forest(wood, apart).digest


def test_the_pooled_forest_can_do_without_a_feature_at_some_sites(wood, people):
    model = pooled_forest(wood, {**people, "elm": cohort(wood, seed=3, absent=(0,))})
    test = cohort(wood, seed=3, absent=(0,)).rows(Part.TEST)
    assert np.isfinite(model.votes(test.X, np.ones_like(test.present))).all()


def test_a_parcel_is_readable_by_its_recipients_only():
    post = LocalMail()
    parcel = post.of("ash").post(b"trees", ["beech"])
    assert post.of("beech").fetch(parcel) == post.of("ash").fetch(parcel) == b"trees"
    with pytest.raises(Refused, match="no parcel of ash for cedar"):
        post.of("cedar").fetch(parcel)


def test_nobody_can_make_another_site_s_parcel_unreadable_by_posting_the_same():
    post = LocalMail()
    parcel = post.of("ash").post(b"trees", ["beech", "cedar"])
    post.of("cedar").post(b"trees", [])
    assert post.of("beech").fetch(parcel) == b"trees"
