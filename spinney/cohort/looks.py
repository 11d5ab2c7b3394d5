"""Features that read events alike share the reading, and those that look back equally far share the look.

A study of thousands of features asks for few series of values, in a few windows each, and for several statistics of
every one. Each series is read once, each look at it is taken once, and all its statistics are computed in one pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from spinney.cohort.recipes import event_features, unit_of
from spinney.study.definition import COUNTING, EventFeature, length
from spinney.study.study import Study


@dataclass(frozen=True)
class Look:
    """A series of values as far back as some features see it, and which statistics of it they are."""

    series: int
    """Place of the first feature that reads events so; it stands for all that do."""
    back: int | None
    """Seconds; none: without end."""
    statistics: Mapping[str, tuple[int, ...]]
    """Places of the features, by what they compute."""
    is_word: bool

    @property
    def places(self) -> list[int]:
        """Of all its features."""
        return [place for places in self.statistics.values() for place in places]


def is_word(source: EventFeature) -> bool:
    """Whether a feature's figure is a word and no number."""
    return source.value == "text" and source.statistic not in COUNTING


def series_of(study: Study) -> dict[int, int]:
    """By the place of a feature the place of the first one that reads events as it does."""
    first: dict[Hashable, int] = {}
    return {place: first.setdefault(_reading(study, place, one), place) for place, one in event_features(study).items()}


def looks_of(study: Study) -> list[Look]:
    """All looks of a study; those at one series are neighbours."""
    found: dict[tuple[int, int | None], dict[str, list[int]]] = {}
    features = event_features(study)
    for place, series in series_of(study).items():
        one = features[place]
        back = None if one.window is None else int(length(one.window).total_seconds())
        found.setdefault((series, back), {}).setdefault(one.statistic, []).append(place)
    return [
        Look(series, back, {name: tuple(places) for name, places in sorted(some.items())}, is_word(features[series]))
        for (series, back), some in sorted(found.items(), key=lambda one: one[0][0])
    ]


def alike(looks: Sequence[Look], some: Sequence[int]) -> list[list[int]]:
    """Of some looks, by their numbers, those together that want the same statistics."""
    found: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for number in some:
        found.setdefault((looks[number].is_word, tuple(looks[number].statistics)), []).append(number)
    return [*found.values()]


def _reading(study: Study, place: int, one: EventFeature) -> Hashable:
    """All that decides which events a feature reads, and what their values are to it."""
    events = (one.kind, frozenset(one.codes), one.classes, one.statuses, one.answers)
    value = (one.value, one.statistic in COUNTING, one.censored, one.molar_mass, unit_of(study, place))
    words = (tuple(one.meaning.items()), study.features[place].categories) if one.value == "text" else ()
    return events, value, words
