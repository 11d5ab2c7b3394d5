"""Rows become codes, and codes walk: what is compiled says what plain words say."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.forest.score import confusion_counts
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join_forests
from spinney.forest.walk import BLOCK, PARTS, code_rows


def coded(values, cuts, missing=255):
    rows, cuts = np.array(values, np.float32)[:, None], np.array(cuts, np.float64)
    starts = np.searchsorted(cuts, np.arange(PARTS) / PARTS).astype(np.uint16)[None]
    codes = np.empty((len(rows), 1), np.uint8 if missing == 255 else np.uint16)
    code_rows(rows, cuts, np.array([0, len(cuts)]), starts, missing, codes)
    return codes[:, 0].tolist()


@pytest.mark.parametrize("cuts", [[], [0.5], [-3.0, -0.0, 0.25, 0.5, 1.0, 7.0], np.linspace(-1, 2, 200).tolist()])
def test_a_code_is_how_many_cuts_a_value_is_above(cuts):
    values = [*cuts, *np.nextafter(np.float32(cuts), 9), -np.inf, -5, -0.0, 0.0, 1e-30, 0.3, 0.999, 1, 1.5, np.inf]
    values = np.array(values, np.float32)
    assert coded(values, cuts) == [sum(cut < float(value) for cut in cuts) for value in values]


def test_a_missing_value_has_the_highest_code():
    assert coded([np.nan, 0.1], [0.5]) == [255, 0]
    assert coded([np.nan, 0.1], [0.5], 65_535) == [65_535, 0]


def chain(thresholds, missing_left):
    """A tree that asks one column again and again; every leaf says something else."""
    feature, threshold, left, said = [], [], [], []
    for number, cut in enumerate(thresholds):
        feature += [0, LEAF]
        threshold += [cut, 0.0]
        left += [missing_left[number], False]
        said += [0.0, number / 1000]
    arrays = [*feature, LEAF], [*threshold, 0.0], [*left, False], [*said, 0.999]
    return Forest(np.array(arrays[0], np.int16), *(np.array(part) for part in arrays[1:]))


@pytest.mark.parametrize("cuts", [20, 400], ids=["codes of a byte", "codes of two"])
def test_blocks_of_rows_with_and_without_values_end_where_a_slow_walk_ends(cuts):
    rng = np.random.default_rng(cuts)
    X = rng.random((2 * BLOCK + 7, 1)).astype(np.float32)
    X[rng.random(len(X)) < 0.2] = np.nan
    thresholds = np.sort(rng.random(cuts))
    missing_left = np.zeros(cuts, bool)
    missing_left[cuts // 2] = True
    votes = Walker(chain(thresholds, missing_left), 1).votes(X)[:, 0]
    for value, vote in zip(X[:, 0], votes, strict=True):
        stops = np.flatnonzero(missing_left if np.isnan(value) else value <= thresholds)
        assert vote == (stops[0] / 1000 if len(stops) else 0.999)


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_counts_of_several_workers_are_those_of_one_row_at_a_time(jobs):
    rng = np.random.default_rng(1)
    X, y = rng.random((900, 1)).astype(np.float32), rng.integers(0, 2, 900).astype(np.int8)
    trees = join_forests([chain([0.2 * number, 0.5], [False, True]) for number in range(1, 4)])
    trees = Forest(trees.feature, trees.threshold, trees.missing_left, np.where(trees.probability > 0.5, 0.9, 0.1))
    counted = rng.random((900, 3)) < 0.7
    counted[:, 1] = True
    yes = Walker(trees, 1).votes(X) > 0.5
    slow = [
        [
            sum(bool(counted[row, tree] and yes[row, tree] == said and y[row] == sick) for row in range(900))
            for said, sick in ((True, 1), (False, 0), (True, 0), (False, 1))
        ]
        for tree in range(3)
    ]
    assert confusion_counts(trees, X, y, np.ones(1, bool), counted=counted, jobs=jobs).tolist() == slow
