"""The checklist has every item once, answers what the evidence answers, and leaves the rest to people."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spinney.choice.evidence import evidence_of
from spinney.connectors.mlflow import lineage_of
from spinney.reports.tripod import PEOPLE, checklist
from tests.spinney.in_process import Wood, cohorts, study

ITEMS = (
    *("1", "2", "3a", "3b", "3c", "4", "5a", "5b", "6a", "6b", "6c", "7", "8a", "8b", "8c", "9a", "9b", "9c"),
    *("10", "11", "12a", "12b", "12c", "12d", "12e", "12f", "12g", "13", "14", "15", "16", "17"),
    *("18a", "18b", "18c", "18d", "18e", "18f", "19", "20a", "20b", "20c", "21", "22", "23a", "23b", "24", "25"),
    *("26", "27a", "27b", "27c"),
)


@pytest.fixture(scope="module")
def wood() -> Wood:
    """A finished round of four sites."""
    made = Wood(study(), cohorts(study()))
    made.run()
    return made


def told(wood: Wood, **changes: Any) -> dict[str, str]:
    outcome = wood.outcomes["elm"]
    evidence = {**evidence_of(outcome), **changes}
    text = checklist(wood.study, lineage_of(wood.study, "elm", outcome.model, 1), evidence)
    rows = re.findall(r"^\| (\d+[a-g]?) \| .*? \| (.*) \|$", text, re.MULTILINE)
    assert tuple(item for item, _ in rows) == ITEMS
    answered = sum(PEOPLE not in words for _, words in rows)
    assert f"{answered} of {len(ITEMS)} items are answered" in text
    return dict(rows)


def test_figures_are_the_registered_ones(wood: Wood) -> None:
    figure = wood.outcomes["elm"].figures["auroc"]
    assert f"auroc {figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})" in told(wood)["23a"]


def test_what_nobody_measured_is_not_claimed(wood: Wood) -> None:
    assert told(wood, test={})["23a"] == "too few test patients for figures"
    for item in ("2", "18a", "18b", "19", "25"):
        assert told(wood)[item] == PEOPLE


def test_rows_are_rounded(wood: Wood) -> None:
    assert told(wood, rows=31337)["21"] == "about 31340 rows at this site"


def test_words_of_others_break_no_table(wood: Wood) -> None:
    succession = {"champion": 1, "reason": "a | b\nc"}
    assert told(wood, succession=succession)["24"] == "against version 1: a / b c"
