"""What an envelope promises, what a thief gets, and every way in which an envelope is refused."""

from __future__ import annotations

import hashlib
import random
import stat
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from spinney.errors import Refused
from spinney.house import encoding as wire
from spinney.house import envelopes as security
from spinney.house.envelopes import (
    CHECK_BYTES,
    MOST_RECIPIENTS,
    PREFIX_BYTES,
    SIGNATURE_AT,
    START,
    VERSION,
    Damaged,
    EnvelopeRefused,
    Header,
    MessageId,
    NotForUs,
    Oversized,
    ReAddressed,
    Replayed,
    Rounds,
    Truncated,
    UnknownSender,
    UnknownVersion,
    Unsigned,
    WrongRound,
    WrongSignature,
    seal,
)
from spinney.house.keys import Identity, KeyRefused, KeyRing, KeysUnusable, RoundKey, check_round_key
from tests.spinney.house.recorded import messages

STUDY = "5" * 64
HERE = MessageId(STUDY, 7, "score", 2, "ash")
HOUSES = {name: Identity.new() for name in ("ash", "beech", "cedar", "coordinator")}
ROSTER = {name: identity.public for name, identity in HOUSES.items()}
KEYS = {name: RoundKey.new(name) for name in HOUSES}
PEERS = {name: KEYS[name].public for name in ("beech", "cedar")}
CONTENT = b"counts that nobody else should read " * 10
SEALED = seal(CONTENT, HERE, HOUSES["ash"], PEERS)
OPEN_LETTER = seal(CONTENT, HERE, HOUSES["ash"])


def opened(data: bytes, message: MessageId = HERE, own: str = "beech", **more: int) -> bytes:
    return security.open(data, message, ROSTER, KEYS[own], **more)


def with_digest(data: bytes) -> bytes:
    """What a forger does who knows the format: the digest is right again."""
    digest = hashlib.sha256(data[: START.size] + data[PREFIX_BYTES:]).digest()
    return data[: START.size] + digest[:CHECK_BYTES] + data[SIGNATURE_AT:]


def signed(header: bytes, body: bytes, name: str = "ash") -> bytes:
    """What a member can sign that doesn't keep to the rules."""
    return security._signed(header, body, HOUSES[name])


def header_of(data: bytes) -> Header:
    return wire.unpack(security._intact(data, HERE, len(data))[1], Header)


def body_of(data: bytes) -> bytes:
    return bytes(security._intact(data, HERE, len(data))[2])


# ---------------------------------------------------------------------------------------------------------------
# What works


@pytest.mark.parametrize("name", ["beech", "cedar"])
def test_every_recipient_can_open_an_envelope(name: str) -> None:
    assert opened(SEALED, own=name) == CONTENT


def test_without_recipients_it_is_signed_and_everybody_can_read_it() -> None:
    assert security.open(OPEN_LETTER, HERE, ROSTER) == CONTENT
    assert CONTENT in OPEN_LETTER


def test_what_is_sealed_can_not_be_read_on_the_exchange() -> None:
    assert not any(CONTENT[at : at + 12] in SEALED for at in range(0, len(CONTENT), 12))


@pytest.mark.parametrize("content", [b"", b"x"])
def test_a_small_content_is_a_content(content: bytes) -> None:
    assert opened(seal(content, HERE, HOUSES["ash"], PEERS)) == content


def test_the_same_content_is_never_sealed_into_the_same_bytes() -> None:
    assert seal(CONTENT, HERE, HOUSES["ash"], PEERS)[PREFIX_BYTES:] != SEALED[PREFIX_BYTES:]


@pytest.mark.parametrize("kind", sorted(wire.kinds()))
def test_every_kind_of_message_travels_in_an_envelope(kind: str) -> None:
    data = wire.encode_message(messages()[kind])
    assert opened(seal(data, HERE, HOUSES["ash"], PEERS)) == data


def test_a_forest_is_encrypted_once_for_twenty_recipients() -> None:
    many = {f"a-hospital-with-a-long-name-{number}": RoundKey.new("x").public for number in range(20)}
    forest = random.Random(1).randbytes(100_000)
    assert len(seal(forest, HERE, HOUSES["ash"], many)) <= len(forest) + 2_500
    assert len(seal(forest[:20_000], HERE, HOUSES["ash"], many)) <= 1.3 * 20_000


