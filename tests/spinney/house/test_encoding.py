"""Messages as bytes: one form each, and nothing else is read."""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, get_args, get_origin, get_type_hints

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spinney.federation.messages import Done, GrowOrder, Manifest, OpenedSum, PlainCounts, Verdict
from spinney.federation.seam import Card, Decline, Digest, Message, Parcel
from spinney.federation.secure_sum import Binding, Roll
from spinney.house import encoding as wire
from spinney.house.encoding import MessageRefused
from spinney.house.envelopes import VERSION, Header, MessageId
from spinney.house.round_messages import Ask, Opening, Order, Over
from spinney.linear.terms import LinearTerms
from spinney.rows.plane import SiteMap
from spinney.trial.simulate import simulate
from tests.spinney.house.recorded import DESCRIPTION, changed, cohorts, messages, same, through_the_wire, wood

# ---------------------------------------------------------------------------------------------------------------
# Round trips


def test_real_rounds_send_every_kind_of_message() -> None:
    assert set(messages()) == set(wire.kinds())


@pytest.mark.parametrize("kind", sorted(wire.kinds()))
def test_a_real_message_comes_back_bit_for_bit(kind: str) -> None:
    message = messages()[kind]
    again = wire.decode_message(wire.encode_message(message))
    assert same(replace(message), again)  # replace: without what a cached property left in the original
    assert wire.encode_message(again) == wire.encode_message(message)


@pytest.mark.parametrize("secure_sum", ["masked", "ring", "trusted-third-party"])
def test_a_round_over_the_wire_gives_the_same_model(secure_sum: str) -> None:
    study = wood("bofrf", secure_sum)
    assert through_the_wire(study)[0] == simulate(study, cohorts(study)).model_digest


