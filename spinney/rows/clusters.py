"""Which sites learn together: farthest-first clusters of the sites' characteristic vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Metric = Literal["euclidean", "manhattan", "minkowski"]
NO_STRUCTURE = 0.25  # a mean silhouette up to here says that there are no clusters (Kaufman and Rousseeuw, 1990)


def distances(vectors: ArrayLike, metric: Metric = "euclidean", p: float = 3.0) -> NDArray[np.float64]:
    """Distance between every two rows of `vectors`; `p` is the exponent of Minkowski and of nothing else.

    NaN marks a feature that a site doesn't have. Two sites are compared on the coordinates that both have, and the
    sum of |difference|^p over these is multiplied by (all coordinates / shared coordinates) before the root is taken,
    as if the absent ones differed as much as the shared ones on average. Sites that share none are infinitely apart.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    power = {"euclidean": 2.0, "manhattan": 1.0, "minkowski": p}[metric]
    if power < 1:
        raise ValueError(f"a Minkowski distance needs p of at least 1, got {power:g}")
    apart = np.array([_from_one(row, rows, power) for row in rows]).reshape(len(rows), len(rows))
    np.fill_diagonal(apart, 0.0)  # a site without any feature is still at its own place
    return apart


def _from_one(row: NDArray[np.float64], rows: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    gaps = np.abs(rows - row)
    shared = np.count_nonzero(~np.isnan(gaps), axis=1)
    sums = np.nansum(gaps**power, axis=1) * (gaps.shape[1] / np.maximum(shared, 1))
    return np.where(shared > 0, sums ** (1 / power), np.inf)


def farthest_first(
    names: Sequence[str],
    vectors: ArrayLike,
    k: int,
    metric: Metric = "euclidean",
    first: str | None = None,
    seed: int = 0,
    *,
    p: float = 3.0,
    fewest: int = 1,
) -> list[tuple[str, ...]]:
    """At most `k` clusters of sites, each with its centroid first and then its other members by name.

    The first centroid is `first`, or drawn with `seed`. Then the site that is farthest from its nearest centroid
    becomes a centroid, until there are `k` or every site coincides with one. Each site joins its nearest centroid. A
    cluster with fewer than `fewest` members joins the one whose centroid is nearest, the smallest cluster first, until
    none is too small or one is left. Ties go to the name that sorts first, so the order of `names` does not matter.
    """
    if k < 1:
        raise ValueError(f"sites need at least one cluster, got k={k}")
    if len(set(names)) != len(names) or len(names) != len(np.asarray(vectors)):
        raise ValueError("every site needs a name of its own and one vector")
    if first is not None and first not in names:
        raise ValueError(f"the first centroid {first!r} is not among the {len(names)} sites")
    if not names:
        return []
    order = sorted(range(len(names)), key=lambda site: names[site])
    by_name = [names[site] for site in order]
    apart = distances(np.asarray(vectors, dtype=np.float64)[order], metric, p)
    start = by_name.index(first) if first is not None else int(np.random.default_rng(seed).integers(len(by_name)))
    clusters = _merged(_assigned(_centroids(apart, start, k), apart), apart, fewest)
    return [(by_name[centroid], *(by_name[site] for site in members)) for centroid, members in clusters.items()]


def _centroids(apart: NDArray[np.float64], start: int, k: int) -> list[int]:
    """Sites are numbered by name here and below, so the first of equals is the first by name."""
    chosen = [start]
    while len(chosen) < k:
        to_nearest = apart[:, chosen].min(axis=1)
        farthest = int(np.argmax(to_nearest))
        if to_nearest[farthest] == 0:
            break
        chosen.append(farthest)
    return chosen


def _assigned(centroids: list[int], apart: NDArray[np.float64]) -> dict[int, list[int]]:
    """Members of each centroid, without the centroid itself."""
    clusters: dict[int, list[int]] = {centroid: [] for centroid in centroids}
    for site in sorted(set(range(len(apart))) - set(centroids)):
        clusters[_nearest(site, centroids, apart)].append(site)
    return clusters


def _merged(clusters: dict[int, list[int]], apart: NDArray[np.float64], fewest: int) -> dict[int, list[int]]:
    """Small clusters go where their centroid is nearest; the cluster that takes them in keeps its own centroid."""
    clusters = dict(clusters)
    while len(clusters) > 1:
        smallest = min(clusters, key=lambda centroid: (len(clusters[centroid]), centroid))
        if 1 + len(clusters[smallest]) >= fewest:
            break
        movers = [smallest, *clusters.pop(smallest)]
        home = _nearest(smallest, clusters, apart)
        clusters[home] = sorted(clusters[home] + movers)
    return clusters


def _nearest(site: int, centroids: Sequence[int] | dict[int, list[int]], apart: NDArray[np.float64]) -> int:
    return min(centroids, key=lambda centroid: (apart[site, centroid], centroid))


def silhouette(groups: Sequence[Sequence[str]], names: Sequence[str], apart: NDArray[np.float64]) -> float:
    """Mean silhouette of the sites: how much nearer each is to its own group than to the next, 0 for one alone."""
    places = [[list(names).index(site) for site in members] for members in groups]
    worth = []
    for number, members in enumerate(places):
        for site in members:
            if len(members) == 1:
                worth.append(0.0)
                continue
            own = apart[site, members].sum() / (len(members) - 1)
            other = min(apart[site, group].mean() for place, group in enumerate(places) if place != number)
            worth.append((other - own) / max(own, other) if max(own, other) else 0.0)
    return float(np.mean(worth))


def best_separated(
    choices: Sequence[list[tuple[str, ...]]], names: Sequence[str], apart: NDArray[np.float64]
) -> list[tuple[str, ...]]:
    """The grouping with the highest silhouette; all together, the first choice, where none separates the sites."""
    best, worth = choices[0], NO_STRUCTURE
    for groups in choices[1:]:
        if len(groups) > 1 and np.isfinite(found := silhouette(groups, names, apart)) and found > worth:
            best, worth = groups, found
    return best
