"""What a coordinator writes in a round is checked when it is made and when it arrives."""

from __future__ import annotations

import pytest

from spinney.errors import LONGEST_REASON, Refused
from spinney.federation.messages import GrowOrder, Invitation
from spinney.house import encoding as wire
from spinney.house.round_messages import Ask, Over, ask_name, orders_of


@pytest.mark.parametrize("step", ["", "../grow", "a/b", "con", "grow.", "x" * 65])
def test_a_step_that_no_answer_can_be_addressed_with_is_refused(step: str):
    with pytest.raises(Refused, match="no answer can be addressed with"):
        Ask(step, 1, (), {})


@pytest.mark.parametrize("attempt", [-1, 10**9])
def test_an_attempt_that_is_no_number_of_one_is_refused(attempt: int):
    with pytest.raises(Refused, match="no answer can be addressed with"):
        Ask("grow", attempt, (), {})


@pytest.mark.parametrize(
    ("model", "void"),
    [
        ("AB" * 32, ""),
        ("ab" * 31, ""),
        ("the best one", ""),
        ("", "two\nlines"),
        ("", "x" * (LONGEST_REASON + 1)),
        ("", "red \x1b[31m"),
    ],
)
def test_an_end_is_a_digest_or_a_sentence_and_nothing_else(model: str, void: str):
    with pytest.raises(Refused, match="the digest of a model, or a sentence"):
        Over(model, void)


@pytest.mark.parametrize("over", [Over("ab" * 32, ""), Over("", "2 sites are left and 3 are needed")])
def test_an_end_arrives_as_it_was_sent(over: Over):
    assert wire.unpack(wire.pack(over), Over) == over


def test_sites_that_are_asked_the_same_are_asked_together_in_the_order_of_their_names():
    same, other = GrowOrder(("ash", "elm")), GrowOrder(("birch",))
    made = orders_of({"elm": same, "birch": other, "ash": GrowOrder(("ash", "elm"))})
    assert [one.sites for one in made] == [("ash", "elm"), ("birch",)]
    assert [wire.decode_message(one.content) for one in made] == [same, other]


def test_an_order_for_many_is_packed_once(monkeypatch: pytest.MonkeyPatch):
    packed, pack = [], wire.encode_message
    monkeypatch.setattr(wire, "encode_message", lambda message: packed.append(message) or pack(message))
    (order,) = orders_of(dict.fromkeys([f"site-{number}" for number in range(50)], Invitation(1)))
    assert (len(packed), len(order.sites)) == (1, 50)


def test_asks_are_found_in_the_order_in_which_they_were_written():
    names = [ask_name(number) for number in range(1, 1000)]
    assert names == sorted(names)
