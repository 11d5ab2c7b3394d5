"""The cells of an array: in as few bytes as they need, in one form only, and back bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spinney.federation.messages import PlainCounts
from spinney.house import encoding as wire
from spinney.house.encoding import MessageRefused
from tests.spinney.house.recorded import DESCRIPTION, changed, same


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (["float32", [3], bytes(12)], "not an array of float64"),
        (["object", [3], bytes(24)], "not an array of float64"),
        (["float64", [4], bytes(24)], "another size"),
        (["float64", [-3], bytes(24)], "another size"),
        (["float64", [0, 2**60], b""], "another size"),
        (["float64", [2**62, 2**62], bytes(24)], "another size"),
        (["float64", [1, 1, 1, 1, 3], bytes(24)], "5 dimensions"),
        (["float64", [], bytes(8)], "0 dimensions"),
        (["float64", [3.0], bytes(24)], "not a whole number"),
        (["float64", [3]], "2 parts instead of 3"),
        ([0.0, 0.0, 0.0], "not a text"),
    ],
)
def test_an_array_that_is_not_what_it_says_is_refused(array: Any, reason: str) -> None:
    with pytest.raises(MessageRefused, match=reason):
        wire.decode_message(changed(DESCRIPTION, lambda content: content.update(vector=array)))


@pytest.mark.parametrize(
    "array",
    [
        ["float64", [3], np.array([0.5, 0.25, 1.0]).tobytes()],  # so many hundredths, in doubles
        ["decimal3", [1], b"\x80"],  # so many thousandths, and tenths would do
        ["decimal0", [1], b"\x80\x00"],  # a bit that no number needs
        ["decimal0", [1], b"\x81"],  # a number that nobody asked for
        ["decimal0", [1], b"\x00" * 8 + b"\x80" * 56],  # more steps than a decimal number has
    ],
)
def test_numbers_are_written_in_one_way_only(array: Any) -> None:
    with pytest.raises(MessageRefused, match="one proper form"):
        wire.decode_message(changed(DESCRIPTION, lambda content: content.update(vector=array)))


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (["decimal5", [1], b"\x80"], "not an array of float64"),
        (["uint64", [1], b"\x80"], "not an array of float64"),
        (["decimal2", [3], b""], "another size"),
        (["decimal2", [0], b"\x80"], "another size"),
        (["decimal2", [9], b"\x80\x00\x80"], "another size"),
        (["decimal2", [1], bytes(65)], "another size"),
        (["decimal2", [wire.MOST_CELLS + 8], bytes((wire.MOST_CELLS + 8) // 8)], "another size"),
    ],
)
def test_numbers_that_are_not_what_they_say_are_refused(array: Any, reason: str) -> None:
    with pytest.raises(MessageRefused, match=reason):
        wire.decode_message(changed(DESCRIPTION, lambda content: content.update(vector=array)))


@pytest.mark.parametrize(
    ("vector", "size"),
    [
        (np.full(800, 0.123), 800),  # 247 of a thousand steps, folded and with a place for what is not known: 8 bits
        (np.full(800, np.nan), 100),
        (np.tile([0.25, np.nan, -0.5, 1.0], 200), 800),
        (np.full(800, 1 / 3), 6_400),
        (np.full(800, -0.0), 6_400),
        (np.full(800, np.inf), 6_400),
        (np.full(800, 1e300), 6_400),
    ],
)
def test_rounded_numbers_travel_in_few_bits_and_all_come_back_bit_for_bit(vector: Any, size: int) -> None:
    data = wire.encode_message(replace(DESCRIPTION, vector=vector))
    assert same(wire.decode_message(data).vector, vector)
    assert size <= len(data) - len(wire.encode_message(replace(DESCRIPTION, vector=np.empty(0)))) <= size + 10


def test_whole_numbers_have_as_many_bits_as_the_largest_needs() -> None:
    for most, bits in ((0, 1), (127, 8), (128, 9), (2**62, 64)):  # the sign has a bit, too
        assert 0 <= len(wire.encode_message(PlainCounts(np.full((1000, 4), most)))) - 500 * bits < 40


@pytest.mark.parametrize(("packed", "reason"), [(b"\xa1", "one proper form"), (b"\xa0\0", "another size")])
def test_more_answers_than_were_asked_for_are_refused(packed: bytes, reason: str) -> None:
    with pytest.raises(MessageRefused, match=reason):
        wire.decode_message(changed(DESCRIPTION, lambda content: content.update(present=["bool", [3], packed])))