def test_another_form_of_any_message_is_another_version_of_the_envelope() -> None:
    """Fields have no names on the way: a house must not take a new message's third field for an old one's."""
    inside = (
        Parcel,
        Card,
        Binding,
        Roll,
        SiteMap,
        Opening,
        Order,
        Ask,
        Over,
        Header,
        MessageId,
        OpenedSum,
        LinearTerms,
    )
    kinds = [*sorted(wire.kinds().values(), key=lambda kind: kind.__name__), *inside]
    forms = "\n".join(f"{kind.__name__} {kind.__annotations__}" for kind in kinds)
    told = (VERSION, hashlib.sha256(forms.encode()).hexdigest()[:16])
    assert told == (4, "0710726d1865df71"), "a message has changed: count VERSION up, and pin both here"


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation."""
    inner = get_args(hint)
    if hint is Binding:
        names = st.sets(st.text(max_size=5), min_size=3, max_size=5).map(lambda found: tuple(sorted(found)))
        return st.builds(Binding, st.text(), whole(), st.text(), whole(), names, st.text())
    if hint is Manifest:
        names = st.sets(st.text(), max_size=4).map(sorted)
        return names.flatmap(lambda owners: st.builds(Manifest, st.tuples(*map(parcel, owners)), bits(len(owners))))
    if hint is SiteMap:
        names = st.sets(st.text(), max_size=4).map(lambda found: tuple(sorted(found)))
        steps = st.integers(-(10**6), 10**6).map(lambda step: step / 100)
        return names.flatmap(
            lambda sites: st.builds(
                SiteMap,
                st.just(sites),
                hnp.arrays(np.float64, (len(sites), 2), elements=steps),
                hnp.arrays(np.int64, len(sites), elements=st.integers(0, max(len(sites) - 1, 0))),
                st.integers(0, 100).map(lambda step: step / 100),
            )
        )
    if hint == Digest:
        return st.binary().map(bytes.hex)
    if is_dataclass(hint):
        return st.builds(
            hint, **{name: anything(part) for name, part in get_type_hints(hint, include_extras=True).items()}
        )
    if get_origin(hint) is np.ndarray:
        shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
        return hnp.arrays(get_args(inner[1])[0], shapes)
    if get_origin(hint) is tuple and inner[-1] is not Ellipsis:
        return st.tuples(*map(anything, inner))
    if get_origin(hint) in (tuple, frozenset):
        return st.lists(anything(inner[0]), max_size=5).map(get_origin(hint))
    if get_origin(hint) is not None:
        return st.dictionaries(anything(inner[0]), anything(inner[1]), max_size=4)
    return {int: whole(), str: st.text(), bytes: st.binary(), float: st.floats(), bool: st.booleans()}[hint]


def parcel(sender: str) -> st.SearchStrategy[Parcel]:
    return st.builds(Parcel, st.just(sender), st.binary().map(bytes.hex), whole())


def bits(forests: int) -> st.SearchStrategy[Any]:
    return st.tuples(*[hnp.arrays(np.bool_, st.integers(0, 20)) for _ in range(forests)])


def whole() -> st.SearchStrategy[int]:
    return st.integers(-(2**63), 2**64 - 1)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(wire.kinds())).flatmap(lambda kind: anything(wire.kinds()[kind])))
def test_any_message_comes_back_bit_for_bit(message: Message) -> None:
    data = wire.encode_message(message)
    again = wire.decode_message(data)
    assert same(message, again)
    assert wire.encode_message(again) == data


def test_the_same_message_has_the_same_bytes_whatever_the_order_of_its_parts() -> None:
    yes, no = np.ones(3, dtype=bool), np.zeros(3, dtype=bool)
    one = Verdict({"ash": yes, "elm": no}, {"beech": "depth", "fir": "size"})
    other = Verdict({"elm": no, "ash": yes}, {"fir": "size", "beech": "depth"})
    assert wire.encode_message(one) == wire.encode_message(other)


def test_numbers_of_numpy_travel_as_plain_numbers() -> None:
    again = wire.decode_message(wire.encode_message(Done({"auroc": np.float64(0.5)})))
    assert type(again.figures["auroc"]) is float
    assert type(wire.decode_message(wire.encode_message(replace(DESCRIPTION, rows=np.int64(40)))).rows) is int


def test_an_array_is_read_without_a_way_to_change_it() -> None:
    assert not wire.decode_message(wire.encode_message(DESCRIPTION)).vector.flags.writeable


def test_a_plain_dataclass_can_be_packed_by_itself() -> None:
    parcel = Parcel("ash", "d" * 64, 12)
    assert wire.unpack(wire.pack(parcel), Parcel) == parcel


@pytest.mark.parametrize(
    "wrong",
    [replace(DESCRIPTION, rows="40"), replace(DESCRIPTION, rows=True), replace(DESCRIPTION, vector=np.zeros(3, "f4"))],
)
def test_a_message_with_a_field_of_a_wrong_type_is_not_sent(wrong: Message) -> None:
    with pytest.raises(TypeError):
        wire.encode_message(wrong)


def test_what_can_not_travel_says_so() -> None:
    @dataclass(frozen=True)
    class Picture:
        pixels: list[int]

    with pytest.raises(TypeError, match="can't travel"):
        wire.pack(Picture([1]))


# ---------------------------------------------------------------------------------------------------------------
# Refusals


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes"),
        (msgpack.packb(["Secret", []]), "kind that this house doesn't know"),
        (msgpack.packb(["Message", []]), "kind that this house doesn't know"),
        (msgpack.packb([["x"]]), "1 parts instead of 2"),
        (msgpack.packb({"Decline": ["x"]}), "damaged"),
        (msgpack.packb(["Decline", {"reason": "x"}]), "damaged"),
        (changed(Decline("x"), lambda content: content.update(more=1)), "2 parts instead of 1"),
        (changed(Decline("x"), lambda content: content.clear()), "0 parts instead of 1"),
        (changed(Decline("x"), lambda _: {"reason": 1}), "Decline.reason is not a text"),
        (changed(Decline("x"), lambda _: {"reason": None}), "Decline.reason is not a text"),
        (changed(Decline("x"), lambda _: {"reason": [["x"]]}), "Decline.reason is not a text"),
        (changed(Decline("x"), lambda _: {"reason": msgpack.ExtType(4, b"x")}), "Decline.reason is not a text"),
        (wire.encode_message(Decline("x")) + b"\0", "something behind"),
        (wire.encode_message(Decline("x"))[:-1], "damaged"),
        (wire.encode_message(Decline("x"))[:-2], "ends too early"),
        (wire.encode_message(Decline("xy")).replace(b"xy", b"\xff\xfe"), "damaged"),
        (changed(DESCRIPTION, lambda content: content.update(rows=4.0)), "Description.rows is not a whole number"),
        (changed(DESCRIPTION, lambda content: content.update(rows=True)), "Description.rows is not a whole number"),
    ],
)
def test_what_is_no_message_is_refused_with_the_place(data: bytes, reason: str) -> None:
    with pytest.raises(MessageRefused, match=reason):
        wire.decode_message(data)


def test_a_letter_comes_back_and_is_small() -> None:
    data = wire.encode_message(GrowOrder(("ash",) * 1000))
    assert wire.unsqueeze(wire.squeeze(data)) == data
    assert len(wire.squeeze(data)) < len(data) / 20
    noise = random.Random(1).randbytes(1000)
    assert wire.unsqueeze(wire.squeeze(noise)) == noise
    assert len(wire.squeeze(noise)) == 1001


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        (b"", "no letter"),
        (b"\2", "unknown form"),
        (b"\1no letter", "damaged"),
        (wire.squeeze(b"something" * 9)[:-1], "ends too early"),
        (wire.squeeze(b"something" * 9) + b"x", "behind it"),
        (wire.squeeze(bytes(wire.LARGEST + 1)), "more than"),
    ],
)
def test_a_letter_that_is_none_or_unpacks_to_too_much_is_refused(letter: bytes, reason: str) -> None:
    with pytest.raises(MessageRefused, match=reason):
        wire.unsqueeze(letter)


@pytest.mark.parametrize("digest", ["xy", "abc", "AB", " ab "])
def test_a_digest_that_is_none_is_not_sent(digest: str) -> None:
    with pytest.raises(TypeError, match="hexadecimal"):
        wire.pack(Parcel("ash", digest, 1))


def test_a_refusal_does_not_quote_what_came() -> None:
    with pytest.raises(MessageRefused) as refusal:
        wire.decode_message(msgpack.packb(["a patient", ["x"]]))
    assert "patient" not in str(refusal.value)


def test_a_second_form_of_the_same_message_is_refused() -> None:
    data = wire.encode_message(GrowOrder(("ash", "elm")))
    assert data.count(b"\xa3ash") == 1
    with pytest.raises(MessageRefused, match="one proper form"):
        wire.decode_message(data.replace(b"\xa3ash", b"\xd9\x03ash"))  # a longer way to write a short text


NONE = ["bool", [0], b""]


@pytest.mark.parametrize("scorable", [[("elm", NONE), ("ash", NONE)], [("ash", ["bool", [1], b"\x80"]), ("ash", NONE)]])
def test_keys_in_disorder_or_twice_are_refused(scorable: list[Any]) -> None:
    packer = msgpack.Packer(autoreset=False)
    packer.pack_array_header(2)
    packer.pack("Verdict")
    packer.pack_array_header(2)
    packer.pack_map_pairs(scorable)
    packer.pack({})
    with pytest.raises(MessageRefused, match="one proper form"):
        wire.decode_message(packer.bytes())


def test_a_check_of_a_message_s_own_is_a_refusal_too() -> None:
    order = messages()["RingOrder"]
    place = [field.name for field in fields(Binding)].index("participants")
    with pytest.raises(wire.Refused, match="sorted tuple"):
        wire.decode_message(
            changed(order, lambda content: content["binding"].__setitem__(place, ["elm", "ash", "fir"]))
        )


def test_more_than_the_limit_is_refused_unread() -> None:
    with pytest.raises(MessageRefused, match="bytes"):
        wire.decode_message(bytes(wire.LARGEST + 1))


@pytest.mark.parametrize(
    "bomb",
    [
        b"\xdd\xff\xff\xff\xff" * 20_000,  # lists of four thousand million lists
        b"\x92\xa7Verdict\x92" + b"\xdf\xff\xff\xff\xff" * 20_000,
        b"\x92\xa9GrowOrder\x91\xdd\xff\xff\xff\xff" + b"\x91" * 100_000,
        b"\x92\xa7Decline\x91\xdb\xff\xff\xff\xff",
    ],
)
def test_a_bomb_costs_neither_time_nor_memory(bomb: bytes) -> None:
    start = time.process_time()
    with pytest.raises(MessageRefused):
        wire.decode_message(bomb)
    assert time.process_time() - start < 1


# ---------------------------------------------------------------------------------------------------------------
# Everything else that a hostile house could think of


ODD = (None, [], {}, [[[]]], -1, 2**64 - 1, 0.5, "", "x" * 300, b"", b"\0" * 40, True, msgpack.ExtType(1, b"x"))


def forged(content: Any, rng: random.Random) -> Any:
    """One part somewhere in the tree dropped, doubled, renamed or of another type."""
    if isinstance(content, dict) and content:
        name = rng.choice(list(content))
        deed = rng.choice(["inner", "inner", "drop", "add", "rename", "type"])
        if deed == "drop":
            return {key: value for key, value in content.items() if key != name}
        if deed == "add":
            return {**content, f"{name}2": content[name]}
        if deed == "rename":
            return {(f"{key}_" if key == name else key): value for key, value in content.items()}
        if deed == "inner":
            return {**content, name: forged(content[name], rng)}
        return {**content, name: rng.choice([odd for odd in ODD if type(odd) is not type(content[name])])}
    if isinstance(content, list) and content and rng.random() < 0.7:
        place = rng.randrange(len(content))
        inner = {"drop": [], "double": [content[place]] * 2, "inner": [forged(content[place], rng)]}
        return [*content[:place], *inner[rng.choice(["drop", "double", "inner", "inner"])], *content[place + 1 :]]
    return rng.choice([odd for odd in ODD if type(odd) is not type(content)])


def test_ten_thousand_forged_messages_of_every_kind_are_refused_or_are_messages_in_their_one_form() -> None:
    """The wire vouches for form, the envelope for origin: what is well-formed may pass here, and only here."""
    rng, refused = random.Random(20), 0
    real = [wire.encode_message(messages()[kind]) for kind in sorted(messages())]
    for turn in range(10_000):
        data = real[turn % len(real)]
        if turn % 2:
            kind, content = msgpack.unpackb(data, strict_map_key=False)
            data = msgpack.packb([kind, forged(content, rng)])
        else:
            at = rng.randrange(len(data))
            data = rng.choice([data[:at], data + data[at:], data[:at] + rng.randbytes(1) + data[at + 1 :]])
        try:
            message = wire.decode_message(data)
        except wire.Refused:
            refused += 1
        else:
            assert wire.encode_message(message) == data
    assert refused > 6_000


def test_the_counts_of_twenty_thousand_trees_are_read_at_once() -> None:
    data = wire.encode_message(PlainCounts(np.zeros((20_000, 4), np.int64)))
    start = time.process_time()
    wire.decode_message(data)
    assert time.process_time() - start < 0.2
