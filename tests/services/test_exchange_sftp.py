"""The exchange over SFTP with a real OpenSSH server, and what is special to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spinney.connectors.exchange import Address, Exchange, ExchangeDenied, TransientExchangeError
from spinney.testing.exchange import GROW, ExchangeContract, at, writer
from tests.servers.openssh import OpenSsh
from tests.servers.relay import Relay, kill_in_the_middle

pytestmark = [pytest.mark.service, pytest.mark.timeout(120)]


class SftpPlace:
    longest_nap = 5.0
    keeps_drafts = True
    secrets = ()

    def __init__(self, server: OpenSsh, relay: Relay, tmp_path: Path) -> None:
        self.server, self.relay = server, relay
        self.root = tmp_path / "exchange"
        self.root.mkdir()
        server.know(relay.port)
        self.url = server.url(self.root, relay.port)

    def open(self) -> Exchange:
        return Exchange.open(self.url, self.server.options())

    def open_nowhere(self) -> Exchange:
        return Exchange.open(f"{self.url}/nowhere", self.server.options())

    @contextmanager
    def without_rights(self) -> Iterator[Exchange]:
        with Exchange.open(self.url, self.server.options("reader")) as exchange:
            yield exchange

    def leave(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def leave_huge(self, path: str) -> None:
        self.leave(path, b"")
        os.truncate(self.root / path, 2**40)

    def carried(self) -> int:
        return self.relay.down

    def names(self) -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()}

    def kill_writer(self, address: Address, size: int) -> None:
        process = writer(self.url, self.server.options(), address, size)
        kill_in_the_middle(self.relay, process, after=size // 2)

    def pull_plug(self) -> None:
        self.relay.cut()

    def mend(self) -> None:
        self.relay.mend()


@pytest.fixture(scope="module")
def openssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSsh]:
    with OpenSsh(tmp_path_factory.mktemp("openssh")) as server:
        yield server


@pytest.fixture
def place(openssh: OpenSsh, tmp_path: Path) -> Iterator[SftpPlace]:
    with Relay(openssh.port) as relay:
        yield SftpPlace(openssh, relay, tmp_path)


class TestExchangeOverSftp(ExchangeContract):
    """The same promises."""


def test_a_host_that_is_not_known_is_not_spoken_to(place: SftpPlace, tmp_path: Path):
    (tmp_path / "nobody").touch()
    exchange = Exchange.open(place.url, place.server.options(known_hosts=tmp_path / "nobody"))
    with pytest.raises(ExchangeDenied, match="ask its owner for the fingerprint"):
        exchange.put(GROW, b"trees")


def test_a_host_with_another_key_than_before_is_not_spoken_to(place: SftpPlace, tmp_path: Path):
    other = Path(place.server.options("stranger")["key_filename"]).with_suffix(".pub").read_text()
    (tmp_path / "before").write_text(f"[127.0.0.1]:{place.relay.port} {other}")
    exchange = Exchange.open(place.url, place.server.options(known_hosts=tmp_path / "before"))
    with pytest.raises(ExchangeDenied, match="ask its owner for the fingerprint"):
        exchange.put(GROW, b"trees")


def test_a_key_that_the_server_does_not_know_is_said(place: SftpPlace):
    with pytest.raises(ExchangeDenied, match="refuses this house's login"):
        Exchange.open(place.url, place.server.options("stranger")).put(GROW, b"trees")


def test_a_wrong_password_is_said_without_showing_it(place: SftpPlace):
    options = {**place.server.options("stranger"), "password": "hunter2-4711"}
    with pytest.raises(ExchangeDenied, match="refuses this house's login") as caught:
        Exchange.open(place.url, options).put(GROW, b"trees")
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("option", ["key_filename", "known_hosts"])
def test_a_file_of_keys_that_is_missing_is_said(place: SftpPlace, option: str, tmp_path: Path):
    options = {**place.server.options(), option: str(tmp_path / "missing")}
    with pytest.raises(ExchangeDenied, match=r"known_hosts file for sftp://.* cannot be read"):
        Exchange.open(place.url, options).put(GROW, b"trees")


def test_an_upload_that_stalls_is_given_up(place: SftpPlace):
    with Exchange.open(place.url, {**place.server.options(), "timeout": 2}) as exchange:
        exchange.get(GROW, limit=10)
        place.relay.stop_after = 20_000
        with pytest.raises(TransientExchangeError, match="does not answer"):
            exchange.put(GROW, bytes(8_000_000))


def test_a_pipe_or_a_link_on_the_server_is_no_message(place: SftpPlace, tmp_path: Path):
    (tmp_path / "secret").write_bytes(b"elsewhere")
    (place.root / "heart/north/7").mkdir(parents=True)
    os.mkfifo(place.root / str(at("north", "pipe")))
    os.symlink(tmp_path / "secret", place.root / str(at("north", "link")))
    with place.open() as exchange:
        assert exchange.list("heart", 7) == ()
        assert [exchange.get(at("north", step), limit=100) for step in ("pipe", "link")] == [None, None]


def test_a_message_of_many_packets_arrives_whole(place: SftpPlace):
    content = os.urandom(10_000_000)
    with place.open() as exchange:
        exchange.put(GROW, content)
        assert exchange.get(GROW, limit=len(content)) == content
