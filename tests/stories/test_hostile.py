"""A hostile member with the run of the exchange, in a running round: nothing of it is accepted, and nothing stops."""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.exchange import Address, BadAddress, Exchange, ObjectTooLarge
from spinney.connectors.exchange.places.folder import Folder
from spinney.errors import Refused, RoundVoid
from spinney.federation.messages import Invitation, Signature
from spinney.federation.seam import Card, Decline, Message, Parcel
from spinney.house import encoding as wire
from spinney.house import envelopes as security
from spinney.house.channel import RoundChannel
from spinney.house.envelopes import MessageId, Replayed, Rounds, UnknownSender
from spinney.house.keys import Identity, RoundKey
from spinney.house.round_messages import Ask, Opening, Order, Over, ask_name
from spinney.house.rounds import CoordinatorSession, SealedMail
from spinney.rows.cohort import Cohort
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.spinney.house.houses import PATIENCE, SITES, World, small_cohorts, small_study
from tests.stories.forgeries import REFUSALS, Forger, letter

MOST_READ = 64 * 1024
GARBAGE = b"SPNE" + bytes(range(256))


@pytest.fixture(scope="module")
def study() -> Study:
    return small_study()


@pytest.fixture(scope="module")
def cohorts(study: Study) -> dict[str, Cohort]:
    return small_cohorts(study)


@pytest.fixture(scope="module")
def reference(study: Study, cohorts: dict[str, Cohort]) -> str:
    """The digest of an undisturbed round."""
    return simulate(study, cohorts).model_digest


@pytest.fixture
def world(tmp_path: Path, study: Study, cohorts: dict[str, Cohort]) -> World:
    return World(tmp_path, study, cohorts)


# ---------------------------------------------------------------------------------------------------------------
# Ten thousand forgeries


class Planted(Exchange):
    """An exchange on which one thing lies at every address."""

    def __init__(self, sealed: bytes) -> None:
        self._sealed = sealed

    def get(self, address: Address, limit: int) -> bytes | None:
        if not address.step.endswith("-spare1"):
            return None if "-spare" in address.step else self._read(address, limit)
        return None

    def _read(self, address: Address, limit: int) -> bytes:
        if len(self._sealed) > limit:
            raise ObjectTooLarge(f"{address}: {len(self._sealed)} bytes, and {limit} are allowed; not read")
        return self._sealed


@dataclass(frozen=True)
class BesetDesk(RoundChannel):
    """Before it believes a real letter, it is shown forgeries of it, in the midst of the round."""

    identities: dict[str, Identity] = field(default_factory=dict)
    tally: Counter[tuple[str, str]] = field(default_factory=Counter)  # what was due, what came
    per_letter: int = 0

    def look(self, sender: str, step: str, attempt: int, kind: str, limit: int = security.LARGEST) -> bytes | None:
        content = super().look(sender, step, attempt, kind, limit)
        if content is not None:
            sealed = self.exchange.get(Address(self.study, sender, self.round, step, attempt), security.LARGEST)
            assert sealed is not None
            self._show_forgeries(sealed, MessageId(self.digest, self.round, step, attempt, sender))
        return content

    def _show_forgeries(self, sealed: bytes, message: MessageId) -> None:
        member = next(identity for name, identity in self.identities.items() if name not in (message.sender, self.me))
        rng = random.Random(f"{self.me} {message}")
        forger = Forger(rng, self.identities[message.sender], member, MOST_READ)
        for _ in range(self.per_letter):
            due, forged, expected = forger.forge(sealed, message)
            self.tally[due, self._met(forged, expected)] += 1

    def _met(self, forged: bytes, expected: MessageId) -> str:
        """The refusal that a forgery meets at a desk with this house's keys, and that its log names."""
        values = {one.name: getattr(self, one.name) for one in fields(RoundChannel) if not one.name.startswith("_")}
        channel = RoundChannel(**{**values, "exchange": Planted(forged)})
        try:
            accepted = channel.look(expected.sender, expected.step, expected.attempt, "forgery", MOST_READ)
        except Refused:
            accepted = None
        assert accepted is None, "a forgery was accepted"
        return ", ".join(type(reason).__name__ for reason in channel._passed_over.values())


