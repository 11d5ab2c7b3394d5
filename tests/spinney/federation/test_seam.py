"""The seam between an algorithm and its transport: which steps are asked, and what is opened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spinney.errors import Refused
from spinney.federation import secure_sum
from spinney.federation.messages import Invitation
from spinney.federation.seam import Decline, Message, SiteContext, SitePart
from spinney.trial.simulate import LocalMail
from tests.spinney.in_process import Wood


def test_a_step_that_the_algorithm_does_not_have_is_refused(wood, people):
    with pytest.raises(Refused, match="not a step"):
        Wood(wood, people).site("ash").answer("own_forest", Invitation(1))


def test_a_parcel_that_is_not_what_was_announced_is_refused(wood, people):
    post = LocalMail()
    parcel = post.of("ash").post(b"trees", ["beech"])
    post.contents[parcel.sender, parcel.digest] = (frozenset({"beech"}), b"other")
    house = SiteContext("beech", wood, 1, people["beech"], post.of("beech"), bytes, lambda *_: True)
    with pytest.raises(Refused, match="not what was announced"):
        house.open(parcel)


def test_a_step_asked_with_the_wrong_kind_of_order_is_refused() -> None:
    class Polite(SitePart):
        steps = frozenset({"greet"})

        def greet(self, order: Decline) -> Decline:
            return order

    with pytest.raises(Refused, match="greet is asked with Message, not Decline"):
        Polite(house=None).answer("greet", Message())  # type: ignore[arg-type]


def test_a_house_knows_only_those_whose_round_key_and_features_are_signed_by_themselves(wood, people):
    federation = Wood(wood, people)
    federation.run()
    house = federation.houses["ash"]
    card = house.cards["beech"]
    forged = secure_sum.public_key(secure_sum.new_key())
    for wrong in (replace(card, key=forged), replace(card, present=~card.present), replace(card, signature=b"")):
        with pytest.raises(Refused, match="of beech are not signed by beech"):
            house.introduce({"beech": wrong})
    with pytest.raises(Refused, match="of cedar are not signed by cedar"):
        house.introduce({"cedar": card})
    assert house.cards["beech"] is card


def test_a_round_key_of_an_earlier_night_is_refused(wood, people):
    before = Wood(wood, people)
    before.run()
    tonight = Wood(wood, people, round=2)
    tonight.houses["ash"].verify = before.houses["ash"].verify  # even where the signing key is still the same
    with pytest.raises(Refused, match="are not signed by"):
        tonight.houses["ash"].introduce(before.houses["ash"].cards)
