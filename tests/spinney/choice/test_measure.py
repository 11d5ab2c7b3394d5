"""Figures on rows that no choice has seen: the newest index events, and groups of patients."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from spinney.choice.measure import groups_of
from spinney.errors import CohortRejected
from spinney.rows.cohort import cohort_from_frame
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.spinney.choice.over_time import cohort, study, table

# ---------------------------------------------------------------------------------------------------------------
# The newest index events


def test_the_newest_index_events_are_a_part_of_their_own():
    wood = study(split={"newest": 0.2})
    part = cohort(wood).part
    assert np.flatnonzero(part == Part.NEWEST).tolist() == list(range(480, 600))
    assert set(part[:480].tolist()) == {Part.TRAINING, Part.TEST}


def test_a_study_may_keep_nothing_aside():
    assert Part.NEWEST not in cohort(study(split={"newest": 0})).part


def test_by_default_a_tenth_is_kept_aside_where_that_is_enough_to_measure():
    few, many = table(600), table(1200)
    small, large = (cohort_from_frame(rows, study(), rows["patient"].tolist()) for rows in (few, many))
    assert Part.NEWEST not in small.part
    assert small.no_newest == "the newest tenth has fewer than 10 unseen patients of a class"
    assert np.flatnonzero(large.part == Part.NEWEST).tolist() == list(range(1080, 1200))
    assert large.no_newest == ""


def test_by_default_a_table_without_times_is_measured_on_the_random_part_only():
    rows = table(1200)
    tables = [rows.drop(columns="index_time"), rows.assign(index_time=None), rows.assign(index_time="soon")]
    for one in tables:
        made = cohort_from_frame(one, study(), one["patient"].tolist())
        assert (Part.NEWEST in made.part, made.no_newest) == (False, "the rows have no index times")


def test_by_default_one_moment_that_most_rows_share_is_not_the_newest():
    rows = table(1200).assign(index_time=pd.Timestamp("2024-01-01"))
    made = cohort_from_frame(rows, study(), rows["patient"].tolist())
    assert (Part.NEWEST in made.part, made.no_newest) == (False, "too many index events share the newest moment")


def test_no_test_row_of_tonight_has_trained_on_any_night_before():
    """Rows arrive, a validation part begins, the newest rows become old: a test patient never trains."""
    rows = table(1200).assign(patient=lambda one: [f"p{number}" for number in range(len(one))])
    trained: set[str] = set()
    for end, more in ((400, {}), (700, {"validation": 0.2}), (950, {"newest": 0.3}), (1200, {})):
        night = rows.iloc[:end]
        part = cohort_from_frame(night, study(split=more), night["patient"].tolist()).part
        assert not trained & {*night["patient"][part == Part.TEST]}
        trained |= {*night["patient"][part == Part.TRAINING]}


def test_times_are_understood_with_and_without_zone_and_as_text():
    wood = study(split={"newest": 0.2})
    plain = table()
    zoned, texts = plain.copy(), plain.copy()
    zoned["index_time"] = zoned["index_time"].dt.tz_localize("UTC")
    texts["index_time"] = texts["index_time"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    utc = texts.assign(index_time=texts["index_time"] + "Z")
    ahead = (plain["index_time"] + pd.Timedelta(hours=2)).dt.strftime("%Y-%m-%d %H:%M:%S") + "+02:00"
    mixed = texts.assign(index_time=np.where(np.arange(len(ahead)) % 2, ahead, texts["index_time"] + "Z"))
    tables = (plain, zoned, texts, utc, mixed)
    parts = [cohort_from_frame(one, wood, one["patient"].tolist()).part.tolist() for one in tables]
    assert all(one == parts[0] for one in parts)


@pytest.mark.parametrize(("change", "rule"), [("drop", "index_time is a column"), ("spoil", "index_time is a time")])
def test_a_table_without_times_is_told_what_to_do(change, rule):
    rows = table()
    rows = rows.drop(columns="index_time") if change == "drop" else rows.assign(index_time="soon")
    with pytest.raises(CohortRejected, match=f"{rule}: give every row its time"):
        cohort_from_frame(rows, study(split={"newest": 0.2}), rows["patient"].tolist())


def test_a_change_over_time_shows_on_the_newest_rows_and_not_on_the_random_ones():
    wood = study(split={"newest": 0.2})
    outcomes = simulate(wood, {name: cohort(wood, seed, drift=0.2) for seed, name in enumerate("abc")}).outcomes
    for outcome in outcomes.values():
        assert outcome.figures["auroc"].value > 0.8
        assert outcome.newest.figures["auroc"].value < 0.4


def test_without_it_no_newest_figures_are_told():
    wood = study(split={"newest": 0})
    outcomes = simulate(wood, {name: cohort(wood, seed) for seed, name in enumerate("abc")}).outcomes
    assert all(outcome.newest is None for outcome in outcomes.values())


def test_the_newest_figures_come_from_patients_that_no_tree_of_the_site_knows():
    wood = study(split={"newest": 0.02})
    outcomes = simulate(wood, {name: cohort(wood, seed) for seed, name in enumerate("abc")}).outcomes
    for outcome in outcomes.values():
        assert outcome.newest.figures == {}
        assert "unseen patients of one class are too few for figures" in outcome.newest.note


def test_why_there_are_none_is_told():
    wood = study()
    outcomes = simulate(wood, {name: cohort(wood, seed) for seed, name in enumerate("abc")}).outcomes
    assert {outcome.newest.note for outcome in outcomes.values()} == {
        "the newest tenth has fewer than 10 unseen patients of a class"
    }


# ---------------------------------------------------------------------------------------------------------------
# Groups


@pytest.fixture(scope="module")
def outcome():
    wood = study()
    return simulate(wood, {name: cohort(wood, seed) for seed, name in enumerate("abc")}).outcomes["a"]


def test_figures_by_sex_and_age_band(outcome):
    told = {group.name: group for group in outcome.subgroups}
    assert {"sex: female", "sex: male", "age: 18 to 39", "age: 40 to 64"} <= set(told)
    assert 0.5 < told["sex: female"].figures["auroc"].value <= 1
    assert told["sex: male"].patients % 10 == 0


def test_a_small_group_is_named_and_nothing_is_told_of_it(outcome):
    other = next(group for group in outcome.subgroups if group.name == "sex: other")
    assert (other.patients, other.figures, other.observed, other.predicted) == (None, {}, None, None)


def test_age_bands_and_sexes_hold_every_row_once():
    rows = cohort(study())
    groups = dict(groups_of(rows))
    for kind in ("age", "sex"):
        assert (
            sum(members.astype(int) for name, members in groups.items() if name.startswith(kind)).tolist() == [1] * 600
        )


def test_a_study_without_age_and_sex_has_no_groups():
    wood = Study.model_validate(
        {
            "name": "wood",
            "features": [{"name": "marker", "kind": "continuous", "range": [0, 1]}],
            "label": {"name": "y"},
        }
    )
    rows = table()
    assert list(groups_of(cohort_from_frame(rows, wood))) == []
