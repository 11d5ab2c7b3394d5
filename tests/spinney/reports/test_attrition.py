"""The flow on a page: every rule with what it leaves out, and no hidden number that the page gives away elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from spinney.cohort.attrition import Attrition, Division, Loss, PartCount
from spinney.cohort.pull_report import PullReport
from spinney.reports.attrition import attrition_rows
from spinney.reports.facts import NightFacts
from spinney.reports.site import site_page
from tests.spinney.reports.reported import attrition, texts

LOST = (3, 4)  # columns of the table
FEW = "fewer than 5"


def with_flow(facts: NightFacts, found: Attrition, division: Division | None = None) -> NightFacts:
    return replace(facts, pulled=replace(facts.pulled or PullReport(), attrition=found), division=division)


def test_every_step_is_drawn_with_what_it_leaves_out_and_what_is_left(facts: NightFacts) -> None:
    words = texts(site_page(facts))
    assert "found in the source 833 to 842 patients 1,903 or more encounters no index event of the study" in words
    assert "no heart failure before 0 patients 0 index events 423 to 432 patients 476 or more index events" in words
    assert "prediction time not reached fewer than 5 patients 5 or more index events" in words
    assert "the outcome is still open 20 patients 61 rows rows with a known outcome 400 patients 400 rows" in words
    assert "training 299 patients 299 rows test 101 patients 101 rows" in words


def test_who_cannot_see_the_drawing_has_the_same_as_a_table(facts: NightFacts) -> None:
    page = site_page(facts)
    assert '<ol class="flow" aria-label="From found in the source to the rows that train">' in page
    assert "age 122 index events 100 476 or more index events 423 to 432" in texts(page)


def test_people_who_object_are_said_to_be_in_no_number(facts: NightFacts) -> None:
    assert "Patients who object are in no number here" in texts(site_page(facts))


def test_rows_of_too_few_patients_tell_nothing_of_how_they_came_about(facts: NightFacts) -> None:
    words = texts(site_page(with_flow(facts, attrition(60, 4))))
    assert "The rows with a known outcome are of fewer than 5 patients, so how they came about is told in the" in words
    assert "122" not in words


def test_a_night_that_counted_no_index_events_says_so(facts: NightFacts) -> None:
    assert "Nobody got so far as to count index events." in texts(site_page(replace(facts, pulled=PullReport())))


def test_a_small_part_is_told_with_the_others_and_the_page_says_if_none_is(facts: NightFacts) -> None:
    def divided(validation: int, test: int) -> Division:
        counts = {"training": 300, "validation": validation, "test": test}
        aside = PartCount("validation, test and newest", validation + test, validation + test)
        return Division(tuple(PartCount(*one, one[1]) for one in counts.items()), aside, 300 + validation + test)

    words = texts(site_page(with_flow(facts, attrition(323, 323), divided(3, 20))))
    assert "training 300 patients 300 rows validation, test and newest 23 patients 23 rows" in words
    words = texts(site_page(with_flow(facts, attrition(303, 303), divided(0, 3))))
    assert "How these rows are divided is not told, because it would tell of too few patients." in words
    assert not re.search(r"\btraining 300\b", words)


# ---------------------------------------------------------------------------------------------------------------
# An attack: all that a page tells is a bound, and whatever breaks no bound may be


Bound = tuple[int, int]


def bound(cell: str) -> Bound:
    """The least and the most that a cell may mean."""
    low, *high = (int(one.replace(",", "")) for one in re.findall(r"[\d,]+\d|\d", cell))
    if FEW in cell:
        return 1, low - 1
    return (low, 10**6) if "or more" in cell else (low, high[0] if high else low)


def open_to_attack(rows: Sequence[dict[str, str]], known: Sequence[int], lost: str, left: str) -> list[set[int]]:
    """What each hidden loss may be. `known`: what the page tells elsewhere of what comes out."""
    steps = [(row[lost], bound(row[left])) for row in rows if row[lost]]
    start = bound(rows[0][left])
    ranges = [range(low, min(high, 30) + 1) for low, high in (bound(cell) for cell, _ in steps)]
    exact = {place: low for place, (low, high) in enumerate(bound(cell) for cell, _ in steps) if low == high}
    free = [place for place in range(len(steps)) if place not in exact]
    found: list[set[int]] = [set() for _ in free]
    for chosen in product(*(ranges[place] for place in free)):
        losses = {**exact, **dict(zip(free, chosen, strict=True))}
        for end in known:
            counts = [end]
            for place in reversed(range(len(steps))):
                counts.append(counts[-1] + losses[place])
            bounds = [start, *(left for _, left in steps)]
            if all(low <= count <= high for count, (low, high) in zip(counts[::-1], bounds, strict=True)):
                for place, value in enumerate(chosen):
                    found[place].add(value)
    return found


@pytest.mark.parametrize(("lost", "left"), [("patients left out", "patients left"), ("left out", "left")])
@pytest.mark.parametrize("small", [((1, 1, 1),), ((4, 1, 1), (1, 1, 1)), ((4, 4, 4), (2, 0, 1), (9, 1, 3))])
def test_whoever_reads_everything_on_the_page_finds_no_hidden_number(
    facts: NightFacts, small: tuple[tuple[int, int, int], ...], lost: str, left: str
) -> None:
    losses = [
        Loss("no index event of the study", 40, 30, 35),
        Loss("age", 12, 8, 12),
        *(Loss(f"rule {place}", *one) for place, one in enumerate(small)),
        Loss("the outcome is still open", 9, 7, 8),
    ]
    facts = with_flow(facts, Attrition("Encounter", tuple(losses), 400, 400), facts.division)
    assert facts.outcome is not None
    assert (facts.outcome.rows, facts.outcome.patients) == (400, 400), "the page's figures tell them, too"
    rows = attrition_rows(facts.pulled or PullReport(), None, facts.study)
    page = texts(site_page(facts))
    for row in rows:
        assert row[left] in page
    for values in open_to_attack(rows, [400], lost, left):
        assert {1, 2, 3, 4} <= values or min(values) >= 5


def test_the_page_does_not_tell_how_much_was_read(facts: NightFacts) -> None:
    """Patients and encounters are what a small study reads, so their number would be what is left at the top."""
    assert facts.pulled is not None
    total = facts.pulled.read.total()
    words = texts(site_page(facts))
    assert f"{total:,}" not in words
    assert "33 of the records that were read are in quarantine." in words
