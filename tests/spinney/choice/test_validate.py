"""How a site judges its candidates by its size, and what repeating the cross-validation may and may not change."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.choice.validate import FEW, REPEATS, folds_of, way_of
from spinney.rows.cohort import Cohort
from spinney.rows.parts import LARGE, Part, parts_by_hash, parts_by_seed
from spinney.study.settings import Split
from tests.spinney.choice.choosers import chooser_at
from tests.spinney.in_process import Wood, cohort, cohorts, study


def people(count: int, **sections) -> Cohort:
    return cohort(study(**sections), count)


@pytest.mark.parametrize(
    ("count", "part", "words"),
    [
        (FEW, Part.TRAINING, f"3-fold cross-validation, repeated {REPEATS} times with other folds"),
        (2 * FEW, Part.TRAINING, "3-fold cross-validation"),
        (LARGE, Part.VALIDATION, "the validation part"),
    ],
)
def test_the_size_of_a_cohort_decides_how_it_is_judged(count, part, words):
    way = way_of(people(count), study())
    assert (way.part, way.words) == (part, words)


def test_a_study_may_say_how_often_and_on_what():
    assert "repeated" not in way_of(people(300, choice={"repeats": 1}), study(choice={"repeats": 1})).words
    assert "repeated 4 times" in way_of(people(4000, choice={"repeats": 4}), study(choice={"repeats": 4})).words
    assert way_of(people(LARGE, split={"validation": 0}), study(split={"validation": 0})).part == Part.TRAINING


@pytest.mark.parametrize("test", [0.1, 0.25, 0.8])
def test_a_cohort_that_grows_large_takes_from_training_only(test):
    names = [f"p{number}" for number in range(LARGE)]
    before, after = (parts_by_hash(names[:count], b"key", Split(test=test)) for count in (LARGE - 1, LARGE))
    assert not np.any(before == Part.VALIDATION)
    assert np.mean(after == Part.VALIDATION) == pytest.approx(0.2 * (1 - test), abs=0.01)
    assert np.array_equal(after[:-1] == Part.TEST, before == Part.TEST)


def test_a_large_table_without_patients_has_a_validation_part_of_both_classes():
    y = (np.arange(LARGE) % 10 == 0).astype(np.int8)
    part = parts_by_seed(y, Split())
    assert [np.mean(part[y == label] == Part.VALIDATION) for label in (0, 1)] == pytest.approx([0.15, 0.15], abs=0.001)


# ---------------------------------------------------------------------------------------------------------------
# Repeats


@pytest.fixture(scope="module")
def rounds() -> dict[int, Wood]:
    """The same houses under studies that differ in how often they repeat."""
    made = {}
    for repeats in (1, 6):
        wood = study(choice={"repeats": repeats, "judges": 0})
        made[repeats] = Wood(wood, cohorts(wood, rows=240, rows_per_patient=2))
        made[repeats].run()
    return made


def test_a_patient_s_rows_are_in_one_fold_of_every_repeat_and_repeats_differ():
    rows = cohort(study(), 300, rows_per_patient=3).rows(Part.TRAINING)
    fold = folds_of(rows, study())
    assert fold.shape == (REPEATS, len(rows))
    for patient in np.unique(rows.patients):
        assert (np.ptp(fold[:, rows.patients == patient], axis=1) == 0).all()
    assert len(np.unique(fold, axis=0)) == REPEATS


def test_repeats_change_nothing_that_leaves_the_house(rounds):
    once, often = (rounds[repeats] for repeats in (1, 6))
    assert once.order("finish").manifest.digest == often.order("finish").manifest.digest
    assert once.order("finish").weights.tolist() == often.order("finish").weights.tolist()
    for name in once.houses:
        counts = [made.houses[name].memory["fold-counts"] for made in (once, often)]
        assert np.array_equal(counts[0][0], counts[1][0])
        assert all(np.array_equal(one.sum(axis=0), counts[0][0].sum(axis=0)) for one in counts[1])


def test_a_row_has_one_vote_the_mean_of_all_repeats(rounds):
    chooser = chooser_at(rounds[6])
    rows, pool = chooser.cohort.rows(Part.TRAINING), chooser.pool
    trees = chooser.walker.votes(rows.X)
    told = []
    for fold, counts in zip(folds_of(rows, chooser.study), pool.counts, strict=True):
        votes = np.empty(len(rows))
        for number, taken in enumerate(counts):
            weights = chooser.weights("bofrf", _mcc(pool.total - taken))
            say = np.ones((len(rows), len(weights)), dtype=bool)
            say[:, pool.own] = pool.unseen
            here = fold == number
            votes[here] = ((trees * say) @ weights / (say @ weights))[here]
        told.append(votes)
    assert np.ptp(told, axis=0).max() > 0
    known = pool.unseen.any(axis=1)  # on the others no own tree may vote
    assert chooser.judged["bofrf"] == pytest.approx(np.mean(told, axis=0)[known])


def test_the_standard_error_stays_that_of_the_patients(rounds):
    (_, once), (_, often) = (chooser_at(rounds[repeats])._lead_of_local("bofrf") for repeats in (1, 6))
    assert often == pytest.approx(once, rel=0.15)


def test_the_outcome_says_how_it_was_judged(rounds):
    said = [made.outcomes["elm"].decision.judged_by for made in rounds.values()]
    assert said == ["3-fold cross-validation", "3-fold cross-validation, repeated 6 times with other folds"]


def _mcc(counts):
    tp, tn, fp, fn = counts.T.astype(float)
    root = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return np.divide(tp * tn - fp * fn, root, out=np.zeros(len(root)), where=root > 0)
