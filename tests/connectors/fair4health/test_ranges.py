"""Ranges from what agents told about values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.fair4health.documents import read_fair4health
from spinney.connectors.fair4health.ranges import Ranges, ranges_of
from tests.connectors.fair4health.made import DRUGS, STEPS, agent, statistics, written

KEY = DRUGS["fhir_query"], DRUGS["fhir_path"]


def ranges(folder: Path, *agents: Any) -> Ranges:
    return ranges_of(read_fair4health(written(folder, {"dataset_sources": [*agents]})))


def test_a_range_holds_the_values_of_all_agents_and_zero(tmp_path: Path) -> None:
    told = ranges(tmp_path, agent(statistics(DRUGS, 4, 6)), agent(statistics(DRUGS, 2.5, 9), status="discarded"))
    assert told == {KEY: (0, 9)}
    assert ranges(tmp_path, agent(statistics(DRUGS, -3, -1))) == {KEY: (-3, 0)}


def test_a_variable_is_known_by_what_it_asks_because_statistics_call_it_otherwise(tmp_path: Path) -> None:
    told = ranges(tmp_path, agent(statistics(DRUGS, 0, 6), statistics(STEPS, 0, 20_000)))
    assert told[KEY] == (0, 6)
    assert len(told) == 2


@pytest.mark.parametrize("high", [0, None, "7", True, 1e300, float("nan"), float("inf"), 10**400])
def test_what_is_no_range_is_none(tmp_path: Path, high: Any) -> None:
    if isinstance(high, int) and high > 1:
        (tmp_path / "document.json").write_text(json.dumps(agent(statistics(DRUGS, 0, 7))).replace(" 7", f" {high}"))
        assert ranges_of(read_fair4health(tmp_path / "document.json")) == {}
    else:
        assert ranges(tmp_path, agent(statistics(DRUGS, 0, high))) == {}
