"""FHIR REST against a server over real HTTP that plays the traps of real ones."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from spinney.connectors.fhir.http import LONGEST_RETRY_AFTER
from spinney.connectors.fhir.search import queries
from spinney.connectors.fhir.server import connect
from spinney.connectors.sources import TABLE, Pulled, Wanted
from spinney.connectors.sources.fhir_rest import FhirRest, FhirRestSettings
from spinney.errors import SourceFailed
from tests.servers.fhir_traps import FhirTraps, Stumble

LOINC = "http://loinc.org"
OBSERVATIONS = [Wanted("Observation")]


def observation(number: int, code: str = "8302-2", **more: Any) -> dict[str, Any]:
    minute = f"{number // 60:02d}:{number % 60:02d}"
    return {
        "resourceType": "Observation",
        "id": f"o{number}",
        "meta": {"lastUpdated": f"2026-01-01T{minute}:00.000Z"},
        "status": "final",
        "code": {"coding": [{"system": LOINC, "code": code}]},
        "subject": {"reference": f"Patient/p{number % 3}"},
        "effectiveDateTime": f"{2000 + number % 20}-06-01T12:00:00+02:00",
        **more,
    }


def patient(number: int) -> dict[str, Any]:
    return {"resourceType": "Patient", "id": f"p{number}", "birthDate": "1970-01-01"}


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    with FhirTraps([*(patient(n) for n in range(3)), *(observation(n) for n in range(100))]) as traps:
        yield traps


class Puller:
    """Pulls from a server and remembers how long it would have waited."""

    def __init__(self, staging: Path) -> None:
        self.staging = staging
        self.waits: list[float] = []
        self.progress: list[tuple[str, int, int | None]] = []

    def __call__(self, server: FhirTraps, wanted: list[Wanted] = OBSERVATIONS, **settings: Any) -> Pulled:
        chosen = FhirRestSettings(**{"base_url": server.base_url, "page_size": 10, **settings})
        source = FhirRest(chosen, partial(connect, sleep=self.waits.append))
        return source.pull(wanted, self.staging, lambda *seen: self.progress.append(seen))


@pytest.fixture
def pull(tmp_path: Path) -> Puller:
    return Puller(tmp_path)


def ids(pulled: Pulled, kind: str = "Observation") -> list[str]:
    return sorted(json.loads(line)["id"] for path in pulled.files[kind] for line in path.read_text().splitlines())


def test_all_pages_are_read_and_every_resource_stands_once_in_the_file(server: FhirTraps, pull: Puller) -> None:
    pulled = pull(server, [Wanted("Observation"), Wanted("Patient")])
    assert ids(pulled) == sorted(f"o{n}" for n in range(100))
    assert pulled.read == {"Observation": 100, "Patient": 3}
    assert pulled.newest == datetime(2026, 1, 1, 1, 39, tzinfo=UTC)
    assert pulled.notes == ()
    assert pull.progress[0] == ("Observation", 10, 100)
    assert [path.name for path in sorted(pull.staging.iterdir())] == ["Observation.ndjson", "Patient.ndjson"]


def test_what_is_written_is_what_the_server_has(server: FhirTraps, pull: Puller) -> None:
    server.put(observation(7, valueQuantity={"value": 134.8, "unit": "cm"}, note=[{"text": "Größe 🌳"}]))
    lines = pull(server).files["Observation"][0].read_text().splitlines()
    assert {one["id"]: one for one in map(json.loads, lines)} == server.store["Observation"]


def test_a_kind_without_any_resource_gives_an_empty_file(server: FhirTraps, pull: Puller) -> None:
    pulled = pull(server, [Wanted("Procedure")])
    assert pulled.read == {"Procedure": 0}
    assert pulled.files["Procedure"][0].read_bytes() == b""


def test_sorting_by_last_update_gets_past_the_end_of_unsorted_paging(server: FhirTraps, pull: Puller) -> None:
    server.most_unsorted = 50
    assert len(ids(pull(server))) == 100
    assert server.asked("/Observation")[0].query["_sort"] == ["_lastUpdated"]


def test_a_next_link_that_answers_400_fails_the_pull_with_both_numbers(server: FhirTraps, pull: Puller) -> None:
    server.next_fails_at = 70
    with pytest.raises(SourceFailed, match=r"Observation stopped at page 8: .*HTTP 400.*70 of 100 were read"):
        pull(server)


def test_a_next_link_to_another_host_is_refused_before_the_token_goes_there(server: FhirTraps, pull: Puller) -> None:
    with FhirTraps() as elsewhere:
        server.next_host = elsewhere.origin
        with pytest.raises(SourceFailed, match="not below base_url"):
            pull(server)
        assert elsewhere.requests == []


def test_pages_that_go_in_a_circle_are_noticed(server: FhirTraps, pull: Puller) -> None:
    server.next_circles = True
    with pytest.raises(SourceFailed, match="go in a circle; 10 were read"):
        pull(server)


def test_a_total_that_disagrees_fails_the_pull_with_both_numbers(server: FhirTraps, pull: Puller) -> None:
    server.miscounts_by = 7
    with pytest.raises(SourceFailed, match="Observation is incomplete: 100 read, but the server counts 107"):
        pull(server)


@pytest.mark.parametrize("told", [{"tells_totals": False}, {"counts": False}])
def test_either_way_of_counting_is_enough(server: FhirTraps, pull: Puller, told: dict[str, bool]) -> None:
    vars(server).update(told)
    assert pull(server).notes == ()
    server.miscounts_by = 1
    with pytest.raises(SourceFailed, match="100 read, but the server counts 101"):
        pull(server)


def test_a_server_that_never_counts_is_named_in_the_report(server: FhirTraps, pull: Puller) -> None:
    server.tells_totals = server.counts = False
    pulled = pull(server)
    assert pulled.read == {"Observation": 100}
    assert pulled.notes == ("Observation: the server tells no total, so completeness could not be checked",)


def test_included_resources_that_repeat_over_pages_are_kept_once_and_not_counted(
    server: FhirTraps, pull: Puller
) -> None:
    server.includes = True
    pulled = pull(server, [Wanted("Observation"), Wanted("Patient")])
    assert pulled.read == {"Observation": 100, "Patient": 3}
    assert ids(pulled, "Patient") == ["p0", "p1", "p2"]


def test_an_included_resource_of_the_searched_type_is_not_taken_for_a_match(server: FhirTraps, pull: Puller) -> None:
    server.includes = True
    server.put(observation(500, "4548-4", hasMember=[{"reference": "Observation/o1"}]))
    assert ids(pull(server, [Wanted("Observation", (f"{LOINC}|4548-4",))])) == ["o1", "o500"]


def test_included_resources_that_nobody_wants_are_not_written(server: FhirTraps, pull: Puller) -> None:
    server.includes = True
    assert set(pull(server).files) == {"Observation"}


def test_what_arrives_while_reading_is_read_too(server: FhirTraps, pull: Puller) -> None:
    server.late = [observation(200 + n) for n in range(11)]  # the last one after the last page
    pulled = pull(server)
    assert pulled.read == {"Observation": 111}
    assert pulled.notes == ()
    again = [one.query for one in server.asked("/Observation") if not {"_summary", "_offset"} & set(one.query)]
    assert [query.get("_lastUpdated") for query in again] == [None, ["ge2026-01-01T03:29:00.000Z"]]


def test_a_row_skipped_because_another_moved_is_found_by_reading_again(server: FhirTraps, pull: Puller) -> None:
    server.pages_by_offset, server.updates = True, ["o3"]
    pulled = pull(server)
    assert ids(pulled) == sorted(f"o{n}" for n in range(100))
    assert pulled.notes == ()


def test_of_two_versions_the_newest_stays(server: FhirTraps, pull: Puller) -> None:
    server.updates = ["o3"]
    pulled = pull(server)
    lines = [json.loads(line) for line in pulled.files["Observation"][0].read_text().splitlines()]
    assert [one["meta"]["lastUpdated"] for one in lines if one["id"] == "o3"] == ["2026-06-01T00:00:00Z"]
    assert len(lines) == 100


def test_a_count_that_keeps_moving_is_told_and_does_not_kill_the_night(server: FhirTraps, pull: Puller) -> None:
    server.tells_totals = False
    busy = (observation(300 + n) for n in range(1000))

    def another(*_: object) -> None:
        server.put({**next(busy), "meta": {"lastUpdated": "2020-01-01T00:00:00Z"}})

    settings = FhirRestSettings(base_url=server.base_url, page_size=200)
    pulled = FhirRest(settings).pull(OBSERVATIONS, pull.staging, another)
    assert pulled.notes[0].startswith("Observation: changed while it was read (")


def test_codes_and_dates_are_pushed_to_the_server(server: FhirTraps, pull: Puller) -> None:
    server.put(observation(500, "4548-4", effectiveDateTime="2010-01-01T00:00:00Z"))
    server.put(observation(501, "4548-4", effectiveDateTime="1999-01-01T00:00:00Z"))
    since, until = datetime(2005, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    assert ids(pull(server, [Wanted("Observation", (f"{LOINC}|4548-4",), since, until)])) == ["o500"]
    asked = server.asked("/Observation")[0].query
    assert asked["combo-code"] == [f"{LOINC}|4548-4"]
    assert asked["date"] == ["ge2005-01-01T00:00:00.000Z", "le2020-01-01T00:00:00.000Z"]


def test_the_code_of_a_panels_part_is_found(server: FhirTraps, pull: Puller) -> None:
    part = {"code": {"coding": [{"system": LOINC, "code": "8480-6"}]}, "valueQuantity": {"value": 120}}
    server.put(observation(500, "85354-9", component=[part]))
    assert ids(pull(server, [Wanted("Observation", (f"{LOINC}|8480-6",))])) == ["o500"]


def test_a_filter_that_the_server_does_not_declare_is_not_sent_and_the_report_says_so(
    server: FhirTraps, pull: Puller
) -> None:
    server.parameters = ("code",)
    wanted = Wanted("Observation", (f"{LOINC}|8302-2",), datetime(2005, 1, 1, tzinfo=UTC))
    pulled = pull(server, [wanted])
    assert pulled.read == {"Observation": 100}
    assert set(server.asked("/Observation")[0].query) == {"_sort", "_count", "_total"}
    assert pulled.notes == (
        "Observation: the server offers no search by combo-code, so all were read",
        "Observation: the server offers no search by date, so all were read",
    )


def test_many_codes_are_asked_for_in_several_short_addresses(server: FhirTraps, pull: Puller) -> None:
    many = [f"{n}-{n % 10}" for n in range(1000, 1400)]
    for number, code in enumerate(many):
        server.put(observation(1000 + number, code, meta={"lastUpdated": "2026-02-01T00:00:00Z"}))
    wanted = Wanted("Observation", tuple(f"{LOINC}|{code}" for code in many), datetime(1990, 1, 1, tzinfo=UTC))
    assert pull(server, [wanted], page_size=500).read == {"Observation": 400}
    asked = server.asked("/Observation")
    assert len(asked) > 4
    assert max(one.length for one in asked) < 1800


def test_a_resource_that_two_searches_find_is_kept_once(server: FhirTraps, pull: Puller) -> None:
    both = [{"system": LOINC, "code": "1"}, {"system": LOINC, "code": "2"}]
    server.put({**observation(500), "code": {"coding": both}})
    wanted = [Wanted("Observation", (f"{LOINC}|1",)), Wanted("Observation", (f"{LOINC}|2",))]
    assert pull(server, wanted).read == {"Observation": 1}


def test_commas_in_codes_are_escaped_and_the_right_parameter_is_chosen_per_type() -> None:
    (query,) = queries(Wanted("Immunization", ("urn:x|a,b",)), None)
    assert query.address() == "Immunization?vaccine-code=urn%3Ax%7Ca%5C%2Cb"
    (query,) = queries(Wanted("MedicationRequest", (), datetime(2020, 1, 1, tzinfo=UTC)), None)
    assert query.address() == "MedicationRequest?authoredon=ge2020-01-01T00%3A00%3A00.000Z"


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


def test_something_that_is_not_a_fhir_server_is_named(server: FhirTraps, pull: Puller) -> None:
    server.plays = b"<html>Please log in</html>"
    with pytest.raises(SourceFailed, match="metadata: not JSON; is base_url a FHIR server's address"):
        pull(server)
    server.plays = b'{"status": "up"}'
    with pytest.raises(SourceFailed, match="not a FHIR server at this path"):
        pull(server)
    server.plays = b'{"resourceType": "CapabilityStatement", "fhirVersion": "3.0.2"}'
    with pytest.raises(SourceFailed, match=r"speaks FHIR 3\.0\.2, but R4 is needed"):
        pull(server)


def test_a_study_that_wants_a_finished_table_is_told_so(server: FhirTraps, pull: Puller) -> None:
    with pytest.raises(SourceFailed, match="needs a finished table"):
        pull(server, [Wanted(TABLE)])


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


@pytest.mark.parametrize("address", ["fhir.example.org", "ftp://host/fhir", "https://u:p@host/fhir", "https://h/?a=1"])
def test_an_address_that_cannot_be_right_is_refused_in_the_settings(address: str) -> None:
    with pytest.raises(ValueError, match="base_url must"):
        FhirRestSettings(base_url=address)
