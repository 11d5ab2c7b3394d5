"""The exchange over a folder and over a real S3 store, and what is special to each."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import stat
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from spinney.connectors.exchange import (
    Address,
    BadAddress,
    Exchange,
    ExchangeDenied,
    SecondCopy,
    TransientExchangeError,
    Unreadable,
)
from spinney.connectors.exchange.places.folder import Folder
from tests.servers.exchange_contract import GROW, START, ExchangeContract, FakeClock, at, kill_in_the_middle, writer
from tests.servers.relay import Relay
from tests.servers.seaweed import BUCKET, READER_KEY, READER_SECRET, SECRET, Seaweed

NOBODY = 65534
_fresh = count()


class FolderPlace:
    longest_nap = 0.15
    keeps_drafts = True
    secrets = ()

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "exchange"
        self.root.mkdir()

    def open(self) -> Exchange:
        return Exchange.open(str(self.root))

    def open_nowhere(self) -> Exchange:
        return Exchange.open(self.root.with_name("nowhere").as_uri())

    @contextmanager
    def without_rights(self) -> Iterator[Exchange]:
        self.root.chmod(0o555)
        user = os.geteuid()
        if user == 0:  # root may write everywhere
            os.seteuid(NOBODY)
        try:
            yield self.open()
        finally:
            os.seteuid(user)
            self.root.chmod(0o755)

    def leave(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def leave_huge(self, path: str) -> None:
        self.leave(path, b"")
        os.truncate(self.root / path, 2**40)  # holds nothing; reading it all would fill the memory

    def carried(self) -> int:
        return 0

    def names(self) -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()}

    def kill_writer(self, address: Address, size: int) -> None:
        assert writer(str(self.root), {}, address, size, most=size // 2).wait() == -signal.SIGXFSZ

    def pull_plug(self) -> None:
        self.root.rename(self.root.with_name("away"))

    def mend(self) -> None:
        self.root.with_name("away").rename(self.root)


class S3Place:
    longest_nap = 5.0
    keeps_drafts = False
    secrets = (SECRET, READER_SECRET)

    def __init__(self, store: Seaweed, relay: Relay) -> None:
        self.store, self.relay = store, relay
        self.root = f"{BUCKET}/test-{next(_fresh)}"
        self.url = f"s3://{self.root}"
        self._fs = store.filesystem()

    def open(self) -> Exchange:
        return Exchange.open(self.url, self.store.options(port=self.relay.port))

    def open_nowhere(self) -> Exchange:
        return Exchange.open("s3://no-such-bucket/here", self.store.options())

    @contextmanager
    def without_rights(self) -> Iterator[Exchange]:
        yield Exchange.open(self.url, self.store.options(READER_KEY, READER_SECRET))

    def leave(self, path: str, data: bytes) -> None:
        self._fs.pipe_file(f"{self.root}/{path}", data)

    def leave_huge(self, path: str) -> None:
        self.leave(path, bytes(5_000_000))

    def leave_locked(self, path: str, data: bytes) -> None:
        key = bytes(range(32))
        lock = {
            "SSECustomerAlgorithm": "AES256",
            "SSECustomerKey": b64encode(key).decode(),
            "SSECustomerKeyMD5": b64encode(hashlib.md5(key, usedforsecurity=False).digest()).decode(),
        }
        self._fs.pipe_file(f"{self.root}/{path}", data, **lock)

    def carried(self) -> int:
        return self.relay.down

    def names(self) -> set[str]:
        return {path.removeprefix(f"{self.root}/") for path in self._fs.find(self.root)}

    def kill_writer(self, address: Address, size: int) -> None:
        process = writer(self.url, self.store.options(port=self.relay.port), address, size)
        kill_in_the_middle(self.relay, process, after=size // 2)

    def pull_plug(self) -> None:
        self.relay.cut()

    def mend(self) -> None:
        self.relay.mend()


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    with Seaweed(tmp_path_factory.mktemp("seaweed")) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> FolderPlace:
    return FolderPlace(tmp_path)


@pytest.fixture
def s3(seaweed: Seaweed) -> Iterator[S3Place]:
    with Relay(seaweed.port) as relay:
        yield S3Place(seaweed, relay)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest) -> FolderPlace | S3Place:
    return request.getfixturevalue(request.param)


class TestExchange(ExchangeContract):
    """Over both."""


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


def test_a_listing_cannot_be_led_out_of_the_exchange(folder: FolderPlace):
    for study, sender in (("..", None), ("heart", "../.."), ("heart", "")):
        with pytest.raises(BadAddress):
            folder.open().list(study, 7, sender)
    with pytest.raises(BadAddress):
        folder.open().expire(START, "heart", "..")


def test_another_kind_of_store_is_refused_by_name():
    with pytest.raises(ExchangeDenied, match="no exchange over ftp://"):
        Exchange.open("ftp://example.org/exchange")


def test_a_password_in_the_address_is_never_shown():
    assert "hunter2" not in repr(Exchange.open("sftp://north:hunter2@example.org/exchange"))


# a folder


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


# S3


def test_a_wrong_secret_is_said_without_showing_it(s3: S3Place):
    exchange = Exchange.open(s3.url, s3.store.options(secret="not-the-secret-4711"))
    with pytest.raises(ExchangeDenied, match=r"SignatureDoesNotMatch.*check the secret") as caught:
        exchange.list("heart", 7)
    assert "4711" not in str(caught.value)
    with pytest.raises(ExchangeDenied, match="check access key, secret"):
        exchange.get(GROW, limit=10)


def test_what_a_writer_has_encrypted_with_a_key_of_its_own_is_a_refusal_of_that_message_only(s3: S3Place):
    exchange = s3.open()
    exchange.put(at("south"), b"trees")
    s3.leave_locked(str(GROW), b"trees")
    with pytest.raises(Unreadable, match=re.escape("heart/north/7/grow.1: this house can't read it")):
        exchange.get(GROW, limit=10)
    assert exchange.get(at("south"), limit=10) == b"trees"


def test_an_access_key_that_nobody_knows_is_said(s3: S3Place):
    with pytest.raises(ExchangeDenied, match="check the access key"):
        Exchange.open(s3.url, s3.store.options(key="nobody")).list("heart", 7)


def test_a_download_that_breaks_off_is_worth_another_try(s3: S3Place):
    s3.leave(str(GROW), bytes(5_000_000))
    with Relay(s3.store.port) as relay:
        exchange = Exchange.open(s3.url, s3.store.options(port=relay.port))
        relay.break_after = 1_000_000
        with pytest.raises(TransientExchangeError):
            exchange.get(GROW, limit=10_000_000)


def test_an_upload_that_stalls_is_given_up(s3: S3Place):
    limits = {"connect_timeout": 1, "read_timeout": 1}
    exchange = Exchange.open(s3.url, {**s3.store.options(port=s3.relay.port), "config_kwargs": limits})
    s3.relay.stop_after = 20_000
    with pytest.raises(TransientExchangeError, match="does not answer"):
        exchange.put(GROW, bytes(100_000))


class Answers(BaseHTTPRequestHandler):
    """A store that says 404 to looks and `put_status` to uploads, whatever their conditions."""

    protocol_version = "HTTP/1.1"
    put_status = 200

    def do_HEAD(self) -> None:
        self._answer(404)

    def do_GET(self) -> None:
        self._answer(200, b"<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(self.put_status)

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def odd_store(put_status: int) -> Iterator[Exchange]:
    handler = type("Handler", (Answers,), {"put_status": put_status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        options = {"key": "k", "secret": "s", "endpoint_url": f"http://127.0.0.1:{server.server_port}"}
        try:
            yield Exchange.open("s3://bucket", options)
        finally:
            server.shutdown()
            thread.join()


def test_a_store_that_ignores_conditional_writes_is_refused():
    with odd_store(200) as exchange, pytest.raises(ExchangeDenied, match="ignores conditional writes"):
        exchange.put(GROW, b"trees")


@pytest.mark.parametrize("status", [503, 500, 429, 409])
def test_a_busy_store_is_worth_another_try(status: int):
    with odd_store(status) as exchange, pytest.raises(TransientExchangeError, match="is busy"):
        exchange.put(GROW, b"trees")
