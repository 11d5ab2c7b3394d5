"""Counts as rows in which nothing is told twice, and back."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.errors import Refused
from spinney.federation.secure_sum import modulo
from spinney.federation.tally import Tally

OWNERS = ("ash",) * 5 + ("beech",) * 3 + ("cedar",)
GROUPS = np.array([0, 1, 0, 0, 1, 2, 2, 2, 3])
ABSENT = {1: "cedar"}  # group -> who can't score its trees
SITES = ("ash", "beech", "cedar", "elm")
SCORERS = np.array([[ABSENT.get(group) != site for group in GROUPS] for site in SITES])
MOST = 4 * 60


@pytest.fixture
def tally() -> Tally:
    return Tally.of(OWNERS, SCORERS)


def counted(seed: int = 0) -> dict[str, np.ndarray]:
    """What sites count: foreign trees on all rows or none, own trees on some rows."""
    draw = np.random.default_rng(seed)
    counts = {}
    for site in SITES:
        sick, well = draw.integers(5, 30, 2)
        cases = np.tile([sick, well], (len(OWNERS), 1))
        own = np.asarray(OWNERS) == site
        cases[own] = draw.integers(0, [sick + 1, well + 1], (own.sum(), 2))
        cases[[ABSENT.get(group) == site for group in GROUPS]] = 0
        hits = draw.integers(0, cases + 1)
        counts[site] = np.column_stack([hits, cases[:, 1] - hits[:, 1], cases[:, 0] - hits[:, 0]])
    return counts


def heard(tally: Tally, counts: dict[str, np.ndarray], bits: int) -> np.ndarray:
    """What comes of it if only so many bits are told."""
    told = {site: modulo(tally.told(one, site), bits) for site, one in counts.items()}
    total = modulo(sum(rows[: tally.together] for rows in told.values()), bits)
    return tally.heard(total, {site: rows[tally.together :] for site, rows in told.items()}, bits)


@pytest.mark.parametrize("bits", [MOST.bit_length(), 63, 64])
@pytest.mark.parametrize("seed", range(5))
def test_the_total_of_all_counts_comes_back(tally: Tally, seed: int, bits: int) -> None:
    counts = counted(seed)
    np.testing.assert_array_equal(heard(tally, counts, bits), sum(counts.values()), strict=True)


def test_hits_are_told_of_every_tree_and_cases_once_per_group_and_by_the_owner(tally: Tally) -> None:
    rows = {site: len(tally.told(one, site)) for site, one in counted().items()}
    assert rows == {"ash": 9 + 4 + 3, "beech": 9 + 4 + 2, "cedar": 9 + 4, "elm": 9 + 4}


def test_no_more_is_told_than_two_rows_per_tree_even_if_every_tree_is_a_group() -> None:
    tally = Tally(np.asarray(OWNERS), np.arange(len(OWNERS)))
    counts = counted()
    assert {len(tally.told(one, site)) for site, one in counts.items()} == {2 * len(OWNERS)}
    np.testing.assert_array_equal(heard(tally, counts, 10), sum(counts.values()))


def test_what_an_owner_tells_alone_is_in_the_totals_anyway(tally: Tally) -> None:
    counts = counted()
    tp, tn, fp, fn = sum(counts.values()).T
    cases = np.column_stack([tp + fn, tn + fp])
    for owner in SITES:
        alone = tally.told(counts[owner], owner)[tally.together :]
        others = np.flatnonzero(tally.alone(owner))
        first = tally.first[GROUPS[others]]
        np.testing.assert_array_equal(alone, cases[others] - cases[first])


def test_trees_that_are_not_counted_alike_are_no_group(tally: Tally) -> None:
    counts = counted()["elm"]
    counts[2, 0] += 1  # one case more than for the first tree of its group
    with pytest.raises(Refused, match="not counted on the same rows"):
        tally.told(counts, "elm")


def test_a_group_is_the_trees_of_one_owner_that_the_same_sites_can_score(tally: Tally) -> None:
    np.testing.assert_array_equal(tally.groups, GROUPS)


@pytest.mark.parametrize("scorers", [SCORERS[:, :-1], SCORERS[0], np.zeros((0, 0), dtype=bool), SCORERS[None]])
def test_answers_about_other_trees_are_refused(scorers: np.ndarray) -> None:
    with pytest.raises(Refused, match="one answer per participant and tree"):
        Tally.of(OWNERS, scorers)
