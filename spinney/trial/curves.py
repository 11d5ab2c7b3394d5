"""How the gain grows: with the number of sites (the thesis' figures 7.7 and 7.8), and with the trees of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.choice.split_votes import gain_of
from spinney.trial.repeats import Draw, reseeded
from spinney.trial.simulate import Simulation, simulate
from spinney.trial.summary import ALONE

if TYPE_CHECKING:
    from spinney.study.study import Study

TREES = (10, 30, 100, 300)
MOST_SUBSETS = 12  # of one size: their number grows without end
Said = Callable[[str], None]


@dataclass(frozen=True)
class Point:
    """A site's gain at one size: the mean, the least and the most over what was tried."""

    size: int
    mean: float
    least: float
    most: float
    tried: int


def by_sites(study: Study, draw: Draw, repeats: int, said: Said, **how: Any) -> dict[str, list[Point]]:
    """Gain over local against the number of sites, over subsets; each site only by those that it is in."""
    gains: dict[str, dict[int, list[float]]] = {}
    for repeat in range(repeats):
        again = reseeded(study, repeat)
        cohorts = draw(again)
        for members in subsets(sorted(cohorts), study.privacy.fewest_scorers, again.split.seed):
            said(f"{len(members)} sites")
            result = simulate(again, {site: cohorts[site] for site in members}, **how)
            _note(gains, len(members), result)
    return _points(gains)


def by_trees(study: Study, draw: Draw, repeats: int, said: Said, **how: Any) -> dict[str, list[Point]]:
    """Gain over local (of as many trees) against the number of trees that each site lends."""
    gains: dict[str, dict[int, list[float]]] = {}
    for trees in TREES:
        fewer = study.with_settings(forest={"trees": trees})
        for repeat in range(repeats):
            said(f"{trees} trees")
            again = reseeded(fewer, repeat)
            _note(gains, trees, simulate(again, draw(again), **how))
    return _points(gains)


def subsets(sites: Sequence[str], fewest: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Groups of sites of every size from the fewest that can sum on; where there are many of a size, some by lot."""
    rng = np.random.default_rng([seed, len(sites)])
    for size in range(fewest, len(sites) + 1):
        every = list(combinations(sites, size))
        some = sorted(rng.permutation(len(every))[:MOST_SUBSETS].tolist())
        yield from (every[place] for place in some)


def _note(gains: dict[str, dict[int, list[float]]], size: int, result: Simulation) -> None:
    for site, outcome in result.outcomes.items():
        gain = np.nan if outcome.tested is None else gain_of(outcome.tested, "chosen", ALONE)
        if np.isfinite(gain):
            gains.setdefault(site, {}).setdefault(size, []).append(gain)


def _points(gains: Mapping[str, Mapping[int, Sequence[float]]]) -> dict[str, list[Point]]:
    return {
        site: [
            Point(size, float(np.mean(values)), min(values), max(values), len(values))
            for size, values in sorted(by_size.items())
        ]
        for site, by_size in sorted(gains.items())
    }
