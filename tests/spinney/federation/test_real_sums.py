"""Secure sums of real numbers: the same totals in all three modes, and nothing that can be asked twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.errors import Refused, RoundVoid
from spinney.federation.disclosure import check_message
from spinney.federation.messages import AddOrder, MaskedReals, OpenedSum, PlainReals
from spinney.federation.moments import MOMENTS, moment_terms
from spinney.house.encoding import decode_message, encode_message, pack, unpack
from tests.spinney.federation.adding import MODES, NEAR, adder, begun
from tests.spinney.in_process import SITES, study

__all__ = ["adder"]
pytestmark = pytest.mark.usefixtures("adder")


@pytest.mark.parametrize("mode", MODES)
def test_the_total_is_that_of_the_parts(mode):
    _, adding = begun(mode)
    np.testing.assert_allclose(adding.total("three", NEAR).values, [1.0, -6.0, 3 + 5 + 5 + 3], atol=1e-9)
    assert adding.numbers == 3


def test_totals_are_the_same_bit_for_bit_in_all_modes():
    sums = {mode: begun(mode)[1].total(MOMENTS, moment_terms(4)).values for mode in MODES}
    np.testing.assert_array_equal(sums["masked"], sums["ring"])
    np.testing.assert_array_equal(sums["masked"], sums["trusted-third-party"])


@pytest.mark.parametrize("mode", MODES)
def test_every_site_opens_the_sum_again_and_gets_the_total(mode):
    federation, adding = begun(mode)
    found = adding.total("three", NEAR)
    for site in SITES:
        np.testing.assert_array_equal(federation.site(site).reopened(found.opened, NEAR), found.values)


def test_a_sum_that_was_opened_from_other_answers_is_not_believed():
    federation, adding = begun()
    found = adding.total("three", NEAR)
    other, ash = found.opened.hidden.copy(), federation.site("ash")
    other[1, 0] += np.uint64(1 << 30)
    with pytest.raises(Refused, match="other answers than those that this house signed"):
        ash.reopened(replace(found.opened, hidden=other), NEAR)
    with pytest.raises(Refused, match="does not open"):
        ash.reopened(replace(found.opened, seeds=(b"x" * 32, *found.opened.seeds[1:])), NEAR)
    with pytest.raises(Refused, match="other answers"):
        ash.reopened(replace(found.opened, hidden=other[:3]), NEAR)
    with pytest.raises(Refused, match="too early"):
        ash.reopened(replace(found.opened, subject="four"), NEAR)


@pytest.mark.parametrize("mode", ["ring", "trusted-third-party"])
def test_a_total_that_cannot_be_is_refused_where_it_is_told_in_clear(mode):
    federation, adding = begun(mode)
    opened = adding.total("three", NEAR).opened
    for total in (opened.total[:2], np.full(3, 2**62)):
        with pytest.raises(Refused, match=r"2 numbers|can't be"):
            federation.site("ash").reopened(replace(opened, total=total), NEAR)


def test_an_opened_sum_is_not_told_again_under_any_other_asking():
    federation, adding = begun()
    adding.total("three", NEAR)
    order = federation.order("add")
    with pytest.raises(Refused, match="opened already"):
        federation.site("ash").answer("add", replace(order, attempt=9, participants=order.participants[:3]))


def test_several_sums_of_one_round_count_their_askings_on():
    federation, adding = begun()
    adding.total("three", NEAR)
    adding.total("four", NEAR)
    assert [step for step in federation.steps() if step.startswith("add")] == [
        *("add 1", "add_sign 1", "add_release 1", "add 2", "add_sign 2", "add_release 2")
    ]


@pytest.mark.parametrize(("mode", "step"), [("masked", "add"), ("masked", "add_sign"), ("trusted-third-party", "add")])
def test_a_site_that_is_lost_before_it_is_needed_is_left_out_of_the_sum(mode, step):
    federation, adding = begun(mode, lost={"elm": step})
    np.testing.assert_allclose(adding.total("three", NEAR).values, [0.75, -4.5, 13], atol=1e-9)
    assert [*federation.left_out] == ["elm"]


@pytest.mark.parametrize(("mode", "step"), [("masked", "add_release"), ("ring", "add"), ("ring", "add_ring")])
def test_a_site_that_is_lost_too_late_voids_the_sum(mode, step):
    with pytest.raises(RoundVoid, match="ash"):
        begun(mode, lost={"ash": step})[1].total("three", NEAR)


def test_below_the_fewest_sites_there_is_no_sum():
    with pytest.raises(RoundVoid, match="2 sites are left"):
        begun(lost={"elm": "add", "ash": "add"})[1].total("three", NEAR)


@pytest.mark.parametrize("subject", ["", "Three", "a b", "../x", "x" * 33])
def test_a_subject_is_a_short_name(subject):
    federation, adding = begun()
    adding.total("three", NEAR)
    with pytest.raises(Refused, match="short name"):
        federation.site("ash").answer("add", replace(federation.order("add"), subject=subject))


def test_what_a_site_sends_in_a_masked_sum_is_noise_to_the_last_bit():
    federation, adding = begun()
    adding.total("three", NEAR)
    ash, order = federation.site("ash"), federation.order("add")
    told = []
    for attempt in range(10, 200):
        ash.house.memory.pop("add-three-released", None)
        told.append(ash.answer("add", replace(order, attempt=attempt)).counts[0, 0])
    bits = np.unpackbits(np.array(told, dtype="<u8").view(np.uint8).reshape(len(told), 8), axis=1)
    assert np.all(np.abs(bits.mean(axis=0) - 0.5) < 5 * 0.5 / np.sqrt(len(told)))


def test_the_packet_of_a_ring_comes_once_and_from_the_neighbour_only():
    federation, adding = begun("ring")
    adding.total("three", NEAR)
    order, beech = federation.order("add", "beech"), federation.site("beech")
    parcel = order.packets[0]
    for packets in ((), (replace(parcel, sender="elm"),), (parcel, parcel)):
        with pytest.raises(Refused, match="does not come from ash"):
            beech.answer("add", replace(order, packets=packets))
    with pytest.raises(Refused, match="came twice"):
        beech.answer("add", replace(order, packets=(replace(parcel, digest="0" * 64),)))
    with pytest.raises(Refused, match="goes round once"):
        beech.answer("add", replace(order, attempt=2))


def test_reals_are_told_only_in_the_mode_of_the_study_and_by_algorithms_that_sum_them():
    wood = study()
    check_message(MaskedReals(np.zeros((3, 1), dtype=np.uint64)), wood)
    with pytest.raises(Refused, match="the study's secure sum"):
        check_message(PlainReals(np.zeros((3, 1), dtype=np.int64)), wood)
    with pytest.raises(Refused, match="one number per row"):
        check_message(MaskedReals(np.zeros((3, 2), dtype=np.uint64)), wood)
    with pytest.raises(Refused, match="an algorithm that sums real numbers"):
        check_message(MaskedReals(np.zeros((3, 1), dtype=np.uint64)), study(algorithm={"name": "local"}))


def test_orders_and_evidence_travel():
    federation, adding = begun()
    found = adding.total("three", NEAR)
    order = federation.order("add")
    assert decode_message(encode_message(order)) == order
    assert isinstance(order, AddOrder)
    back = unpack(pack(found.opened), OpenedSum)
    np.testing.assert_array_equal(back.hidden, found.opened.hidden)
    np.testing.assert_array_equal(federation.site("ash").reopened(back, NEAR), found.values)
