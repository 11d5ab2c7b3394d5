"""What may be told of the way to the rows: nobody works a hidden number out, not even who knows how it is hidden."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product

import pytest

from spinney.cohort.attrition import Attrition, Division, Loss, PartCount
from spinney.cohort.flow import Span, Stage, floor_of, flow, parts_told
from tests.made_up import study

FLOOR, SMALL = 5, {1, 2, 3, 4}


def attrition(*losses: tuple[int, int, int], rows: int = 20, patients: int = 15) -> Attrition:
    named = [Loss(f"rule {place}", *loss) for place, loss in enumerate(losses)]
    return Attrition("Encounter", tuple(named), rows, patients)


def told(stages: list[Stage] | None) -> list[list[str]]:
    counts = [[stage.lost, stage.left] for stage in stages or []]
    return [[f"{one.events} {one.patients}" for one in some if one] for some in counts]


def test_without_a_floor_everything_is_as_it_is() -> None:
    stages = flow(attrition((30, 3, 9), (2, 1, 1), (0, 0, 0), (4, 1, 2)))
    assert told(stages) == [["56 20"], ["30 3", "26 17"], ["2 1", "24 16"], ["0 0", "24 16"], ["4 1", "20 15"]]


def test_every_step_says_what_it_counts() -> None:
    stages = flow(attrition((30, 3, 9), (2, 1, 1), (0, 0, 0), (4, 1, 2))) or []
    assert [stage.title for stage in stages] == [
        "found in the source",
        "index events",
        "",
        "rows",
        "rows with a known outcome",
    ]
    units = [(stage.lost.unit if stage.lost else "", stage.left.unit) for stage in stages]
    assert units == [
        ("", "encounters"),
        ("encounters", "index events"),
        ("index events", "index events"),
        ("index events", "rows"),
        ("rows", "rows"),
    ]


def test_what_is_left_above_a_hidden_loss_is_from_the_least_to_the_most_that_it_can_be() -> None:
    stages = flow(attrition((30, 3, 9), (7, 2, 6), (0, 0, 0), (6, 5, 6)), FLOOR)
    assert told(stages) == [
        ["63 22 to 28"],
        ["30 fewer than 5", "33 21 to 24"],
        ["7 fewer than 5", "26 20"],
        ["0 0", "26 20"],
        ["6 5", "20 15"],
    ]


def test_many_events_of_few_patients_are_those_of_few_patients() -> None:
    stages = flow(attrition((30, 9, 9), (300, 0, 2), (0, 0, 0), (6, 5, 6)), FLOOR)
    assert told(stages)[1:3] == [["30 9", "31 or more 20"], ["5 or more 0", "26 20"]]


def test_of_rows_of_too_few_patients_nothing_is_told() -> None:
    assert flow(attrition((6, 6, 6), (0, 0, 0), (0, 0, 0), rows=80, patients=4), FLOOR) is None
    assert told(flow(attrition((6, 6, 6), (0, 0, 0), (0, 0, 0), rows=0, patients=0), FLOOR))[-1] == ["0 0", "0 0"]


def test_the_floor_is_the_study_s_but_never_fewer_than_five() -> None:
    assert floor_of(study()) == 5
    for smallest, floor in ((2, 5), (11, 11)):
        assert floor_of(study().with_settings(privacy={"smallest_leaf": smallest})) == floor


def losses() -> Iterator[tuple[int, int, int]]:
    """Whatever a step can leave out: events, patients who lose their last by it, patients whose events they are."""
    for events, touched in product(range(8), range(8)):
        if bool(events) == bool(touched) and touched <= events:
            yield from ((events, lost, touched) for lost in range(touched + 1))


@pytest.mark.parametrize("patients", [0, 15])
def test_who_knows_how_numbers_are_hidden_finds_each_hidden_loss_as_likely_to_be_any(patients: int) -> None:
    """Every input that gives one output is looked at: a number that could be worked out would be the same in all."""
    same = defaultdict(list)
    for chosen in product(losses(), losses()):
        whole = attrition(*chosen, (0, 0, 0), rows=patients, patients=patients)
        same[str(flow(whole, FLOOR))].append(chosen)
    for inputs in same.values():
        for step in (0, 1):
            events, lost, touched = ({one[step][what] for one in inputs} for what in (0, 1, 2))
            if min(touched) in SMALL:
                assert touched == SMALL, "whose events they are is as free as the number of the events"
                assert events in (SMALL, {5, 6, 7})
            if min(lost) in SMALL:
                assert lost == SMALL


def division(training: int, validation: int, test: int, newest: int = 0, both: int = 0) -> Division:
    """`both`: patients of the newest rows who are in training, too; everybody has two rows."""
    counts = {"training": training, "validation": validation, "test": test, "newest": newest}
    parts = tuple(PartCount(name, 2 * people, people) for name, people in counts.items())
    aside = validation + test + newest
    return Division(parts, PartCount("the others", 2 * aside, aside), training + aside - both)


def names(told: list[PartCount]) -> list[str]:
    return [part.name for part in told]


def test_parts_are_told_where_none_is_small() -> None:
    assert names(parts_told(division(60, 0, 20), FLOOR)) == ["training", "test"]
    assert names(parts_told(division(60, 10, 20, 9), FLOOR)) == ["training", "validation", "test", "newest"]
    assert names(parts_told(division(3, 1, 1))) == ["training", "validation", "test"]


def test_a_small_part_is_told_with_the_others_and_not_at_all_where_the_rest_would_tell_it() -> None:
    assert names(parts_told(division(60, 3, 20), FLOOR)) == ["training", "the others"]
    assert parts_told(division(60, 0, 3), FLOOR) == []
    assert parts_told(division(3, 0, 60), FLOOR) == []
    assert parts_told(division(0, 0, 0), FLOOR) == []


def test_what_two_parts_have_in_common_is_a_group_as_well() -> None:
    assert names(parts_told(division(60, 0, 20, 9, both=9), FLOOR)) == ["training", "test", "newest"]
    assert names(parts_told(division(60, 0, 20, 9, both=2), FLOOR)) == []
    assert names(parts_told(division(60, 0, 20, 9, both=7), FLOOR)) == ["training", "the others"]


def test_a_span_says_what_is_known_of_it() -> None:
    spans = {
        Span(1200, 1200): "1,200",
        Span(1, 4): "fewer than 5",
        Span(7, 1010): "7 to 1,010",
        Span(8, None): "8 or more",
    }
    assert {span: str(span) for span in spans} == spans
