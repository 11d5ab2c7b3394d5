"""Sites on a map."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.plane import places


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