@pytest.fixture
def quick_world(study: Study, cohorts: dict[str, Cohort]) -> Iterator[World]:
    """In memory where there is a folder in memory: ten thousand lines in a log are ten thousand syncs of a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield World(Path(folder) / "world", study, cohorts)


def test_ten_thousand_forgeries_shown_in_a_running_round_are_refused_and_change_nothing(
    quick_world: World, reference: str
) -> None:
    world = quick_world
    tally: Counter[tuple[str, str]] = Counter()

    def beset(name: str) -> RoundChannel:
        plain = world.channel(name)
        values = {one.name: getattr(plain, one.name) for one in fields(RoundChannel) if not one.name.startswith("_")}
        return BesetDesk(**values, identities=world.identities, tally=tally, per_letter=200)

    coordinator = world.coordinator(channel=beset("coordinator"))
    sites = {name: world.site(name, beset(name)) for name in SITES}
    night: dict[str, Callable[[], object]] = {"coordinator": coordinator.run}
    night |= {name: lambda site=site: site.run(PATIENCE) for name, site in sites.items()}  # type: ignore[misc]
    assert world.night(night) == dict.fromkeys(night, Over(reference, ""))
    assert coordinator.left_out == {}
    assert tally.total() >= 10_000
    assert {due for due, _ in tally} == REFUSALS
    assert not {pair: count for pair, count in tally.items() if pair[0] != pair[1]}
    logged = Counter(kind for name in night for kind in world.refusals(name))
    assert logged == Counter({due: count for (due, _), count in tally.items()})


# ---------------------------------------------------------------------------------------------------------------
# Things that lie in the way


def plant(world: World, sender: str, name: str, data: bytes = GARBAGE, number: int = 1) -> None:
    place = world.place / world.study.name / sender / str(number) / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def whole_night(world: World) -> dict[str, object]:
    return world.night({"coordinator": world.coordinator().run, **world.honest(*SITES)})


@pytest.mark.parametrize(
    "names",
    [
        ("over.17", "ask002.9", "opening.2"),
        ("ask003-aaa.1", "ask999.1", "over-spare3.1"),
        ("opening.1", "over.1"),
        tuple(f"ask{number:03d}.1" for number in range(1, 9)),
        tuple(f"ask{number:03d}{spare}.1" for number in range(1, 9) for spare in ("", "-spare1", "-spare2")),
    ],
)
def test_what_is_planted_in_the_coordinator_s_folder_neither_wins_nor_stops(
    world: World, reference: str, names: tuple[str, ...]
) -> None:
    for name in names:
        plant(world, "coordinator", name)
    assert set(whole_night(world).values()) == {Over(reference, "")}


def test_answers_planted_in_a_site_s_name_neither_win_nor_stop(world: World, reference: str) -> None:
    for step in ("join", "grow", "check", "score", "sign", "release", "finish"):
        plant(world, "ash", f"{step}.1")
        plant(world, "birch", f"{step}-spare1.1")
    assert set(whole_night(world).values()) == {Over(reference, "")}
    assert len(world.refusals("coordinator")) == 7  # ash's; birch's own answers came first


def test_an_over_that_another_member_has_signed_ends_nothing(world: World, reference: str) -> None:
    message = MessageId(world.study.digest, 1, "over", 1, "coordinator")
    forged = security.seal(wire.pack(Over("0" * 64, "")), message, world.identities["cedar"])
    plant(world, "coordinator", "over.1", forged)
    assert set(whole_night(world).values()) == {Over(reference, "")}
    assert "ReAddressed" in world.refusals("ash")


def test_a_site_that_floods_the_exchange_holds_nobody_up(world: World, reference: str) -> None:
    for number in range(3000):
        plant(world, "cedar", f"flood{number}.1", b"x")
        plant(world, "coordinator", f"ask{number:03d}-flood.1", b"x")
        (world.place / "fever" / "coordinator" / str(1000 + number)).mkdir()
    assert set(whole_night(world).values()) == {Over(reference, "")}


@pytest.mark.parametrize("locked", ["join.1", "parcel-"])
def test_a_member_that_locks_what_it_has_sent_is_out_and_the_others_go_on(
    tmp_path: Path, study: Study, locked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    four = small_cohorts(study, (*SITES, "dogwood"))
    world = World(tmp_path / "four", study, four)
    read = Folder.read

    def kept_out(store: Folder, path: str, size: int) -> bytes:
        if f"/dogwood/1/{locked}" in path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return read(store, path, size)

    monkeypatch.setattr(Folder, "read", kept_out)

    def locking() -> None:
        with suppress(RoundVoid):  # the coordinator goes on without it
            world.site("dogwood").run(PATIENCE)

    coordinator = world.coordinator(timedelta(seconds=10))
    results = world.night({"coordinator": coordinator.run, "dogwood": locking, **world.honest(*SITES)})
    (over,) = {results[name] for name in ("coordinator", *SITES)}
    assert isinstance(over, Over)
    assert over.model
    readers = ("coordinator",) if locked == "join.1" else SITES
    assert [world.refusals(name) for name in readers] == [["Unreadable"]] * len(readers)


def test_an_address_and_all_its_spares_taken_ends_the_coordinator_with_a_clear_word(world: World) -> None:
    for spare in ("", "-spare1", "-spare2", "-spare3"):
        plant(world, "coordinator", f"opening{spare}.1")
    with pytest.raises(Refused, match="ask who else writes under this name"):
        world.coordinator().run()


def test_objects_that_appear_while_the_round_runs_change_nothing(world: World, reference: str) -> None:
    over = threading.Event()

    def harass() -> None:
        """Copy whatever is there to where it does not belong, mutated or not."""
        rng = random.Random(5)
        root = world.place / world.study.name
        while not over.wait(0.01):
            real = [path for path in root.glob("*/1/*.1") if not path.name.startswith(("copy", "."))]
            if real:
                source, aim = rng.choice(real), rng.choice(["ash", "birch", "cedar", "coordinator"])
                data = source.read_bytes()
                at = rng.randrange(len(data))
                plant(world, aim, f"copy{rng.randrange(50)}.{rng.randrange(9)}", data)
                plant(world, aim, source.name.replace(".1", ".2"), data[:at] + rng.randbytes(1) + data[at + 1 :])
                plant(world, aim, source.name.replace(".1", "-spare2.1"), data)

    harasser = threading.Thread(target=harass)
    harasser.start()
    try:
        results = whole_night(world)
    finally:
        over.set()
        harasser.join()
    assert set(results.values()) == {Over(reference, "")}


# ---------------------------------------------------------------------------------------------------------------
# Old rounds


def test_the_opening_of_an_old_round_is_not_entered_again(world: World) -> None:
    whole_night(world)
    rounds = Rounds(world.home("ash"), world.study.name, "ash")
    rounds.leave(1)
    with pytest.raises(Replayed, match="the round is over at this house"):
        rounds.enter(1)
    rounds.enter(2)
    with pytest.raises(Replayed, match="this house has seen round 2"):
        rounds.enter(1)


def test_an_old_opening_in_a_new_round_s_place_is_passed_over(world: World, reference: str) -> None:
    whole_night(world)
    old = world.place / "fever" / "coordinator"
    shutil.copytree(old / "1", old / "2")
    with pytest.raises(RoundVoid, match="no opening in time"):
        world.site("ash", world.channel("ash", 2)).run(PATIENCE / 1000)
    assert world.refusals("ash") == ["Replayed"]
    assert reference


# ---------------------------------------------------------------------------------------------------------------
# A coordinator, or a member, that signs nonsense


def coordinator_says(world: World, *asks: bytes) -> None:
    """A coordinator that opens a round and then says something."""
    channel = world.channel("coordinator")
    opening = Opening(1, world.study.digest, "", channel.key.public, 1)
    channel.publish("opening", 1, "Opening", lambda: wire.pack(opening), {})
    for number, content in enumerate(asks, start=1):
        channel.publish(ask_name(number), 1, "Ask", lambda content=content: content, {})  # type: ignore[misc]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"\1no letter at all", "the letter is damaged"),
        (b"no letter at all", "one of an unknown form"),
        (letter(b"no ask at all"), "damaged, or not of the type"),
        (letter(bytes(wire.LARGEST + 1)), "unpacks to more than"),
    ],
)
def test_an_ask_that_can_not_be_read_voids_the_round_with_its_reason(world: World, said: bytes, reason: str) -> None:
    coordinator_says(world, said)
    with pytest.raises(RoundVoid, match=f"{reason}.*this house keeps the model that it has"):
        world.site("ash").run(PATIENCE)


def test_an_ask_for_other_keys_says_that_the_round_goes_on_without_this_house(world: World) -> None:
    coordinator_says(world)
    channel = world.channel("coordinator")
    channel.publish(ask_name(1), 1, "Ask", lambda: letter(b""), {"birch": RoundKey.new("birch").public})
    with pytest.raises(RoundVoid, match="went on with round 1 without this house"):
        world.site("ash").run(PATIENCE)


@pytest.mark.parametrize("order", [b"no message", wire.encode_message(Signature(bytes(64)))])
def test_an_order_that_can_not_be_followed_is_declined_and_the_end_awaited(world: World, order: bytes) -> None:
    asked = Ask("join", 1, (Order(("ash",), order),), {})
    coordinator_says(world, letter(wire.pack(asked)), b"and then nonsense, which is not read any more")
    channel = world.channel("coordinator")
    channel.publish("over", 1, "Over", lambda: wire.pack(Over("", "nobody is left")), {})
    assert world.site("ash").run(PATIENCE) == Over("", "nobody is left")
    reply = channel.look("ash", "join", 1, "answer")
    assert reply is not None
    assert isinstance(wire.decode_message(wire.unsqueeze(reply)), Decline)


def test_a_round_key_that_its_owner_has_not_signed_is_declined(world: World) -> None:
    columns = world.cohorts["ash"].present
    forged = Card(RoundKey.new("birch").public, columns, bytes(64))
    asked = Ask("join", 1, (Order(("ash",), wire.encode_message(Invitation(1))),), {"birch": forged})
    coordinator_says(world, letter(wire.pack(asked)))
    world.channel("coordinator").publish("over", 1, "Over", lambda: wire.pack(Over("", "nobody is left")), {})
    world.site("ash").run(PATIENCE)
    reply = world.channel("coordinator").look("ash", "join", 1, "answer")
    assert reply is not None
    assert wire.decode_message(wire.unsqueeze(reply)) == Decline(
        "the round key and features of birch are not signed by birch"
    )


@pytest.mark.parametrize("content", [b"", b"noise", letter(b"noise"), letter(bytes(wire.LARGEST + 1))])
def test_a_member_that_signs_nonsense_is_out_at_once_and_the_others_go_on(
    tmp_path: Path, study: Study, content: bytes
) -> None:
    four = small_cohorts(study, (*SITES, "dogwood"))
    world = World(tmp_path / "four", study, four)
    channel = world.channel("dogwood")

    def nonsense() -> object:
        recipients = {"coordinator": world.channel("coordinator").key.public}
        channel.publish("join", 1, "nonsense", lambda: content, recipients)
        return None

    coordinator = world.coordinator()
    night = {"coordinator": coordinator.run, "dogwood": nonsense, **world.honest(*SITES)}
    three = {name: cohort for name, cohort in four.items() if name != "dogwood"}
    assert world.night(night)["coordinator"] == Over(simulate(study, three).model_digest, "")
    assert "join refused" in coordinator.left_out["dogwood"]
    assert world.refusals("coordinator") == ["MessageRefused"]


def test_a_second_copy_in_a_house_s_own_words_is_an_error(world: World) -> None:
    channel = world.channel("ash")
    channel.publish("join", 1, "answer", lambda: b"one", {})
    for path in (world.home("ash") / "outbox").rglob("join.1"):
        path.unlink()
    with pytest.raises(Refused, match="a different message is there already"):
        replace(channel).publish("join", 1, "answer", lambda: b"two", {})


def _around(world: World) -> set[Path]:
    """All that is in the world and beside it; not in the worlds of other tests, where something may still go on."""
    return {*world.folder.rglob("*"), *world.folder.parent.glob("*")}


@pytest.mark.parametrize("step", ["../../../../../escaped", "/tmp/escaped-from-its-house", "join\n", "x" * 60, ""])
@pytest.mark.parametrize("attempt", [1, -1])
def test_an_ask_can_not_name_a_file_outside_of_the_outbox(world: World, step: str, attempt: int) -> None:
    asked = object.__new__(Ask)  # a hostile coordinator is not held up by our checks
    parts = {"step": step, "attempt": attempt, "orders": (Order(("ash",), b"no message"),), "cards": {}}
    for name, value in parts.items():
        object.__setattr__(asked, name, value)
    coordinator_says(world, letter(wire.pack(asked)))
    before = _around(world)
    with pytest.raises(RoundVoid, match="that no answer can be addressed with; this house keeps"):
        world.site("ash").run(PATIENCE)
    new = {path for path in _around(world) - before if not path.is_dir()}
    assert all(path.is_relative_to(world.home("ash")) for path in new)
    assert not any("escaped" in str(path) for path in (*new, *Path("/tmp").glob("escaped*")))
    assert world.refusals("ash") == ["Refused"]


def test_nothing_is_kept_under_a_name_that_is_no_address(world: World) -> None:
    with pytest.raises(BadAddress):
        world.channel("ash").publish("../../../../escaped", 1, "answer", lambda: b"one", {})
    assert not [*world.folder.rglob("*escaped*")]


@pytest.mark.parametrize(
    ("model", "void"),
    [("abcd", ""), ("0" * 66, ""), ("", "word " * 1000), ("", "\x1b[2Jand then"), ("", "two\nlines")],
)
def test_an_end_in_words_that_nobody_would_say_is_refused(world: World, model: str, void: str) -> None:
    coordinator_says(world)
    said = object.__new__(Over)
    object.__setattr__(said, "model", model)
    object.__setattr__(said, "void", void)
    world.channel("coordinator").publish("over", 1, "Over", lambda: wire.pack(said), {})
    with pytest.raises(RoundVoid, match="a sentence that says why it is void; this house keeps"):
        world.site("ash").run(PATIENCE)
    assert world.refusals("ash") == ["Refused"]


@pytest.mark.parametrize("sender", ["stranger", "../../ash", "x" * 10_000, "\x1b[2J"])
def test_a_parcel_of_somebody_outside_of_the_roster_is_refused_and_noted(world: World, sender: str) -> None:
    post = SealedMail(world.channel("ash"))
    with pytest.raises(UnknownSender):
        post.fetch(Parcel(sender, "0" * 64, 10))
    assert world.refusals("ash") == ["UnknownSender"]
    (line,) = [line for line in world.audit("ash").lines() if line.entry.direction == "refused"]
    assert line.entry.peer in ("stranger", "somebody without a proper name")


def test_a_parcel_is_read_up_to_the_limit_of_the_house_whatever_size_was_announced(world: World) -> None:
    place = world.place / "fever" / "birch" / "1" / f"parcel-{'0' * 32}.1"
    place.parent.mkdir(parents=True)
    place.touch()
    os.truncate(place, 2**40)
    with pytest.raises(Refused, match="there is no parcel of birch"):
        SealedMail(world.channel("ash")).fetch(Parcel("birch", "0" * 64, 2**40))
    assert world.refusals("ash") == ["ObjectTooLarge"]


@pytest.mark.parametrize("step", ["join", "check", "score"])
@pytest.mark.parametrize("deed", ["taken back", "put another in its place"])
def test_an_answer_that_counted_counts_also_if_its_sender_changes_its_mind_while_the_coordinator_is_off(
    world: World, reference: str, step: str, deed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = CoordinatorSession._ask
    off = threading.Event()

    def stops_once(self: CoordinatorSession, asked: str, *rest: Any) -> dict[str, Message]:
        replies = ask(self, asked, *rest)
        if asked == step and not off.is_set():
            off.set()
            raise PowerCut
        return replies

    def interrupted() -> object:
        with pytest.raises(PowerCut):
            world.coordinator().run()
        answer = world.place / "fever" / "cedar" / "1" / f"{step}.1"
        answer.unlink()
        if deed != "taken back":
            message = MessageId(world.study.digest, 1, step, 1, "cedar")
            other = letter(wire.encode_message(Decline("on second thoughts")))
            answer.write_bytes(security.seal(other, message, world.identities["cedar"]))
        return world.coordinator().run()

    monkeypatch.setattr(CoordinatorSession, "_ask", stops_once)
    assert set(world.night({"coordinator": interrupted, **world.honest(*SITES)}).values()) == {Over(reference, "")}


class PowerCut(BaseException):
    """The machine is off."""
