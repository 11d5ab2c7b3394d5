"""A folder as the exchange, and what people or other programs may do to it."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spinney.connectors.exchange import ExchangeDenied, SecondCopy, TransientExchangeError, Unreadable
from spinney.connectors.exchange.places.folder import Folder
from spinney.testing.exchange import GROW, START, FakeClock, at
from tests.servers.exchange_places import FolderPlace


@pytest.mark.parametrize("moment", [600 + 0.017 * step for step in range(20)])
def test_a_message_in_a_folder_is_seen_within_a_fifth_of_a_second(folder: FolderPlace, moment: float):
    exchange = folder.open()
    clock = FakeClock({moment: lambda: exchange.put(GROW, b"trees")})
    exchange.wait([GROW], timedelta(hours=2), clock)
    assert clock.seconds - moment <= 0.2


def test_a_folder_can_be_waited_at_with_the_clock_of_this_machine(folder: FolderPlace):
    exchange = folder.open()
    thread = threading.Timer(0.1, exchange.put, [GROW, b"trees"])
    thread.start()
    assert exchange.wait([GROW], timedelta(minutes=1)).arrived == (GROW,)
    thread.join()


def test_only_what_is_older_than_the_retention_is_deleted(folder: FolderPlace):
    exchange = folder.open()
    for number in (1, 2):
        exchange.put(at("north", round=number), b"trees")
    os.utime(folder.root / "heart/north/1/grow.1", (0, START.timestamp() - 1))
    os.utime(folder.root / "heart/north/2/grow.1", (0, START.timestamp() + 1))
    assert exchange.expire(START, "heart") == 1
    assert exchange.rounds("heart", "north") == (2,)


def test_a_pipe_or_a_link_that_somebody_plants_is_no_message(folder: FolderPlace, tmp_path: Path):
    (tmp_path / "secret").write_bytes(b"elsewhere")
    (folder.root / "heart/north/7").mkdir(parents=True)
    os.mkfifo(folder.root / str(at("north", "pipe")))
    os.symlink(tmp_path / "secret", folder.root / str(at("north", "link")))
    exchange = folder.open()
    assert exchange.list("heart", 7) == ()
    for step in ("pipe", "link"):
        assert exchange.get(at("north", step), limit=100) is None
        with pytest.raises(SecondCopy):
            exchange.put(at("north", step), b"trees")
    assert (tmp_path / "secret").read_bytes() == b"elsewhere"


def lock(patch: pytest.MonkeyPatch, what: str, path: str) -> None:
    """As if the folder's rights kept this house out: tests may run as root, whom nothing keeps out."""
    real = getattr(Folder, what)

    def kept_out(store: Folder, asked: str, *rest: int) -> object:
        if path in asked:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(store, asked, *rest)

    patch.setattr(Folder, what, kept_out)


@pytest.mark.parametrize("what", ["read", "_info"], ids=["file", "folder"])
def test_what_its_writer_has_locked_is_a_refusal_of_that_message_only(
    folder: FolderPlace, what: str, monkeypatch: pytest.MonkeyPatch
):
    exchange = folder.open()
    for address in (GROW, at("south")):
        exchange.put(address, b"trees")
    lock(monkeypatch, what, "/north/")
    with pytest.raises(Unreadable, match=re.escape("heart/north/7/grow.1: this house can't read it")):
        exchange.get(GROW, limit=10)
    with pytest.raises(SecondCopy):
        exchange.put(GROW, b"TREES")
    assert exchange.get(at("south"), limit=10) == b"trees"


def test_a_house_that_may_read_nothing_is_told_so_and_blames_nobody(
    folder: FolderPlace, monkeypatch: pytest.MonkeyPatch
):
    exchange = folder.open()
    exchange.put(GROW, b"trees")
    for what in ("read", "_info", "_ls"):
        lock(monkeypatch, what, "heart")
    with pytest.raises(ExchangeDenied, match="does not allow this") as caught:
        exchange.get(GROW, limit=10)
    assert not isinstance(caught.value, Unreadable)


def test_old_files_behind_a_link_are_not_deleted(folder: FolderPlace, tmp_path: Path):
    (tmp_path / "elsewhere/7").mkdir(parents=True)
    (tmp_path / "elsewhere/7/grow.1").write_bytes(b"precious")
    (folder.root / "heart").mkdir()
    os.symlink(tmp_path / "elsewhere", folder.root / "heart/north")
    assert folder.open().expire(datetime.now(UTC) + timedelta(hours=1), "heart") == 0
    assert (tmp_path / "elsewhere/7/grow.1").exists()


def test_other_users_may_read_a_message_as_the_umask_says(folder: FolderPlace):
    before = os.umask(0o027)
    try:
        folder.open().put(GROW, b"trees")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder.root / str(GROW)).stat().st_mode) == 0o640


def test_a_share_without_links_still_never_overwrites(folder: FolderPlace, monkeypatch: pytest.MonkeyPatch):
    def no_links(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "link", no_links)
    exchange = folder.open()
    exchange.put(GROW, b"trees")
    exchange.put(GROW, b"trees")
    with pytest.raises(SecondCopy):
        exchange.put(GROW, b"TREES")
    assert folder.names() == {str(GROW)}
    assert exchange.get(GROW, limit=10) == b"trees"


def test_a_full_disk_is_worth_another_try_and_leaves_nothing_behind(
    folder: FolderPlace, monkeypatch: pytest.MonkeyPatch
):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TransientExchangeError, match="is full: make room"):
        folder.open().put(GROW, b"trees")
    assert folder.names() == set()


def test_a_file_where_a_folder_should_be_is_said(folder: FolderPlace):
    folder.leave("heart/north", b"?")
    assert folder.open().get(GROW, limit=10) is None
    with pytest.raises(ExchangeDenied, match="does not allow this"):
        folder.open().put(GROW, b"trees")
