"""Who is in which part: the same patient in the same part, with all rows, whatever else is in the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.rows.cohort import cohort_from_frame
from spinney.rows.parts import Part, folds, parts_by_hash, parts_by_seed
from spinney.study.settings import Split
from spinney.study.study import Study

KEY = b"a site's own key"
SPLIT = Split(test=0.25, validation=0.15)
MANY = [f"patient {number}" for number in range(20_000)]


def shares(part):
    return np.bincount(part, minlength=3) / len(part)


@given(st.lists(st.text(max_size=5), max_size=40), st.lists(st.text(max_size=5), max_size=40))
def test_a_patient_s_part_does_not_depend_on_who_else_is_in_the_table(some, others):
    alone = dict(zip(some, parts_by_hash(some, KEY, SPLIT), strict=True))
    together = dict(zip(others + some, parts_by_hash(others + some, KEY, SPLIT), strict=True))
    assert all(together[patient] == part for patient, part in alone.items())


def test_all_rows_of_a_patient_are_in_one_part():
    part = parts_by_hash([f"{row % 50}" for row in range(500)], KEY, SPLIT)
    assert (part == np.tile(part[:50], 10)).all()


def test_parts_by_hash_have_about_the_shares_of_the_study():
    assert shares(parts_by_hash(MANY, KEY, SPLIT)) == pytest.approx([0.6, 0.15, 0.25], abs=0.015)


def test_another_key_puts_other_patients_into_the_test():
    one, two = (parts_by_hash(MANY, key, SPLIT) == Part.TEST for key in (KEY, b"another"))
    assert np.mean(one & two) == pytest.approx(0.25**2, abs=0.01)


def test_a_larger_test_share_keeps_the_test_patients_in_the_test():
    small, large = (parts_by_hash(MANY, KEY, Split(test=share)) == Part.TEST for share in (0.2, 0.4))
    assert (large | ~small).all()
    assert large.sum() > small.sum()


def test_without_validation_there_is_none():
    assert set(parts_by_hash(MANY[:500], KEY, Split(test=0.3))) == {Part.TRAINING, Part.TEST}


@given(st.lists(st.integers(0, 1), max_size=80), st.integers(0, 1000))
def test_the_seeded_split_gives_each_class_its_share(labels, seed):
    y = np.array(labels, dtype=np.int8)
    part = parts_by_seed(y, Split(test=0.25, validation=0.15, seed=seed))
    for label in (0, 1):
        here = part[y == label]
        assert abs((here == Part.TEST).sum() - 0.25 * len(here)) <= 1
        assert abs((here == Part.VALIDATION).sum() - 0.15 * len(here)) <= 1


def test_the_seeded_split_is_repeatable_and_another_seed_is_another_split():
    y = np.arange(1000) % 3 == 0
    one, again, other = (parts_by_seed(y.astype(np.int8), Split(seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 1)), min_size=1, max_size=80), st.integers(2, 6))
def test_folds_keep_patients_whole_and_classes_balanced(rows, count):
    patients, y = np.array([who for who, _ in rows]), np.array([label for _, label in rows], dtype=np.int8)
    fold = folds(y, patients, count, seed=3)
    ids = np.unique(patients)
    place = {who: {*fold[patients == who].tolist()} for who in ids}
    assert all(len(found) == 1 for found in place.values())
    positive = [who for who in ids if y[patients == who].any()]
    for group in (ids, positive):
        sizes = np.bincount([min(place[who]) for who in group], minlength=count)
        assert sizes.max() - sizes.min() <= 1


def test_folds_are_repeatable_and_another_seed_gives_others():
    y, patients = (np.arange(100) % 2).astype(np.int8), np.arange(100) // 2
    assert np.array_equal(folds(y, patients, 5, 1), folds(y, patients, 5, 1))
    assert not np.array_equal(folds(y, patients, 5, 1), folds(y, patients, 5, 2))


STUDY = Study.model_validate(
    {
        "name": "wood",
        "features": [{"name": "age", "kind": "continuous", "range": [0, 100]}],
        "label": {"name": "died"},
        "split": {"test": 0.25, "validation": 0.15},
    }
)


def frame(rows=200):
    return pd.DataFrame({"age": np.arange(rows) % 100, "died": np.arange(rows) % 4 == 0})


def test_a_cohort_with_identifiers_is_split_by_patient():
    patients = [f"p{row // 4}" for row in range(200)]
    cohort = cohort_from_frame(frame(), STUDY, patients, KEY)
    assert cohort.patient_count == 50
    assert np.array_equal(cohort.part, parts_by_hash(patients, KEY, STUDY.split))
    pairs = {*zip(cohort.patients.tolist(), patients, strict=True)}
    assert len(pairs) == 50


def test_a_cohort_without_identifiers_has_one_row_per_patient():
    cohort = cohort_from_frame(frame(), STUDY)
    assert cohort.patient_count == len(cohort) == 200
    assert np.array_equal(cohort.part, parts_by_seed(cohort.y, STUDY.split))


def test_the_parts_of_a_cohort_share_no_patient_and_miss_no_row():
    cohort = cohort_from_frame(frame(), STUDY, [f"p{row // 4}" for row in range(200)], KEY)
    parts = [cohort.rows(part) for part in Part]
    assert sum(map(len, parts)) == 200
    assert sum(part.patient_count for part in parts) == 50
    assert len(cohort.rows(Part.TRAINING, Part.VALIDATION)) == 200 - len(parts[Part.TEST])


def test_patients_by_class_counts_a_patient_with_both_outcomes_twice():
    cohort = cohort_from_frame(frame(8), STUDY, ["a", "a", "b", "b", "c", "c", "d", "d"], KEY)
    assert cohort.patients_by_class() == (4, 2)
