"""Where trees may cut: as the study says, never where the data do, and coarser than values are recorded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from spinney.study.cuts import cuts_of, roundest
from spinney.study.settings import Feature


def feature(**words):
    return Feature.model_validate({"name": "x", "kind": "continuous", "range": [0, 100], **words})


def cuts(**words):
    one = feature(**words)
    return cuts_of(one.range, one.resolution, one.cuts, one.most_cuts)


def test_by_default_there_are_64_equal_cuts():
    assert len(cuts()) == 64
    assert np.ptp(np.diff(cuts())) < 1e-9


def test_whole_numbers_are_cut_at_every_second_at_most_and_no_cut_lies_on_one_or_half_way_between_two():
    found = cuts(range=[20, 110], resolution=1)
    assert found[:3] == (20.25, 22.25, 24.25)
    assert len(found) == 45
    assert cuts(range=[0, 200], resolution=1)[:3] == (0.25, 4.25, 8.25)


@given(
    st.floats(-1e6, 1e6),
    st.floats(1, 1e6),
    st.one_of(st.none(), st.floats(1e-4, 0.9)),
    st.sampled_from(["equal", "logarithmic"]),
    st.integers(1, 500),
)
def test_cuts_rise_within_the_range_and_keep_what_the_study_asks(low, span, recorded, spacing, most):
    low = abs(low) if spacing == "logarithmic" else low
    resolution = recorded and recorded * span
    found = cuts_of((low, low + span), resolution, spacing, most)
    assert 1 <= len(found) <= most
    assert low <= found[0]
    assert found[-1] < low + span
    apart = np.diff(found)
    assert (apart > 0).all()
    if resolution is not None:
        assert (apart >= 2 * resolution * (1 - 1e-6)).all()


def test_logarithmic_cuts_are_close_where_values_are_small():
    found = cuts(range=[0, 70_000], resolution=1, cuts="logarithmic")
    assert found[:3] == (0.25, 2.25, 4.25)
    assert len([cut for cut in found if cut < 1000]) > 30
    assert len(found) <= 64
    steep = np.diff(np.log(cuts(range=[0.2, 12], cuts="logarithmic")))
    assert np.ptp(steep) < 1e-4


def test_listed_cuts_are_taken_as_they_are():
    assert cuts(cuts=[18, 40, 65], resolution=1) == (18, 40, 65)
    assert feature(cuts=[18, 40, 65]).scaled_cuts == pytest.approx((0.18, 0.4, 0.65, 1.0))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"cuts": [40, 18]}, "rise and lie within the range, from 0 to below 100"),
        ({"cuts": [40, 100]}, "rise and lie within the range"),
        ({"cuts": []}, "a list needs a number"),
        ({"cuts": [40, 41], "resolution": 1}, "at least twice the resolution apart, 2"),
        ({"cuts": list(range(70))}, "70 cuts are listed, and most_cuts is 64"),
        ({"cuts": [40, 40.0000001]}, "so close that they can't be told apart"),
        ({"cuts": "logarithmic", "range": [-1, 1]}, "need a range from 0 or above"),
        ({"resolution": 100}, "no smaller than the range"),
        ({"most_cuts": 65_535}, "less than or equal to 65534"),
    ],
)
def test_cuts_that_can_not_be_are_refused_with_what_to_write(words, says):
    with pytest.raises(ValidationError, match=says):
        feature(**words)


@given(st.integers(1, 3000), st.integers(0, 3000))
def test_the_roundest_place_has_the_largest_power_of_two_and_is_the_only_one(first, more):
    places = range(first, first + more + 1)
    best = max(place & -place for place in places)
    assert [place for place in places if place & -place == best] == [
        int(roundest(np.array([first]), np.array([first + more]))[0])
    ]
