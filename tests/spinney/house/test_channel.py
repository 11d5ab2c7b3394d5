"""Where a house reads and writes in a round: once, for whom it is meant, and never without a line in the log."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from spinney.connectors.exchange import BadAddress, SecondCopy
from spinney.errors import Refused
from spinney.house.addresses import SPARES, addresses
from spinney.house.channel import RoundChannel
from spinney.house.envelopes import NotForUs, UnknownSender
from tests.spinney.house.houses import SITES, World, small_cohorts, small_study


@pytest.fixture
def world(tmp_path: Path) -> World:
    study = small_study()
    return World(tmp_path, study, small_cohorts(study))


@pytest.fixture
def ash(world: World) -> RoundChannel:
    return world.channel("ash")


@pytest.fixture
def birch(world: World) -> RoundChannel:
    return world.channel("birch")


def send(sender: RoundChannel, recipient: RoundChannel, content: bytes = b"hello", step: str = "grow") -> None:
    sender.publish(step, 1, "Done", lambda: content, {recipient.me: recipient.key.public})


def test_what_is_meant_for_one_house_is_read_by_no_other(world: World, ash: RoundChannel, birch: RoundChannel):
    send(ash, birch)
    assert birch.look("ash", "grow", 1, "Done") == b"hello"
    with pytest.raises(NotForUs):
        world.channel("cedar").look("ash", "grow", 1, "Done")
    assert world.refusals("cedar") == ["NotForUs"]


def test_as_long_as_nothing_is_there_nothing_is_found(world: World, birch: RoundChannel):
    assert birch.look("ash", "grow", 1, "Done") is None
    assert list(world.audit("birch").lines()) == []


def test_a_message_is_written_once_and_published_verbatim_after_a_restart(
    world: World, ash: RoundChannel, birch: RoundChannel
):
    send(ash, birch)
    before = (world.place / "fever/ash/1/grow.1").read_bytes()
    (world.place / "fever/ash/1/grow.1").unlink()
    again = world.channel("ash")
    assert again.has_sent("grow", 1)
    again.publish("grow", 1, "Done", lambda: pytest.fail("written twice"), {"birch": birch.key.public})
    assert (world.place / "fever/ash/1/grow.1").read_bytes() == before
    assert len(list(world.audit("ash").lines())) == 1


def test_the_log_tells_of_the_very_bytes_that_lie_on_the_exchange(world: World, ash: RoundChannel, birch: RoundChannel):
    send(ash, birch)
    birch.look("ash", "grow", 1, "Done")
    sealed = (world.place / "fever/ash/1/grow.1").read_bytes()
    for name, direction, peer in (("ash", "sent", "birch"), ("birch", "received", "ash")):
        (entry,) = (line.entry for line in world.audit(name).lines())
        assert (entry.direction, entry.peer, entry.kind, entry.round) == (direction, peer, "Done", 1)
        assert (entry.digest, entry.bytes) == (hashlib.sha256(sealed).hexdigest(), len(sealed))


def test_where_somebody_else_s_bytes_lie_a_message_goes_to_a_spare_address_and_is_found(
    world: World, ash: RoundChannel, birch: RoundChannel
):
    taken = world.place / "fever/ash/1/grow.1"
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"in the way")
    send(ash, birch)
    for _ in range(3):
        assert birch.look("ash", "grow", 1, "Done") == b"hello"
    assert world.refusals("ash") == ["SecondCopy"]
    assert world.refusals("birch") == ["Truncated"]  # noted once, however often it is looked at


def test_with_every_spare_taken_a_message_is_not_sent(world: World, ash: RoundChannel, birch: RoundChannel):
    folder = world.place / "fever/ash/1"
    folder.mkdir(parents=True)
    for address in addresses("fever", "ash", 1, "grow"):
        (folder / f"{address.step}.1").write_bytes(b"in the way")
    with pytest.raises(SecondCopy):
        send(ash, birch)
    assert world.refusals("ash") == ["SecondCopy"] * (1 + SPARES)


def test_a_stranger_is_not_listened_to_whatever_the_name(world: World, birch: RoundChannel):
    for name in ("elm", "../../elm"):
        with pytest.raises(UnknownSender):
            birch.look(name, "grow", 1, "Done")
    peers = [line.entry.peer for line in world.audit("birch").lines()]
    assert peers == ["elm", "somebody without a proper name"]


def test_a_step_that_is_a_path_is_no_file_of_the_outbox(world: World, ash: RoundChannel, birch: RoundChannel):
    with pytest.raises(BadAddress):
        send(ash, birch, step="../../identity")
    assert not (world.home("ash") / "outbox").exists()


def test_what_is_refused_is_noted_in_one_line(world: World, ash: RoundChannel):
    ash.refused("birch", "grow", Refused("bad\nand long " * 1000))
    (line,) = world.audit("ash").lines()
    assert "\n" not in line.entry.words
    assert len(line.entry.words) <= 1000


def test_every_house_of_the_world_is_in_the_roster(ash: RoundChannel):
    assert set(ash.roster) == {"coordinator", *SITES}
