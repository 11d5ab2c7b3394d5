"""A sent message as text says what was sent: a reader of the text alone comes to the same answers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from spinney.errors import Refused
from spinney.federation.messages import Description, Done, GrownForest, MaskedCounts, Verdict
from spinney.federation.seam import Message, Parcel
from spinney.forest.codec import pack_forest
from spinney.forest.export import grid_of
from spinney.forest.tree import LEAF, Forest
from spinney.house import encoding as wire
from spinney.house.round_messages import Ask, Over, orders_of
from spinney.reports.messages import message_lines, tree_lines
from spinney.rows.encode import columns_of
from spinney.study.study import Study

STUDY = Study.model_validate(
    {
        "name": "wood",
        "features": [
            {"name": "age", "kind": "continuous", "range": [20, 120], "unit": "a", "cuts": [45, 70]},
            {"name": "smoker", "kind": "binary"},
            {"name": "colour", "kind": "categorical", "categories": ["red", "blue"]},
        ],
        "label": {"name": "fell"},
    }
)
COLUMNS = columns_of(STUDY.features)
FOREST = Forest(
    np.array([0, 1, LEAF, LEAF, 3, LEAF, 0, LEAF, LEAF, LEAF], dtype=np.int16),
    np.array([0.25, 0.5, 0, 0, 0.5, 0, 1, 0, 0, 0]),
    np.array([True, False, False, False, True, False, False, False, False, False]),
    np.array([0, 0, 0.125, 0.5, 0, 0.75, 0, 1.0, 0.375, 0.25]),
)


def said(message: Message) -> list[str]:
    return message_lines(STUDY, type(message).__name__, wire.squeeze(wire.encode_message(message)))


def answer(lines: list[str], row: dict[str, Any]) -> float:
    """What a person finds who follows the text with a patient's values in their own units."""
    depth, place = 0, 0
    while True:
        line = lines[place]
        if line.startswith("  " * depth) and not line[2 * depth :].startswith((" ", "if ")):
            found = re.fullmatch(r" *fell: ([\d.]+) %", line)
            assert found
            return float(found[1])
        if line.startswith("  " * depth + "if ") and true_of(line.strip(), row):
            depth += 1
        elif line.startswith("  " * depth + "if "):
            while not lines[place + 1].startswith("  " * depth + "if "):
                place += 1
        place += 1


def true_of(question: str, row: dict[str, Any]) -> bool:
    found = re.fullmatch(r"if (\w+) is (not |at most |above )?([\w.]+)( a)?( or unknown)?:", question)
    assert found, question
    name, how, word, _, unknown = found.groups()
    value = row[name]
    if word in ("known", "unknown"):
        return (value is None) is (word == "unknown")
    if value is None:
        return unknown is not None
    if how in ("at most ", "above "):
        return (value <= float(word)) is (how == "at most ")
    if word in ("yes", "no"):
        return value is (word == "yes")
    return (value == word) is (how is None)


@pytest.mark.parametrize("number", range(200))
def test_a_tree_as_text_answers_as_the_tree_does(number: int) -> None:
    rng = np.random.default_rng(number)
    row = {
        "age": rng.choice([None, float(rng.integers(20, 121))]),
        "smoker": rng.choice([None, True, False]),
        "colour": rng.choice([None, "red", "blue"]),
    }
    unknown = [row["age"] is None, row["smoker"] is None, row["colour"] is None, row["colour"] is None]
    values = [
        0 if unknown[0] else (row["age"] - 20) / 100, int(bool(row["smoker"])), row["colour"] == "red",
        row["colour"] == "blue",
    ]  # fmt: skip
    node, stack = 0, FOREST[0]
    while stack.feature[node] != LEAF:
        column = stack.feature[node]
        left = stack.missing_left[node] if unknown[column] else values[column] <= stack.threshold[node]
        right = node + 1 + subtree(stack, node + 1)
        node = node + 1 if left else right
    assert answer(tree_lines(FOREST[0], COLUMNS, "fell"), row) == 100 * stack.probability[node]


def subtree(tree: Forest, node: int) -> int:
    if tree.feature[node] == LEAF:
        return 1
    left = subtree(tree, node + 1)
    return 1 + left + subtree(tree, node + 1 + left)


def test_a_forest_shows_one_tree_and_says_how_many_there_are() -> None:
    rounding = grid_of(COLUMNS, STUDY.privacy.probability_precision)
    content = pack_forest(FOREST, rounding)
    lines = message_lines(STUDY, "Parcel", content)
    assert lines[0] == "2 trees of 10 nodes; no counts and no patient. Tree 1:"
    assert "if age is at most 45 a or unknown:" in lines
    assert message_lines(STUDY, "Parcel", content, tree=2)[-1] == "fell: 25 %"


def test_the_vector_is_a_table_in_the_study_s_units() -> None:
    vector = np.array([0.5, 0.125, np.nan, np.nan])
    present = np.array([True, True, True, False])
    lines = said(Description(120, vector, present, b"k" * 32, b"s" * 64))
    assert lines[0] == "rows: 120"
    assert "  age          70 a on average" in lines
    assert "  smoker       12.5 %" in lines
    assert "  colour=red   not told: too few patients" in lines
    assert "features: without colour=blue" in lines
    assert f"key: {(b'k' * 16).hex()}... (32 bytes)" in lines


def test_hidden_counts_are_said_to_mean_nothing_alone() -> None:
    (line,) = said(MaskedCounts(np.arange(20, dtype=np.uint64)))
    assert line == (
        "counts: 20 hidden numbers, without meaning until all houses' are added up: 0, 1, 2, 3, 4, 5, 6, 7, ..."
    )


def test_other_messages_are_told_field_by_field() -> None:
    assert said(Done({"auroc": 0.75})) == ["figures:", "  auroc: 0.75"]
    assert said(Verdict({"ash": np.array([True, False])}, {"elm": "format"})) == [
        "scorable:", "  ash: yes to 1 of 2", "refused:", "  elm: format",
    ]  # fmt: skip
    grown = GrownForest(Parcel("ash", "ab" * 32, 1200), "cd" * 32)
    assert said(grown)[0] == "forest: 1,200 sealed bytes of ash, digest abababababababab"


def test_an_ask_is_told_with_its_orders() -> None:
    asked = Ask("score", 1, orders_of({"ash": Done({}), "elm": Done({})}), {})
    lines = message_lines(STUDY, "Ask", wire.squeeze(wire.pack(asked)))
    assert lines[0] == "step: score, attempt 1"
    assert lines[1].startswith("to ash, elm: that a house has its model")
    over = message_lines(STUDY, "Over", wire.pack(Over("", "too few sites")))
    assert "void: too few sites" in over


@pytest.mark.parametrize("kind", ["Parcel", "Ask", "Over", "Done"])
def test_what_is_no_such_message_is_refused(kind: str) -> None:
    with pytest.raises(Refused):
        message_lines(STUDY, kind, b"nonsense")
