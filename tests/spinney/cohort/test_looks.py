"""Features share readings and looks where they mean the same, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spinney.cohort.looks import alike, looks_of, series_of
from tests.made_up import GLUCOSE, ORDERED, WEIGHT, crowd, feature, frame, observation, study, write

WORDS = {
    "name": "smoking",
    "kind": "categorical",
    "categories": ["never", "current"],
    "source": {
        "kind": "Observation",
        "codes": ["l|s"],
        "value": "text",
        "statistic": "last",
        "meaning": {"a|1": "never"},
    },
}


def also(**source: Any) -> dict[str, Any]:
    return {**WORDS, "name": "also", "source": {**WORDS["source"], **source}}


def test_windows_and_statistics_of_the_same_values_are_read_once() -> None:
    of = study(feature("a", "last"), feature("b", "mean"), feature("c", "last", window="2d"), feature("d", "max"))
    assert set(series_of(of).values()) == {0}
    assert [(one.back, dict(one.statistics)) for one in looks_of(of)] == [
        (None, {"last": (0,), "max": (3,), "mean": (1,)}),
        (2 * 86_400, {"last": (2,)}),
    ]


@pytest.mark.parametrize(
    "other",
    [
        feature("b", "last", codes=[WEIGHT, GLUCOSE]),
        feature("b", "last", statuses=["final"]),
        feature("b", "last", unit="g"),
        feature("b", "last", censored="bound"),
        feature("b", "last", molar_mass=18.0),
        feature("b", "last", value="days") | {"unit": None},
        feature("b", "count"),
        feature("b", "last", kind="Procedure"),
    ],
)
def test_what_reads_events_otherwise_is_a_series_of_its_own(other: dict[str, Any]) -> None:
    assert series_of(study(feature("a", "last"), other)) == {0: 0, 1: 1}


@pytest.mark.parametrize("other", [also(meaning={"a|1": "current"}), also() | {"categories": ["never"]}])
def test_words_that_mean_something_else_are_a_series_of_their_own(other: dict[str, Any]) -> None:
    assert series_of(study(WORDS, also())) == {0: 0, 1: 0}
    assert series_of(study(WORDS, other)) == {0: 0, 1: 1}


def test_codes_in_another_order_are_the_same() -> None:
    of = study(feature("a", "last", codes=[WEIGHT, GLUCOSE]), feature("b", "last", codes=[GLUCOSE, WEIGHT]))
    assert series_of(of) == {0: 0, 1: 0}


def test_looks_that_want_the_same_statistics_are_taken_together_and_words_apart() -> None:
    days = [feature(f"w{n}", "last", window=f"{n}d") for n in (1, 2)]
    looks = looks_of(study(*days, feature("often", "count"), WORDS))
    assert alike(looks, range(len(looks))) == [[0, 1], [2], [3]]


def test_a_feature_is_the_same_among_others_and_alone(tmp_path: Path) -> None:
    heavy = [observation(f"2023-03-0{n}", 70_000.0 + n, unit="g", who="p1") for n in range(1, 8)]
    more = [
        feature(f"{name}_{days}d", name, window=f"{days}d") for days in (3, 30) for name in ("last", "std", "count")
    ]
    in_grams = feature("in_g", "mean", unit="g") | {"unit": "g"}
    features = [*ORDERED, *more, in_grams, feature("again", "median")]
    write(tmp_path / "fhir", [*crowd(20), *heavy])
    whole = frame(tmp_path, study(*features), [])
    for one in (features[0], more[1], more[4], in_grams):
        alone = frame(tmp_path, study(one), [])
        assert alone["patient"].equals(whole["patient"])
        assert alone[one["name"]].equals(whole[one["name"]]), one["name"]
