"""What a house keeps of what it has sent: everything but what takes a mask off, and not for ever."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from spinney.configuration.site import read_site
from spinney.demo.federation import COORDINATOR, Village
from spinney.federation.messages import Done, MaskedCounts, ReleasedSeed
from spinney.federation.seam import Decline, Message
from spinney.flows.cli import main
from spinney.forest.codec import MAGIC
from spinney.house import encoding as wire
from spinney.house.audit import Audit, Line
from spinney.house.round_messages import Ask, orders_of
from spinney.house.sent import NotKept, SentMessages, may_be_kept
from spinney.house.site_night import SiteNights
from tests.federations import breast_village
from tests.nights import others

STUDY = "ab" * 32


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    village = breast_village(tmp_path_factory.mktemp("village"), ("ash", "birch", "cedar"))
    with others(village) as running:
        for house in running.values():
            house.result()
    return village


def sent_lines(home: Path) -> list[Line]:
    return [line for line in Audit(home / "audit.jsonl").lines() if line.entry.direction == "sent"]


def letter(message: Message) -> bytes:
    return wire.squeeze(wire.encode_message(message))


def ask(message: Message) -> bytes:
    return wire.squeeze(wire.pack(Ask("score", 1, orders_of({"ash": message}), {})))


@pytest.mark.parametrize(
    ("kind", "content", "kept"),
    [
        ("Done", letter(Done({})), True),
        ("Decline", letter(Decline("no")), True),
        ("MaskedCounts", letter(MaskedCounts(np.zeros(3, np.uint64))), True),
        ("ReleasedSeed", letter(ReleasedSeed(b"s" * 32, ())), False),
        ("Ask", ask(Done({})), True),
        ("Ask", ask(ReleasedSeed(b"s" * 32, ())), False),
        ("Ask", b"nonsense", False),
        ("Parcel", MAGIC + b"trees", True),
        ("Parcel", b"\0" * 64, False),  # a sum on its way round a ring
        ("SomethingNew", b"", False),
    ],
)
def test_what_takes_a_mask_off_is_never_kept(tmp_path: Path, kind: str, content: bytes, kept: bool) -> None:
    assert may_be_kept(kind, content) is kept
    SentMessages(tmp_path / "home", "wood").keep(3, b"sealed", STUDY, kind, content)
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in found] == ([hashlib.sha256(b"sealed").hexdigest()] if kept else [])
    assert all(path.read_bytes() == bytes.fromhex(STUDY) + content for path in found)


@pytest.mark.parametrize("house", ["ash", COORDINATOR])
def test_every_line_of_a_night_can_be_opened_but_those_about_seeds(village: Village, house: str) -> None:
    home = village.home(house)
    lines = sent_lines(home)
    assert len(lines) > 5
    for line in lines:
        answer = CliRunner().invoke(main, ["audit", "open", str(line.number), "--home", str(home)])
        secret = line.entry.kind in ("ReleasedSeed", "Roster", "Withdrawal")
        assert answer.exit_code == (2 if secret else 0), (line.entry.kind, answer.output)
        assert "Traceback" not in answer.output
    kinds = {line.entry.kind for line in lines}
    assert ({"Description", "Parcel", "MaskedCounts", "ReleasedSeed"} if house == "ash" else {"Ask", "Over"}) <= kinds


def test_what_is_kept_is_what_went_out(village: Village) -> None:
    """Another house has received the same: its trees are those that the sender shows."""
    parcel = next(line for line in sent_lines(village.home("ash")) if line.entry.kind == "Parcel")
    content = SentMessages(village.home("ash"), "breast").of(parcel).content
    grown = next(line for line in sent_lines(village.home("ash")) if line.entry.kind == "GrownForest")
    told = wire.decode_message(wire.unsqueeze(SentMessages(village.home("ash"), "breast").of(grown).content))
    assert told.forest.digest == hashlib.sha256(content).hexdigest()  # type: ignore[attr-defined]


def test_no_seed_is_on_disk_anywhere(village: Village) -> None:
    for path in (village.home("ash") / "sent").rglob("*"):
        if path.is_file():
            content = path.read_bytes()[32:]
            assert content.startswith(MAGIC) or wire.kind_of(content) != "ReleasedSeed"


def test_what_is_about_nothing_sent_is_said_to_be_so(village: Village) -> None:
    home = village.home("ash")
    line = next(one for one in Audit(home / "audit.jsonl").lines() if one.entry.direction == "received")
    with pytest.raises(NotKept, match="nothing that this house has sent"):
        SentMessages(home, "breast").of(line)
    answer = CliRunner().invoke(main, ["audit", "open", "9999", "--home", str(home)])
    assert answer.exit_code == 2
    assert "has no line 9999" in answer.output


def test_messages_go_when_the_study_s_time_is_over(village: Village) -> None:
    nights = SiteNights(read_site(village.site_file("birch")))
    folder = village.home("birch") / "sent/breast/1"
    days = nights.study.schedule.retention_days
    sent = SentMessages(village.home("birch"), "breast")
    assert sent.expire(datetime.now(UTC) - timedelta(days=days)) == 0
    long_ago = (datetime.now(UTC) - timedelta(days=days + 1)).timestamp()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (long_ago, long_ago))
    with nights.alone():
        assert not folder.exists()
