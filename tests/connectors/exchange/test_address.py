"""Where a message lies: names that every store and Windows can hold, each in one spelling."""

from __future__ import annotations

import pytest

from spinney.connectors.exchange import Address, BadAddress


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../up",
        "a/b",
        "a\\b",
        "/etc",
        "-rf",
        "9lives",
        "a b",
        "a\n",
        "été",
        "a:b",
        "a.",
        "con",
        "NUL.x",
        "x" * 65,
    ],
)
@pytest.mark.parametrize("part", ["study", "sender", "step"])
def test_a_name_that_some_store_or_windows_cannot_hold_is_refused(part: str, name: str):
    with pytest.raises(BadAddress):
        Address(**{"study": "heart", "sender": "north", "round": 7, "step": "grow", part: name})


@pytest.mark.parametrize("number", [-1, 10**9, 1.5, True, "01"])
@pytest.mark.parametrize("part", ["round", "attempt"])
def test_a_number_that_could_be_spelt_in_two_ways_is_refused(part: str, number: object):
    with pytest.raises(BadAddress):
        Address(**{"study": "heart", "sender": "north", "round": 7, "step": "grow", part: number})
