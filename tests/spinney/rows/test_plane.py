"""Sites on a map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.algorithms.bofrf import Bofrf
from spinney.errors import Refused
from spinney.rows.plane import SiteMap, places, site_map
from tests.spinney.in_process import Wood, cohort, cohorts, study


def test_places_are_as_far_apart_as_the_vectors_where_a_plane_can_show_it():
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.4, 0]])
    found, shown = places(["a", "b", "c"], corners)
    assert shown == pytest.approx(1)
    assert np.hypot(*np.subtract(found["b"], found["c"])) == pytest.approx(0.5, abs=0.01)


def test_the_same_vectors_give_the_same_map_in_any_order():
    vectors = np.random.default_rng(0).random((6, 4))
    names = list("abcdef")
    there, _ = places(names, vectors)
    back, _ = places(names[::-1], vectors[::-1])
    assert all(np.allclose(there[name], back[name], atol=0.002) for name in names)


def test_a_plane_that_can_t_show_everything_says_how_much_it_shows():
    _, shown = places(list("abcde"), np.eye(5))
    assert shown == pytest.approx(0.5)


def test_sites_without_a_common_feature_are_drawn_beyond_the_others():
    vectors = np.array([[0.1, np.nan], [0.2, np.nan], [np.nan, 0.5]])
    found, _ = places(["a", "b", "c"], vectors)
    near, far = (np.hypot(*np.subtract(found["a"], found[other])) for other in ("b", "c"))
    assert far > near


@pytest.mark.parametrize("count", [1, 2])
def test_few_sites_have_places_too(count):
    found, _ = places(["a", "b"][:count], np.full((count, 3), 0.5))
    assert set(found.values()) == {(0.0, 0.0)}


# ---------------------------------------------------------------------------------------------------------------
# The map that sites are told

VECTORS = {name: np.random.default_rng(place).random(5) for place, name in enumerate("abcd")}


def test_the_map_has_two_decimals_and_who_learned_together():
    drawn = site_map(VECTORS, [("d", "b"), ("a",)], Bofrf())
    assert drawn.sites == ("a", "b", "d")
    assert drawn.groups == [("b", "d"), ("a",)]
    assert np.array_equal(drawn.places, np.round(drawn.places, 2))
    assert 0 < drawn.shown <= 1
    assert site_map({}, [], Bofrf()).sites == ()


@pytest.mark.parametrize(
    "change",
    [
        {"places": np.full((3, 2), np.nan)},
        {"places": np.full((3, 2), np.inf)},
        {"places": np.full((3, 2), 1e6)},
        {"places": np.full((3, 2), 0.123)},
        {"places": np.zeros((2, 2))},
        {"places": np.zeros((3, 3))},
        {"clusters": np.array([0, 0, 3])},
        {"clusters": np.array([0, 0, -1])},
        {"clusters": np.zeros(2, dtype=np.int64)},
        {"sites": ("a", "a", "b")},
        {"sites": ("b", "a", "c")},
        {"shown": float("nan")},
        {"shown": 1.5},
        {"shown": 0.123},
    ],
)
def test_a_map_that_can_t_be_is_refused(change):
    with pytest.raises(Refused, match="a map breaks the rule"):
        replace(site_map(VECTORS, [("a", "b", "c")], Bofrf()), **change)


@pytest.fixture(scope="module")
def told() -> Wood:
    wood = study(algorithm={"name": "bofrf", "clusters": 2})
    people = {name: cohort(wood, seed=seed, shift=0.4 * (seed > 2)) for seed, name in enumerate("abcdef")}
    made = Wood(wood, people)
    made.run()
    return made


def test_every_site_is_told_the_same_map_of_all_clusters(told):
    maps = [outcome.map for outcome in told.outcomes.values()]
    assert all(one.groups == [("a", "b", "c"), ("d", "e", "f")] for one in maps)
    near, far = (np.hypot(*np.subtract(maps[0].place_of["a"], maps[0].place_of[other])) for other in ("b", "d"))
    assert far > 2 * near


def test_a_site_that_is_lost_is_not_on_the_map():
    wood = study(quorum=3)
    made = Wood(wood, cohorts(wood), lost={"elm": "check"})
    made.run()
    assert made.outcomes["ash"].map.sites == ("ash", "beech", "cedar")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda drawn: replace(drawn, sites=("a", "b", "c", "d", "e", "stranger")), "1 sites that have not joined"),
        (lambda _: SiteMap(("b",), np.zeros((1, 2)), np.zeros(1, np.int64), 1.0), "does not show this site"),
    ],
)
def test_a_site_refuses_a_map_of_others(told, change, why):
    order = told.order("finish", "a")
    with pytest.raises(Refused, match=why):
        told.site("a").answer("finish", replace(order, map=change(order.map)))


def test_without_the_study_s_word_no_map_is_sent_and_none_is_taken(told):
    drawn = told.order("finish", "a").map
    wood = study(privacy={"share_map": False})
    made = Wood(wood, cohorts(wood))
    digest = made.run()
    order = made.order("finish")
    assert order.map.sites == ()
    with pytest.raises(Refused, match="keeps the map of the sites with the coordinator"):
        made.site("ash").answer("finish", replace(order, map=drawn))
    sharing = Wood(study(), cohorts(study()))
    assert sharing.run() == digest  # the model knows nothing of the map
    assert sharing.outcomes["ash"].map.sites == ("ash", "beech", "cedar", "elm")
