"""Sites on a map: a point each in the plane, as far apart as their characteristic vectors are, as well as that goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.errors import Refused
from spinney.rows.clusters import Metric, distances

DECIMALS = 2
FARTHEST = 1e5  # vectors have some thousand coordinates in 0..1


@dataclass(frozen=True)
class SiteMap:
    """Where the sites of a round lie, who learned together, and which share of the distances' spread that shows.

    Checked when it is made and when it arrives: it comes from a coordinator whom nobody has to trust.
    """

    sites: tuple[str, ...] = ()
    places: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))
    clusters: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    shown: float = 0.0

    def __post_init__(self) -> None:
        count = len(self.sites)
        _require(self.places.shape == (count, 2) and self.clusters.shape == (count,), "a place and a cluster per site")
        _require(list(self.sites) == sorted({*self.sites}), "every site once, in the order of their names")
        _require(bool(np.all(np.abs(self.places) <= FARTHEST)), "places are finite and not far away")
        _require(
            _rounded(self.places) and 0 <= self.shown <= 1 and _rounded(self.shown), "places and share are rounded"
        )
        _require(bool(np.all((self.clusters >= 0) & (self.clusters < max(count, 1)))), "no more clusters than sites")

    def __len__(self) -> int:
        return len(self.sites)

    @property
    def place_of(self) -> dict[str, tuple[float, float]]:
        """A place per site."""
        return {site: (float(x), float(y)) for site, (x, y) in zip(self.sites, self.places, strict=True)}

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Who learned together."""
        together: dict[int, list[str]] = {}
        for site, cluster in zip(self.sites, self.clusters.tolist(), strict=True):
            together.setdefault(cluster, []).append(site)
        return [tuple(members) for _, members in sorted(together.items())]


def site_map(vectors: Mapping[str, ArrayLike], groups: Sequence[Sequence[str]], algorithm: Any) -> SiteMap:
    """The sites of some groups on one map, by the distance that the algorithm's settings name, if they name one."""
    cluster_of = {site: number for number, members in enumerate(groups) for site in members}
    names = tuple(sorted(cluster_of))
    if not names:
        return SiteMap()
    kind: Metric = getattr(algorithm, "distance", "euclidean")
    power: float = getattr(algorithm, "minkowski_p", 3.0)
    found, shown = places(names, np.stack([vectors[name] for name in names]), kind, power)
    return SiteMap(
        names,
        np.array([found[name] for name in names]),
        np.array([cluster_of[name] for name in names], dtype=np.int64),
        round(shown, DECIMALS),
    )


def places(
    names: Sequence[str], vectors: ArrayLike, metric: Metric = "euclidean", p: float = 3.0
) -> tuple[dict[str, tuple[float, float]], float]:
    """A place per site by classical scaling, and which share of the distances' spread the plane shows.

    Sites that share no feature are drawn half as far again as the farthest pair that does. Signs are fixed, so the
    same vectors give the same map.
    """
    apart = distances(vectors, metric, p)
    if len(names) < 2:
        return dict.fromkeys(names, (0.0, 0.0)), 1.0
    finite = np.isfinite(apart)
    apart = np.where(finite, apart, 1.5 * apart[finite].max())
    centred = np.eye(len(names)) - 1 / len(names)
    values, axes = np.linalg.eigh(-centred @ apart**2 @ centred / 2)
    largest = np.argsort(-values, kind="stable")[:2]
    axes = axes[:, largest] * np.sqrt(np.maximum(values[largest], 0))
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    shown = float(np.maximum(values[largest], 0).sum() / (np.maximum(values, 0).sum() or 1.0))
    rounded = np.round(axes, DECIMALS) + 0.0
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, rounded, strict=True)}, min(shown, 1.0)


def _rounded(values: NDArray[np.float64] | float) -> bool:
    return bool(np.all(np.asarray(values) == np.round(values, DECIMALS)))


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise Refused(f"a map breaks the rule: {rule}")
