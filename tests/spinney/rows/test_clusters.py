"""Farthest-first clusters, on small cases and on the published SHELTER countries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score

from spinney.rows.clusters import best_separated, distances, farthest_first, silhouette

COUNTRIES = ("CZ", "DE", "EN", "FI", "FR", "IL", "IT", "NL")
SHELTER = np.array(
    [
        [0.72, 0.68, 0.59, 0.57, 0.82, 0.53, 0.82, 0.60, 0.31, 0.87, 0.92, 0.72, 0.63, 0.86, 0.66],
        [0.79, 0.45, 0.75, 0.70, 0.81, 0.61, 0.83, 0.64, 0.79, 0.70, 0.91, 0.81, 0.75, 0.90, 0.65],
        [0.72, 0.74, 0.38, 0.64, 0.87, 0.62, 0.87, 0.93, 0.88, 0.93, 0.93, 0.75, 0.86, 0.88, 0.65],
        [0.75, 0.41, 0.72, 0.29, 0.82, 0.54, 0.90, 0.75, 0.74, 0.87, 0.96, 0.91, 0.85, 0.93, 0.33],
        [0.76, 0.68, 0.53, 0.71, 0.58, 0.58, 0.84, 0.94, 0.88, 0.70, 0.92, 0.80, 0.89, 0.83, 0.57],
        [0.71, 0.66, 0.50, 0.77, 0.78, 0.84, 0.96, 0.75, 0.75, 0.87, 0.95, 0.76, 0.70, 0.93, 0.77],
        [0.73, 0.59, 0.57, 0.72, 0.62, 0.79, 0.92, 0.68, 0.67, 0.91, 0.90, 0.80, 0.81, 0.94, 0.84],
        [0.67, 0.47, 0.77, 0.53, 0.78, 0.56, 0.81, 0.74, 0.91, 0.75, 0.94, 0.72, 0.79, 0.87, 0.71],
    ]
)
# Published distances, upper triangle row by row.
MANHATTAN = (
    [1.64, 1.81, 2.23, 2.10, 1.72, 1.83, 1.67],
    [1.74, 1.60, 1.47, 1.62, 1.51, 0.94],
    [2.17, 1.13, 1.47, 1.76, 1.61],
    [2.26, 2.16, 2.12, 1.57],
    [1.80, 1.64, 1.64],
    [0.94, 1.70],
    [1.84],
)
EUCLIDEAN = (
    [0.63, 0.76, 0.77, 0.80, 0.64, 0.60, 0.71],
    [0.64, 0.59, 0.54, 0.51, 0.48, 0.30],
    [0.74, 0.43, 0.45, 0.56, 0.58],
    [0.72, 0.83, 0.78, 0.56],
    [0.55, 0.55, 0.52],
    [0.28, 0.57],
    [0.54],
)


def sets(clusters):
    return {frozenset(cluster) for cluster in clusters}


@pytest.mark.parametrize(("metric", "published"), [("manhattan", MANHATTAN), ("euclidean", EUCLIDEAN)])
def test_distances_between_the_shelter_countries_are_the_published_ones(metric, published):
    ours = distances(SHELTER, metric)
    assert ours[np.triu_indices(8, 1)] == pytest.approx(np.concatenate(published), abs=0.04)
    assert (ours == ours.T).all()
    assert (np.diag(ours) == 0).all()


def test_two_manhattan_clusters_of_the_shelter_countries_are_the_published_ones():
    clusters = farthest_first(COUNTRIES, SHELTER, 2, "manhattan", first="CZ")
    assert clusters == [("CZ", "EN", "FR", "IL", "IT"), ("FI", "DE", "NL")]


def test_two_euclidean_clusters_of_the_shelter_countries_are_the_published_ones():
    clusters = farthest_first(COUNTRIES, SHELTER, 2, "euclidean", first="DE")
    assert clusters == [("DE", "CZ", "FI", "IT", "NL"), ("EN", "FR", "IL")]


def test_three_published_clusters_do_not_follow_from_the_published_steps():
    clusters = farthest_first(COUNTRIES, SHELTER, 3, "euclidean", first="DE")
    assert [cluster[0] for cluster in clusters] == ["DE", "EN", "CZ"]
    assert sets(clusters) != sets([("CZ", "DE", "IT"), ("FI", "NL"), ("EN", "FR", "IL")])


def test_minkowski_of_one_and_two_are_manhattan_and_euclidean():
    assert distances(SHELTER, "minkowski", p=1) == pytest.approx(distances(SHELTER, "manhattan"))
    assert distances(SHELTER, "minkowski", p=2) == pytest.approx(distances(SHELTER, "euclidean"))


def test_an_absent_feature_counts_as_the_shared_ones_do_on_average():
    apart = distances([[0.0, 0.0, 0.0, np.nan], [0.2, 0.2, np.nan, 0.9]], "manhattan")
    assert apart[0, 1] == pytest.approx(0.4 * 4 / 2)
    assert distances([[0.0, np.nan], [0.3, 0.5]], "euclidean")[0, 1] == pytest.approx(0.3 * 2**0.5)


def test_sites_that_share_no_feature_are_infinitely_far_apart():
    assert distances([[0.1, np.nan], [np.nan, 0.1]]).tolist() == [[0.0, np.inf], [np.inf, 0.0]]
    assert distances([[np.nan], [0.1]]).tolist() == [[0.0, np.inf], [np.inf, 0.0]]


def test_a_site_without_any_feature_still_gets_a_cluster():
    clusters = farthest_first("abc", [[0.1], [0.2], [np.nan]], 2, first="a")
    assert clusters == [("a", "b"), ("c",)]


def test_the_site_farthest_from_its_nearest_centroid_is_the_next_centroid():
    clusters = farthest_first("abcd", [[0.0], [1.0], [0.6], [0.1]], 3, first="a")
    assert clusters == [("a", "d"), ("b",), ("c",)]


def test_a_tie_goes_to_the_name_that_sorts_first():
    next_centroid = farthest_first("mza", [[0.0], [1.0], [-1.0]], 2, first="m")
    assert next_centroid == [("m", "z"), ("a",)]
    between_two = farthest_first("zam", [[0.0], [1.0], [0.5]], 2, first="z")
    assert between_two == [("z",), ("a", "m")]


@given(st.permutations(range(8)), st.integers(1, 8), st.integers(0, 20), st.integers(1, 4))
def test_the_order_of_sites_does_not_matter(order, k, seed, fewest):
    shuffled = farthest_first([COUNTRIES[site] for site in order], SHELTER[order], k, seed=seed, fewest=fewest)
    assert shuffled == farthest_first(COUNTRIES, SHELTER, k, seed=seed, fewest=fewest)


@given(st.integers(1, 10), st.integers(0, 20), st.integers(1, 10))
def test_every_site_is_in_exactly_one_cluster_and_none_is_too_small(k, seed, fewest):
    clusters = farthest_first(COUNTRIES, SHELTER, k, "manhattan", seed=seed, fewest=fewest)
    assert sorted(site for cluster in clusters for site in cluster) == list(COUNTRIES)
    assert len(clusters) == 1 or min(map(len, clusters)) >= fewest


def test_the_seed_draws_the_first_centroid():
    firsts = {farthest_first(COUNTRIES, SHELTER, 1, seed=seed)[0][0] for seed in range(40)}
    assert len(firsts) > 4


def test_a_small_cluster_joins_the_one_whose_centroid_is_nearest():
    names, places = "abcdefg", [[0.0], [0.1], [0.2], [10.0], [10.1], [10.2], [6.0]]
    assert farthest_first(names, places, 3, first="a") == [("a", "b", "c"), ("f", "d", "e"), ("g",)]
    assert farthest_first(names, places, 3, first="a", fewest=2) == [("a", "b", "c"), ("f", "d", "e", "g")]


def test_sites_that_are_alike_share_a_cluster_even_if_more_were_wanted():
    assert farthest_first("abc", [[0.5], [0.5], [0.9]], 3, first="b") == [("b", "a"), ("c",)]


def test_wrong_questions_are_refused():
    with pytest.raises(ValueError, match="at least one cluster"):
        farthest_first("ab", [[0.0], [1.0]], 0)
    with pytest.raises(ValueError, match="'x' is not among"):
        farthest_first("ab", [[0.0], [1.0]], 1, first="x")
    with pytest.raises(ValueError, match="name of its own"):
        farthest_first("aa", [[0.0], [1.0]], 1)
    with pytest.raises(ValueError, match="p of at least 1"):
        distances([[0.0]], "minkowski", p=0.5)


# ---------------------------------------------------------------------------------------------------------------
# As many clusters as there are


def grouped(seed: int, centres: int) -> tuple[list[str], np.ndarray]:
    """Twelve sites around some centres, a little beside them."""
    rng = np.random.default_rng(seed)
    middle = np.array([[0.2, 0.2, 0.8], [0.8, 0.2, 0.2], [0.5, 0.9, 0.5]])[:centres]
    vectors = middle[np.arange(12) % centres] + rng.normal(0, 0.02, (12, 3))
    return [f"site{number:02d}" for number in range(12)], vectors


@pytest.mark.parametrize("centres", [2, 3])
def test_sites_fall_into_as_many_clusters_as_there_are(centres):
    names, vectors = grouped(1, centres)
    choices = [farthest_first(names, vectors, k, fewest=3) for k in range(1, 5)]
    found = best_separated(choices, names, distances(vectors))
    assert sorted(map(sorted, found)) == sorted(sorted(names[start::centres]) for start in range(centres))


def test_sites_of_one_kind_stay_together():
    names, vectors = grouped(2, 1)
    choices = [farthest_first(names, vectors, k, fewest=3) for k in range(1, 5)]
    assert best_separated(choices, names, distances(vectors)) == choices[0]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_silhouette_is_scikit_learn_s(k):
    names, vectors = grouped(3, 3)
    groups = farthest_first(names, vectors, k)
    labels = [next(number for number, members in enumerate(groups) if name in members) for name in names]
    assert silhouette(groups, names, distances(vectors)) == pytest.approx(silhouette_score(vectors, labels))