@pytest.mark.parametrize(("recipients", "size"), [(0, 105), (1, 153), (2, 217), (20, 506)])
def test_what_an_envelope_adds_to_its_content(recipients: int, size: int) -> None:
    keys = {f"house{number}": KEYS["beech"].public for number in range(recipients)}
    assert len(seal(bytes(1000), HERE, HOUSES["ash"], keys)) == 1000 + size


# ---------------------------------------------------------------------------------------------------------------
# What is refused


def test_an_envelope_larger_than_the_limit_is_refused_unread() -> None:
    with pytest.raises(Oversized, match=f"{len(SEALED)} bytes, at most 100"):
        opened(SEALED, limit=100)


def test_an_envelope_cut_anywhere_is_refused() -> None:
    for end in range(len(SEALED)):
        with pytest.raises(Truncated):
            opened(SEALED[:end])


def test_an_envelope_with_something_behind_it_is_refused() -> None:
    with pytest.raises(Damaged, match="1 bytes too many"):
        opened(SEALED + b"\0")


def test_something_else_than_an_envelope_is_refused() -> None:
    with pytest.raises(Damaged, match="no envelope"):
        opened(b"PK\x03\x04" + SEALED[4:])


def test_a_later_format_is_refused_with_advice() -> None:
    with pytest.raises(UnknownVersion, match="out of date"):
        opened(SEALED[:4] + bytes([VERSION + 1]) + SEALED[5:])


def test_any_flipped_bit_behind_the_signature_is_found() -> None:
    for at in range(PREFIX_BYTES, len(SEALED)):
        with pytest.raises(Damaged, match="digest"):
            opened(SEALED[:at] + bytes([SEALED[at] ^ 1]) + SEALED[at + 1 :])


def test_an_envelope_without_a_signature_is_refused() -> None:
    with pytest.raises(Unsigned):
        opened(SEALED[:SIGNATURE_AT] + bytes(64) + SEALED[PREFIX_BYTES:])


def test_a_signature_by_somebody_outside_the_roster_is_refused() -> None:
    with pytest.raises(WrongSignature):
        opened(seal(CONTENT, HERE, Identity.new(), PEERS))


def test_a_content_changed_by_somebody_who_knows_the_format_is_refused() -> None:
    with pytest.raises(WrongSignature):
        opened(with_digest(SEALED[:-1] + bytes([SEALED[-1] ^ 1])))


def test_a_sender_that_the_roster_does_not_name_is_refused() -> None:
    stranger = replace(HERE, sender="stranger")
    with pytest.raises(UnknownSender):
        opened(seal(CONTENT, stranger, Identity.new(), PEERS), stranger)


def test_an_envelope_of_one_house_at_the_address_of_another_is_refused() -> None:
    with pytest.raises(ReAddressed, match="signed by ash"):
        opened(SEALED, replace(HERE, sender="cedar"))


def test_a_house_can_not_speak_in_the_name_of_another() -> None:
    with pytest.raises(ReAddressed, match="signed by cedar"):
        opened(seal(CONTENT, HERE, HOUSES["cedar"], PEERS))
    with pytest.raises(ReAddressed, match="another sender"):
        opened(seal(CONTENT, HERE, HOUSES["cedar"], PEERS), replace(HERE, sender="cedar"))


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"study": "6" * 64}, ReAddressed),
        ({"step": "grow"}, ReAddressed),
        ({"step": "grow", "attempt": 3}, ReAddressed),
        ({"attempt": 1}, ReAddressed),
        ({"attempt": 3}, Replayed),
        ({"round": 8}, Replayed),
        ({"round": 8, "step": "grow"}, Replayed),
        ({"round": 6}, WrongRound),
        ({"round": 8, "study": "6" * 64}, ReAddressed),
    ],
)
def test_an_envelope_counts_only_at_its_own_address(change: dict[str, object], refusal: type[Exception]) -> None:
    with pytest.raises(refusal) as raised:
        opened(SEALED, replace(HERE, **change))
    assert type(raised.value) is refusal


def test_an_envelope_for_others_is_refused() -> None:
    with pytest.raises(NotForUs):
        opened(SEALED, own="coordinator")
    with pytest.raises(NotForUs):
        security.open(SEALED, HERE, ROSTER)


def test_an_envelope_for_another_key_of_ours_is_refused() -> None:
    with pytest.raises(NotForUs, match="another round key"):
        security.open(SEALED, HERE, ROSTER, RoundKey.new("beech"))


