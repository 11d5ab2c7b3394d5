"""What a study wants, as searches: filters that the server offers, in addresses that stay short."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from spinney.connectors.fhir.search import offered, queries
from spinney.connectors.sources import Pulled, Wanted
from tests.connectors.fhir.rest import LOINC, Puller, observation
from tests.servers.fhir_traps import FhirTraps


def ids(pulled: Pulled, kind: str = "Observation") -> list[str]:
    return sorted(json.loads(line)["id"] for path in pulled.files[kind] for line in path.read_text().splitlines())


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


def test_commas_in_codes_are_escaped_and_the_right_parameter_is_chosen_per_type() -> None:
    (query,) = queries(Wanted("Immunization", ("urn:x|a,b",)), None)
    assert query.address() == "Immunization?vaccine-code=urn%3Ax%7Ca%5C%2Cb"
    (query,) = queries(Wanted("MedicationRequest", (), datetime(2020, 1, 1, tzinfo=UTC)), None)
    assert query.address() == "MedicationRequest?authoredon=ge2020-01-01T00%3A00%3A00.000Z"


def test_drugs_are_not_searched_by_code_because_a_medication_may_say_which_they_are() -> None:
    (query,) = queries(Wanted("MedicationRequest", ("rx|1",)), None)
    assert query.address() == "MedicationRequest?"


def test_what_only_helps_is_not_asked_of_a_server_that_has_none() -> None:
    wanted = [Wanted("Patient"), Wanted("Medication", helps=True)]
    assert offered(wanted, {"Patient": frozenset()}) == wanted[:1]
    assert offered(wanted, {"Patient": frozenset(), "Medication": frozenset()}) == wanted
