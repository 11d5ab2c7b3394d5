"""HTTP to a FHIR server: patient with one that stumbles, strict with everything else, and silent in the log."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from spinney.connectors.fhir.http import LONGEST_RETRY_AFTER, Http
from spinney.connectors.sources import Wanted
from spinney.errors import SourceFailed
from tests.connectors.fhir.rest import Puller, patient
from tests.servers.fhir_traps import FhirTraps, Stumble


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_that_stumbles_is_asked_again(server: FhirTraps, pull: Puller, status: int) -> None:
    server.stumbles = [Stumble("/Observation", status, times=3, skip=4)]
    assert pull(server).read == {"Observation": 100}
    assert len(pull.waits) == 3
    assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(pull.waits))


def test_retry_after_is_honoured_in_seconds_and_as_a_date_but_not_without_limit(
    server: FhirTraps, pull: Puller
) -> None:
    server.stumbles = [
        Stumble("/Observation", 429, "17"),
        Stumble("/Observation", 503, "Fri, 01 Jan 2100 00:00:00 GMT"),
        Stumble("/Observation", 503, "Thu, 01 Jan 1970 00:00:00 GMT"),
    ]
    pull(server)
    assert pull.waits == [17.0, LONGEST_RETRY_AFTER, 0.0]


def test_a_server_that_stays_down_fails_the_pull_after_the_set_attempts(server: FhirTraps, pull: Puller) -> None:
    server.stumbles = [Stumble("/Observation", 503, times=99)]
    with pytest.raises(SourceFailed, match=r"Observation search, page 1: the server fails; .*\(HTTP 503\)"):
        pull(server, attempts=3)
    assert len(pull.waits) == 2


def test_the_deadline_ends_the_waiting(server: FhirTraps, pull: Puller) -> None:
    server.stumbles = [Stumble("/Observation", 503, "200")]
    with pytest.raises(SourceFailed, match="deadline_hours"):
        pull(server, deadline_hours=0.01)
    assert pull.waits == []


@pytest.mark.parametrize(
    ("path", "status", "line"),
    [
        ("/metadata", 401, r"metadata: the credentials are refused; check auth \(kind is none\)"),
        ("/metadata", 403, "may not read this; ask the server's administrator for the right scope"),
        ("/metadata", 404, "nothing is there; check base_url"),
        ("/metadata", 302, "the server has moved; set base_url"),
        ("/Observation", 400, "refuses a search sorted by _lastUpdated with these filters"),
        ("/Observation", 403, "Observation search, page 1: these credentials may not read this"),
    ],
)
def test_a_refusal_is_one_line_that_says_what_to_do(
    server: FhirTraps, pull: Puller, path: str, status: int, line: str
) -> None:
    server.stumbles = [Stumble(path, status, times=99)]
    with pytest.raises(SourceFailed, match=line) as failed:
        pull(server)
    assert "\n" not in str(failed.value)
    assert "?" not in str(failed.value)


def test_a_host_that_cannot_be_reached_is_named(server: FhirTraps, pull: Puller) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(SourceFailed, match=f"127.0.0.1:{port}: cannot be reached; check base_url"):
            pull(server, base_url=f"http://127.0.0.1:{port}/fhir")
    with pytest.raises(SourceFailed, match=r"fhir\.invalid: no such host; check base_url"):
        pull(server, base_url="https://fhir.invalid/r4")


def test_tls_to_a_port_that_has_none_is_named(server: FhirTraps, pull: Puller) -> None:
    with pytest.raises(SourceFailed, match="no TLS connection; check that base_url's scheme"):
        pull(server, base_url=server.base_url.replace("http:", "https:"), attempts=1)


def test_a_certificate_is_trusted_only_if_its_authority_is_named(pull: Puller, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    write_certificate(key, certificate)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with FhirTraps([patient(1)], tls=tls) as server:
        with pytest.raises(SourceFailed, match="TLS certificate is not trusted; set ca_file"):
            pull(server, [Wanted("Patient")])
        assert pull.waits == []
        assert pull(server, [Wanted("Patient")], ca_file=certificate).read == {"Patient": 1}
    with pytest.raises(SourceFailed, match="not a readable PEM file of certificates; check ca_file"):
        pull(server, ca_file=key)


def write_certificate(key_file: Path, certificate_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificate_file.write_bytes(certificate.public_bytes(Encoding.PEM))


def test_no_address_and_no_header_is_logged(server: FhirTraps, pull: Puller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    pull(server)
    assert caplog.records == []


class Dripping(BaseHTTPRequestHandler):
    """Sends a byte at a time, and never comes to an end."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(0.02)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def dripping() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_server_that_drips_holds_no_pull(dripping: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.connectors.fhir.http.RATE_WINDOW", 0.2)
    with Http(attempts=2, sleep=lambda _: None) as http:
        for ask in (
            lambda: http.json(dripping, "metadata"),
            lambda: http.download(dripping, tmp_path / "Patient.ndjson", "Patient", token=False, watch=lambda _: None),
        ):
            with pytest.raises(SourceFailed, match=r"less than 60 KiB came in 0\.2 s") as caught:
                ask()
            assert caught.value.transient
