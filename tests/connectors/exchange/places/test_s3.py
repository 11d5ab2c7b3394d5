"""A bucket as the exchange, on a real S3 store, and stores that only look like one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spinney.connectors.exchange import Exchange, ExchangeDenied, TransientExchangeError, Unreadable
from spinney.testing.exchange import GROW, at
from tests.servers.exchange_places import S3Place
from tests.servers.relay import Relay


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