def test_a_header_that_is_none_is_refused_although_its_sender_signed_it() -> None:
    with pytest.raises(Damaged, match="header"):
        opened(signed(b"\xdd\xff\xff\xff\xff", CONTENT))


def test_a_secret_hidden_for_one_recipient_is_of_no_use_to_another() -> None:
    first = header_of(SEALED).hidden[0]
    swapped = replace(header_of(SEALED), lock=header_of(SEALED).lock[:-16] + first)
    assert opened(signed(wire.pack(swapped), recrypted(swapped)), own="beech") == CONTENT
    with pytest.raises(NotForUs):
        opened(signed(wire.pack(swapped), recrypted(swapped)), own="cedar")


def recrypted(header: Header) -> bytes:
    """The content, encrypted anew under the secret of an envelope and another header."""
    secret = security._secret(header_of(SEALED), HERE, KEYS["beech"])
    return security._cipher(secret, HERE).encrypt(bytes(12), CONTENT, security._associated(wire.pack(header)))


def test_a_sender_can_not_show_two_recipients_two_contents() -> None:
    """A header is committed to one secret; a recipient for whom another was hidden can't open it."""
    second = seal(b"another story", HERE, HOUSES["ash"], PEERS)
    mixed = Header.of(HERE, header_of(second).ephemeral, header_of(SEALED).commitment, *header_of(second).hidden)
    with pytest.raises(NotForUs):
        opened(signed(wire.pack(mixed), body_of(second)))
    both = replace(header_of(SEALED), lock=header_of(SEALED).lock[:-16] + header_of(second).hidden[1])
    assert opened(signed(wire.pack(both), recrypted(both)), own="beech") == CONTENT
    with pytest.raises(NotForUs):
        opened(signed(wire.pack(both), recrypted(both)), own="cedar")


def test_a_content_is_bound_to_all_of_the_study_s_digest() -> None:
    """A header has only the beginning of it, which somebody could make two studies share."""
    alike = replace(HERE, study=STUDY[:-1] + "6")
    for recipients in (PEERS, {"beech": PEERS["beech"]}):
        with pytest.raises(NotForUs):
            opened(seal(CONTENT, alike, HOUSES["ash"], recipients))


def test_an_envelope_for_a_single_recipient_opens_for_nobody_else() -> None:
    sealed = seal(CONTENT, HERE, HOUSES["ash"], {"beech": PEERS["beech"]})
    assert opened(sealed) == CONTENT
    assert len(sealed) < len(SEALED)
    with pytest.raises(NotForUs) as refusal:
        opened(sealed, own="cedar")
    assert refusal.value.by_sender


@pytest.mark.parametrize("size", [1, 16, 31, 33, 64, 65, 80, 95, 97, 111])
def test_a_lock_of_a_length_that_none_has_is_refused(size: int) -> None:
    header = header_of(SEALED)
    object.__setattr__(header, "lock", (header.lock * 2)[:size])
    with pytest.raises(Damaged, match="a header that is none") as refusal:
        opened(signed(wire.pack(header), body_of(SEALED)))
    assert refusal.value.by_sender


def test_an_envelope_has_no_more_recipients_than_its_header_can_hold() -> None:
    key = KEYS["beech"].public
    most = {f"house{number}": key for number in range(MOST_RECIPIENTS)}
    assert opened(seal(CONTENT, HERE, HOUSES["ash"], most)) == CONTENT
    with pytest.raises(ValueError, match="at most 4000"):
        seal(CONTENT, HERE, HOUSES["ash"], {**most, "one more": key})


def test_a_house_can_not_pass_off_as_its_own_what_another_has_sealed() -> None:
    as_cedar = replace(HERE, sender="cedar")
    copied = wire.pack(replace(header_of(SEALED), message=Header.of(as_cedar).message))
    with pytest.raises(NotForUs):
        opened(signed(copied, body_of(SEALED), "cedar"), as_cedar)


def test_a_content_that_does_not_belong_to_its_header_is_refused() -> None:
    with pytest.raises(Damaged, match="can't be decrypted"):
        opened(signed(wire.pack(header_of(SEALED)), body_of(SEALED) + b"\0"))


