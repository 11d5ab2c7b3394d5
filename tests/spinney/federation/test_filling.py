"""Federated means: what is missing is filled with what all sites know together, and the model remembers it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from spinney.choice.model import FederatedForest
from spinney.choice.saved import read_words, restore, save
from spinney.errors import Refused
from spinney.federation.disclosure import check_message
from spinney.federation.filling import fill_of, filled_means, means_of, told_sums
from spinney.federation.messages import EnrolOrder, Invitation, PlainMeans, RingMeans
from spinney.federation.seam import Message
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.encode import columns_of
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.trial.simulate import Simulation, simulate
from tests.spinney.in_process import Wood, cohort, study

MODES = ("masked", "ring", "trusted-third-party")
KINDS = [
    {"name": "age", "kind": "continuous", "range": [0, 100]},
    {"name": "smokes", "kind": "binary"},
    {"name": "ward", "kind": "categorical", "categories": ["east", "north", "west"]},
]


def wood(**sections: Any) -> Study:
    return study(imputation="federated-means", **sections)


def holes(people: Cohort, seed: int, share: float = 0.3) -> Cohort:
    """The same people, of whom less is known."""
    X = people.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return replace(people, X=X)


def gappy(of: Study, names: tuple[str, ...] = ("ash", "beech", "cedar", "elm")) -> dict[str, Cohort]:
    return {name: holes(cohort(of, 160, seed, shift=seed / 20), seed) for seed, name in enumerate(names)}


def digests(result: Simulation) -> dict[str, str]:
    return {name: outcome.model.digest for name, outcome in result.outcomes.items()}


def test_means_and_most_frequent_categories_are_those_computed_by_hand() -> None:
    of = Study.model_validate({"name": "hand", "features": KINDS, "label": {"name": "y"}, "split": {"test": 0}})
    near = {"age": [20.0] * 30 + [40.0] * 30, "smokes": [1.0] * 60, "ward": ["east"] * 40 + ["west"] * 20}
    far = {"age": [60.0] * 40, "smokes": [0.0] * 30 + [None] * 10, "ward": ["west"] * 40}
    tables = [pd.DataFrame({**values, "y": [0, 1] * (len(values["age"]) // 2)}) for values in (near, far)]
    sums = [told_sums(cohort_from_frame(table, of).rows(Part.TRAINING), of.privacy) for table in tables]
    means = means_of(sums[0] + sums[1], 100)
    # age (60 * 0.3 + 40 * 0.6) / 100; smokes 60 of 90; wards (40.02 + 0) / 100, 0, (19.98 + 40) / 100
    np.testing.assert_allclose(means, [0.42, 0.667, 0.4, 0.0, 0.6])
    np.testing.assert_allclose(fill_of(means, columns_of(of.features)), [0.42, 1, 0, 0, 1])


def test_after_filling_the_vector_lies_between_what_is_known_here_and_what_all_know() -> None:
    told, known = np.array([0.2, 0.2, np.nan, np.nan]), np.array([0.5, 0.5, 0.0, 0.0])
    fill, present = np.array([0.8, np.nan, 0.8, 0.8], np.float32), np.array([True, True, True, False])
    np.testing.assert_array_equal(filled_means(told, known, fill, present), [0.5, 0.2, 0.8, np.nan])


@pytest.mark.parametrize("algorithm", sorted({*ALGORITHMS} - {"dp-forest"}))  # its noise is never the same
def test_every_algorithm_gives_the_same_models_with_each_secure_sum(algorithm: str) -> None:
    made = {}
    for mode in MODES:
        of = wood(algorithm={"name": algorithm}, privacy={"secure_sum": mode})
        made[mode] = simulate(of, gappy(of))
        assert not made[mode].left_out
    assert digests(made["masked"]) == digests(made["ring"]) == digests(made["trusted-third-party"])
    assert len(made["masked"].outcomes) == 4


def test_a_model_fills_a_table_as_its_federation_did() -> None:
    of = wood()
    model = simulate(of, gappy(of)).outcomes["ash"].model
    assert model.fill_ is not None
    blank = pd.DataFrame({f"x{n}": [np.nan] for n in range(4)})
    told = pd.DataFrame({f"x{n}": [float(model.fill_[n])] for n in range(4)})
    np.testing.assert_array_equal(model.predict_proba(blank), model.predict_proba(told))
    assert model.without("elm").fill_ is model.fill_


def test_another_fill_is_another_model() -> None:
    of = wood()
    model = simulate(of, gappy(of)).outcomes["ash"].model
    parts = (model.forest_, model.owners_, model.weights_, model.features_)
    known = {"calibration": model.calibration_, "threshold": model.threshold_, "absent": model.absent_}
    again = FederatedForest.from_trees(*parts, **known, fill=model.fill_)
    assert again.digest == model.digest
    assert FederatedForest.from_trees(*parts, **known).digest != model.digest
    with pytest.raises(ValueError, match="3 values to fill 4 columns"):
        FederatedForest.from_trees(*parts, **known, fill=np.zeros(3))


def test_a_sum_that_cannot_be_costs_only_its_column() -> None:
    total = np.array([[100, 50_000], [100, 100_001], [-5, 20], [300, 20], [0, 0], [100, -1]])
    np.testing.assert_array_equal(means_of(total, 200), [0.5, *[np.nan] * 5])
    huge = np.array([[2**62, 2**62], [-(2**63), 2**63 - 1]])
    assert np.isnan(means_of(huge, 200)).all()


class _Liar:
    """Adds nonsense to the first column of what one site says."""

    def __init__(self, site: str) -> None:
        self.site = site

    def __call__(self, part: Any) -> Any:
        class Lying(part):  # type: ignore[misc]
            def _sums(self) -> Any:
                sums = super()._sums().copy()
                sums[0] = (10, 10**9)
                return sums

        return Lying


@pytest.mark.parametrize("mode", ["masked", "ring"])
def test_a_site_that_lies_about_one_column_leaves_the_others_filled(mode: str) -> None:
    of = wood(privacy={"secure_sum": mode})
    lying = _Liar("elm")(ALGORITHMS["bofrf"].site_part)
    federation = Wood(of, gappy(of), parts={"elm": lying})
    federation.run()
    fill = federation.outcomes["ash"].model.fill_
    assert fill is not None
    np.testing.assert_array_equal(np.isnan(fill), [True, False, False, False])


def test_test_rows_have_no_say() -> None:
    of = wood()
    people = gappy(of)
    X = people["ash"].X.copy()
    X[people["ash"].part == Part.TEST] = 1.0
    other = {**people, "ash": replace(people["ash"], X=X)}
    one, two = (simulate(of, each).outcomes["beech"].model.fill_ for each in (people, other))
    np.testing.assert_array_equal(one, two)


def test_a_column_that_few_patients_have_here_is_not_told_and_is_described_by_the_others_mean() -> None:
    of = wood()
    people = gappy(of)
    X = people["ash"].X.copy()
    X[20:, 1] = np.nan
    people["ash"] = replace(people["ash"], X=X)
    assert told_sums(people["ash"].rows(Part.TRAINING), of.privacy)[1].tolist() == [0, 0]
    federation = Wood(of, people)
    federation.run()
    means = federation.order("join").means
    reply: Any = federation.site("ash").answer("join", federation.order("join"))
    assert reply.vector[1] == means[1]


def test_a_feature_that_a_site_does_not_have_is_not_invented() -> None:
    of = wood()
    people = {**gappy(of), "ash": cohort(of, 160, 0, absent=[1])}
    federation = Wood(of, people)
    federation.run()
    there = federation.houses["ash"].cohort
    assert np.isnan(there.X[:, 1]).all()
    assert not np.isnan(federation.houses["beech"].cohort.X).any()


def test_a_lost_site_is_left_out_of_the_means_and_of_the_round() -> None:
    of = wood()
    people = gappy(of)
    lost = simulate(of, people, lost={"elm": "fill"})
    without = simulate(of, {name: each for name, each in people.items() if name != "elm"})
    assert lost.left_out == {"elm": "no answer to fill"}
    assert digests(lost) == digests(without)


def test_means_are_told_only_where_the_study_fills_with_them() -> None:
    plain = study()
    federation = Wood(plain, gappy(plain))
    federation.run()
    with pytest.raises(Refused, match="the study doesn't fill"):
        federation.site("ash").answer("join", Invitation(1, np.zeros(4)))
    with pytest.raises(Refused, match="the study doesn't fill"):
        federation.site("ash").answer("enrol", EnrolOrder(1))


def test_a_house_that_has_been_filled_still_tells_what_it_knew_before() -> None:
    of = wood()
    federation = Wood(of, gappy(of))
    federation.run()
    ash, memory = federation.site("ash"), federation.houses["ash"].memory
    before = memory["told-sums"]
    ash.answer("enrol", EnrolOrder(1))
    np.testing.assert_array_equal(memory["told-sums"], before)
    assert not np.array_equal(told_sums(ash.training, of.privacy), before)


def test_other_means_in_the_same_round_are_refused() -> None:
    of = wood()
    federation = Wood(of, gappy(of))
    federation.run()
    with pytest.raises(Refused, match="other means"):
        federation.site("ash").answer("join", Invitation(1, np.zeros(4)))


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (PlainMeans(np.full((4, 2), 7)), "known rows are rounded"),
        (PlainMeans(np.array([[10, 10_001]] * 4)), "means and shares are in 0..1"),
        (PlainMeans(np.array([[10, 5]] * 4)), "means and shares are rounded"),
        (PlainMeans(np.zeros((3, 2), np.int64)), "known rows and sum of every column"),
    ],
)
def test_a_site_says_no_more_than_its_characteristic_vector_would(reply: Message, rule: str) -> None:
    with pytest.raises(Refused, match=rule):
        check_message(reply, wood(privacy={"secure_sum": "trusted-third-party"}))


def test_means_at_the_end_of_a_ring_are_rounded() -> None:
    with pytest.raises(Refused, match="rounded"):
        check_message(RingMeans(np.full(4, 0.12345)), wood(privacy={"secure_sum": "ring"}))


def test_missing_rates_travel_where_the_study_says_so() -> None:
    of = wood(privacy={"missing_rates": True})
    federation = Wood(of, gappy(of))
    federation.run()
    reply: Any = federation.site("ash").answer("join", federation.order("join"))
    assert reply.vector.shape == (8,)
    assert 0.1 < reply.vector[4] < 0.5


def test_the_share_of_outcomes_travels_where_the_study_says_so() -> None:
    of = wood(privacy={"missing_rates": True, "label_rate": True})
    federation = Wood(of, gappy(of))
    federation.run()
    reply: Any = federation.site("ash").answer("join", federation.order("join"))
    assert reply.vector.shape == (9,)
    assert reply.vector[-1] == pytest.approx(federation.site("ash").training.y.mean(), abs=0.0006)


def test_a_saved_model_keeps_what_it_was_filled_with() -> None:
    of = wood()
    model = simulate(of, gappy(of)).outcomes["ash"].model
    assert model.fill_ is not None
    model.fill_[2] = np.nan
    words, trees = save(model, of.privacy.probability_precision)
    again = restore(read_words(words.model_dump_json().encode()), trees)
    assert again.digest == model.digest
    np.testing.assert_array_equal(again.fill_, model.fill_)
