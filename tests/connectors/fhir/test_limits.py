"""A server that would cost a pull without end, or send it elsewhere, is left; the limit that ended it is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from spinney.connectors.fhir.limits import Limits, Spent, is_host, refuse_stranger
from spinney.connectors.fhir.server import FhirServer
from spinney.errors import SourceFailed
from tests.connectors.fhir import bulk, rest
from tests.servers.fhir_traps import FhirTraps

AS_PEM = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    with bulk.bulk_server() as traps:
        yield traps


@pytest.fixture
def export(tmp_path: Path) -> bulk.Puller:
    return bulk.Puller(tmp_path)


@pytest.fixture
def search(tmp_path: Path) -> rest.Puller:
    (tmp_path / "searched").mkdir()
    return rest.Puller(tmp_path / "searched")


def test_files_of_an_export_are_fetched_from_the_server_s_own_host_only(server: FhirTraps, export: bulk.Puller) -> None:
    with FhirTraps() as elsewhere:
        server.files_host = elsewhere.origin
        with pytest.raises(SourceFailed, match=r"127\.0\.0\.1.*list it under allowed_hosts"):
            export(server)
        assert elsewhere.requests == []


def test_files_on_a_host_that_the_owner_has_listed_are_fetched(server: FhirTraps, export: bulk.Puller) -> None:
    with FhirTraps() as elsewhere:
        elsewhere.exports, elsewhere.lines_per_file = server.exports, server.lines_per_file
        server.files_host = elsewhere.origin
        pulled = export(server, allowed_hosts=[elsewhere.origin.removeprefix("http://")])
        assert pulled.read["Observation"] == 250
        assert elsewhere.requests


def test_a_token_endpoint_elsewhere_is_not_told_who_we_are(
    server: FhirTraps, export: bulk.Puller, tmp_path: Path
) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(generate_private_key(65537, 2048).private_bytes(*AS_PEM))
    with FhirTraps() as elsewhere:
        server.token_host = elsewhere.origin
        with pytest.raises(SourceFailed, match="list it under allowed_hosts"):
            export(server, auth={"kind": "smart-backend", "client_id": "wood", "key_file": str(key)})
        assert elsewhere.requests == []


def test_a_search_whose_pages_stay_empty_ends(server: FhirTraps, search: rest.Puller) -> None:
    server.never_ends = True
    with pytest.raises(SourceFailed, match=r"limits\.empty_pages allows \(5\)"):
        search(server, limits={"empty_pages": 5})
    assert len(server.asked("/Observation")) == 6


def test_a_manifest_without_end_ends(server: FhirTraps, export: bulk.Puller) -> None:
    server.never_ends = True
    with pytest.raises(SourceFailed, match=r"limits\.empty_pages allows \(7\)"):
        export(server, limits={"empty_pages": 7})


def test_pages_are_counted_over_all_searches(server: FhirTraps, search: rest.Puller) -> None:
    with pytest.raises(SourceFailed, match=r"limits\.pages allows \(2\)"):
        search(server, page_size=50, limits={"pages": 2})


def test_an_export_of_too_many_files_is_not_begun(server: FhirTraps, export: bulk.Puller) -> None:
    with pytest.raises(SourceFailed, match=r"more files \(4\) than limits\.files allows \(3\)"):
        export(server, limits={"files": 3})
    assert not server.asked("/Observation/0")


def test_bytes_are_counted_as_they_come_and_as_they_are_unpacked(server: FhirTraps, export: bulk.Puller) -> None:
    with pytest.raises(SourceFailed, match=r"limits\.wire_gib allows"):
        export(server, limits={"wire_gib": 1e-5})
    server.packing = "gzip"
    with pytest.raises(SourceFailed, match=r"limits\.unpacked_gib allows"):
        export(server, limits={"unpacked_gib": 1e-5})


def test_an_answer_that_swells_a_thousandfold_fills_no_disk(
    server: FhirTraps, export: bulk.Puller, tmp_path: Path
) -> None:
    server.packing, server.swells = "gzip", True
    with pytest.raises(SourceFailed, match="unpacks to more than 200 times its size"):
        export(server)
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 8 << 20


def test_what_is_packed_honestly_is_read(server: FhirTraps, export: bulk.Puller) -> None:
    server.packing = "gzip"
    assert export(server).read["Observation"] == 250


def test_a_packing_that_nobody_asked_for_is_refused(server: FhirTraps, export: bulk.Puller) -> None:
    server.packing = "br"
    with pytest.raises(SourceFailed, match="only gzip and deflate are read"):
        export(server)


def test_pages_that_bring_something_start_the_count_of_empty_ones_anew() -> None:
    spent = Spent(Limits(empty_pages=2))
    for fresh in (False, False, True, False, False):
        spent.page("a search", fresh=fresh)
    with pytest.raises(SourceFailed):
        spent.page("a search", fresh=False)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "https://fhir.example.org:8443/files",
        "https://fhir.example.org.evil.example/files",
        "https://fhir.example.org@evil.example/files",
        "file:///etc/passwd",
        "//files.example.org",
        "https://fhir.example.org:no/files",
        "",
    ],
)
def test_what_only_looks_like_an_allowed_host_is_a_stranger(url: str) -> None:
    with pytest.raises(SourceFailed, match="allowed_hosts"):
        refuse_stranger(url, "https://fhir.example.org/r4", ["files.example.org"], "a file")


@pytest.mark.parametrize(
    "url", ["https://fhir.example.org/x", "https://FHIR.example.org:443/x", "https://files.example.org/x?y"]
)
def test_the_own_host_and_a_listed_one_are_none(url: str) -> None:
    refuse_stranger(url, "https://fhir.example.org/r4", ["files.example.org"], "a file")


@pytest.mark.parametrize("entry", ["https://files.example.org", "files.example.org/path", "user@files", ""])
def test_an_entry_that_is_no_host_is_refused_in_the_settings(entry: str) -> None:
    assert not is_host(entry)
    with pytest.raises(ValueError, match="is no host"):
        FhirServer(base_url="https://fhir.example.org/r4", allowed_hosts=(entry,))