@pytest.mark.parametrize("ephemeral", [bytes(32), b"\x01" + bytes(31)])
def test_a_sender_s_key_that_is_none_is_refused(ephemeral: bytes) -> None:
    for weak in (Header.of(HERE, ephemeral), Header.of(HERE, ephemeral, header_of(SEALED).lock[32:])):
        with pytest.raises(Damaged, match="a key that is none"):
            opened(signed(wire.pack(weak), body_of(SEALED)))


@pytest.mark.parametrize("public", [b"", b"short", bytes(32), b"\x01" + bytes(31)])
def test_a_round_key_that_everybody_could_open_is_refused_and_its_owner_named(public: bytes) -> None:
    with pytest.raises(KeyRefused, match="elm"):
        check_round_key(public, "elm")
    with pytest.raises(KeyRefused, match="elm"):
        seal(CONTENT, HERE, HOUSES["ash"], {**PEERS, "elm": public})


def test_a_refusal_does_not_repeat_a_hostile_sender_s_words() -> None:
    loud = replace(HERE, step="score\nround 7 succeeded")
    with pytest.raises(ReAddressed) as refusal:
        opened(seal(CONTENT, loud, HOUSES["ash"], PEERS))
    assert "succeeded" not in str(refusal.value)


def test_a_signature_for_another_purpose_is_not_taken_for_an_envelope_s() -> None:
    digest = security._intact(SEALED, HERE, len(SEALED))[0]
    assert SEALED[SIGNATURE_AT:PREFIX_BYTES] == HOUSES["ash"].sign(b"spinney envelope 2\0" + digest)
    forged = SEALED[:SIGNATURE_AT] + HOUSES["ash"].sign(b"spinney roster 1\0" + digest) + SEALED[PREFIX_BYTES:]
    with pytest.raises(WrongSignature):
        opened(forged)


# ---------------------------------------------------------------------------------------------------------------
# A hostile house, ten thousand times


def forgery(real: list[bytes], rng: random.Random) -> tuple[bytes, MessageId]:
    """A mutated, forged or displaced envelope, and where it is put."""
    data, other, at = rng.choice(real), rng.choice(real), rng.randrange(2_000)
    at %= len(data)
    match rng.randrange(10):
        case 0:
            return data[:at], HERE
        case 1:
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :], HERE
        case 2:
            return data[:at] + rng.randbytes(rng.randrange(1, 40)) + data[at:], HERE
        case 3:  # front of one, back of another
            return with_digest(data[:PREFIX_BYTES] + other[PREFIX_BYTES:-1] + bytes([other[-1] ^ 1])), HERE
        case 4:  # right digest, header or content changed
            at = max(at, PREFIX_BYTES)
            return with_digest(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]), HERE
        case 5:
            return rng.randbytes(rng.randrange(400)), HERE
        case 6:  # properly formed, signed by somebody else
            signer = rng.choice([Identity.new(), HOUSES["cedar"], HOUSES["coordinator"]])
            return seal(data, HERE, signer, rng.choice([None, PEERS])), HERE
        case 7:  # genuine, put somewhere else
            change = rng.choice([{"round": 9}, {"step": "grow"}, {"attempt": 1}, {"sender": "cedar"}, {"study": ""}])
            return data, replace(HERE, **change)
        case 8:  # a member signs a header that is none, or one that doesn't fit
            header = wire.pack(header_of(data))
            place = rng.randrange(len(header))
            header = header[:place] + bytes([header[place] ^ 1 << rng.randrange(8)]) + header[place + 1 :]
            return signed(header, body_of(data)), HERE
        case _:  # signature dropped, or of another envelope
            signature = rng.choice([bytes(64), other[SIGNATURE_AT:PREFIX_BYTES], rng.randbytes(64)])
            return with_digest(data[:SIGNATURE_AT] + signature + data[PREFIX_BYTES:-1] + bytes([data[-1] ^ 1])), HERE


def test_ten_thousand_mutated_and_forged_envelopes_of_every_kind_are_refused() -> None:
    rng = random.Random(4)
    real = [seal(wire.encode_message(message), HERE, HOUSES["ash"], PEERS) for message in messages().values()]
    refused: Counter[type[Refused]] = Counter()
    for _ in range(10_000):
        data, place = forgery(real, rng)
        with pytest.raises(Refused) as refusal:
            opened(data, place)
        refused[refusal.type] += 1
    assert refused.total() == 10_000
    assert {Truncated, Damaged, WrongSignature, ReAddressed, Unsigned, Replayed, NotForUs, UnknownVersion} <= {*refused}


# ---------------------------------------------------------------------------------------------------------------
# Keys of a round


def test_a_key_stolen_after_the_round_opens_nothing_old(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, "wood", "beech")
    key = rounds.enter(7)
    secret = key.private.private_bytes_raw()
    KeyRing(tmp_path).create()
    letter = seal(CONTENT, HERE, HOUSES["ash"], {"beech": key.public})
    assert security.open(letter, HERE, ROSTER, rounds.enter(7)) == CONTENT
    rounds.leave(7)
    assert not any(secret in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    with pytest.raises(NotForUs):  # with everything that is left in the house: its next round key
        security.open(letter, HERE, ROSTER, rounds.enter(8))
    with pytest.raises(Replayed):
        rounds.enter(7)


def test_a_sender_s_own_keys_do_not_open_what_it_has_sent() -> None:
    with pytest.raises(NotForUs):
        opened(SEALED, own="ash")


def test_a_killed_house_has_the_same_round_key_when_it_is_started_again(tmp_path: Path) -> None:
    before = Rounds(tmp_path, "wood", "ash").enter(3, "opening")
    assert Rounds(tmp_path, "wood", "ash").enter(3, "opening").public == before.public


def test_two_processes_of_a_house_have_the_same_round_key(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from spinney.house.envelopes import Rounds\n"
        "print(Rounds(Path(sys.argv[1]), 'wood', 'ash').enter(3).public.hex())"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert len({run.communicate(timeout=60)[0] for run in runs}) == 1
    assert [run.returncode for run in runs] == [0, 0, 0]


def test_a_round_that_was_never_left_loses_its_key_when_the_next_begins(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, "wood", "ash")
    rounds.enter(1)
    (rounds.folder / ".1.key.99.partial").write_bytes(b"half of a key")  # by a writer that was killed
    rounds.enter(2)
    assert sorted(file.name for file in rounds.folder.glob("*.key*")) == ["2.key"]


def test_a_round_that_is_older_than_one_already_seen_is_a_replay(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, "wood", "ash")
    rounds.enter(5)
    with pytest.raises(Replayed, match="has seen round 5"):
        rounds.enter(4)


def test_a_second_opening_of_the_same_round_is_a_replay(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, "wood", "ash")
    rounds.enter(5, "one")
    with pytest.raises(Replayed, match="other words"):
        rounds.enter(5, "two")


def test_studies_count_their_rounds_apart(tmp_path: Path) -> None:
    Rounds(tmp_path, "wood", "ash").enter(5)
    Rounds(tmp_path, "meadow", "ash").enter(1)
    Rounds(tmp_path, "meadow", "ash").leave(1)
    assert (tmp_path / "keys/rounds/wood/5.key").exists()


@pytest.mark.parametrize("note", [b"", b"[]", b'{"round": "x"}'])
def test_a_house_that_forgot_its_rounds_says_so(tmp_path: Path, note: bytes) -> None:
    rounds = Rounds(tmp_path, "wood", "ash")
    rounds.enter(5)
    (rounds.folder / "newest.json").write_bytes(note)
    with pytest.raises(KeysUnusable, match="restore it"):
        rounds.enter(6)


def test_a_damaged_round_key_costs_the_round(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, "wood", "ash")
    rounds.enter(5)
    (rounds.folder / "5.key").write_bytes(b"short")
    with pytest.raises(KeysUnusable, match="sit round 5 out"):
        rounds.enter(5)


# ---------------------------------------------------------------------------------------------------------------
# Signing keys


def test_round_keys_are_kept_from_others(tmp_path: Path) -> None:
    Rounds(tmp_path / "home", "wood", "ash").enter(1)
    made = [tmp_path / "home/keys", *(tmp_path / "home/keys").rglob("*")]
    open_to_others = [file for file in made if file.name != ".lock" and stat.S_IMODE(file.stat().st_mode) & 0o077]
    assert open_to_others == []


def test_every_refusal_says_where_and_why() -> None:
    for refusal in EnvelopeRefused.__subclasses__():
        assert str(refusal(HERE, "detail")) == f"ash, round 7, score.2: {refusal.why} (detail)"


def test_a_megabyte_is_sealed_and_opened_in_milliseconds() -> None:
    forest = bytes(8_000_000)
    start = time.process_time()
    opened(seal(forest, HERE, HOUSES["ash"], PEERS))
    assert time.process_time() - start < 2
