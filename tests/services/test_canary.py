"""Marked patients in nights that go wrong in every way: one is found only in the vault, and one who objects nowhere."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from spinney.cohort.patients import Patients
from spinney.demo.federation import Village, found_village
from spinney.demo.history import make_history
from spinney.demo.hospitals import make_hospitals
from spinney.demo.site import site_settings, world_study, write_data
from spinney.house import envelopes as security
from spinney.house import rounds
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study
from tests.chaos.forked import end_of, start_house
from tests.chaos.house import KILL_AT
from tests.nights import others, served
from tests.servers.migrated import registry_in
from tests.servers.prefect_server import PrefectServer
from tests.services.traces import Marks, rows_of

pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning"),
]

LONGEST = 300.0
VALUE = 187.31337
WORDS = {
    "id": "canary-7f3e91",
    "family name": "Quibblewick",
    "given name": "Zephyranthe",
    "record number": "MRN-88422199",
    "note": "xylophonic relapse",
    "unit": "dollops of Quibblewick",
    "code": "local-Zephyranthe",
}
MARKS = Marks(WORDS, VALUE)
NO = {"id": "canary-5b2d08", "family name": "Oddleigh"}
OBJECTING = Marks(NO, 73.27181)


@dataclass
class Nights:
    """What was provoked, what came of it, and everything that was written meanwhile."""

    village: Village
    sources: Path
    server: PrefectServer
    temporary: Path
    shown: dict[str, str] = field(default_factory=dict)
    said: list[bytes] = field(default_factory=list)

    @property
    def site(self) -> str:
        return self.village.sites[0]

    @property
    def vault(self) -> Path:
        return self.village.home(self.site) / "vault"


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory, prefect_server: PrefectServer) -> Iterator[Nights]:
    """Three nights without a round, one whose round is disturbed twice, and one without trouble."""
    folder = tmp_path_factory.mktemp("canary")
    store_the_worst()
    with pytest.MonkeyPatch.context() as patch:
        (folder / "temporary").mkdir()
        patch.setattr(tempfile, "tempdir", str(folder / "temporary"))
        patch.setenv("TMPDIR", str(folder / "temporary"))
        nights = Nights(made_village(folder), folder / "sources", prefect_server, folder / "temporary")
        for name, trouble in {"source": broken_source, "quality": broken_rule, "encoding": failing_encoder}.items():
            with pytest.MonkeyPatch.context() as meanwhile:
                nights.shown[name] = trouble(nights, meanwhile)
        troubled_round(nights)
        with pytest.MonkeyPatch.context() as meanwhile:
            undisturbed(nights, meanwhile)
        yield nights


def store_the_worst() -> None:
    """Let errors be pickled with all that they came from, as Dask does for errors that it knows when it is imported."""
    import distributed.utils

    import spinney.flows.site_round  # noqa: F401 (has ours)

    distributed.utils.tblib.pickling_support.install()  # once more, in case it was imported before ours


def made_village(folder: Path) -> Village:
    """Three hospitals that deliver FHIR; the first has the marked patient."""
    settings: dict[str, Mapping[str, Any]] = {}
    for hospital in make_hospitals(3, 900, 5):
        history = make_history(hospital, 5)
        place = folder / "sources" / hospital.name
        write_data(history, "fhir", place)
        source = {"kind": "files", "path": str(place / "fhir")}
        settings[hospital.name] = site_settings(history, source, home="home")
        listed = {"opt_out": [{"kind": "file", "path": str(place / "opt-out.txt"), "may_be_empty": True}]}
        empty = ["never", *hospital.without]
        settings[hospital.name] = {**settings[hospital.name], **listed, "accepted": {"empty": empty}}
        (place / "opt-out.txt").write_text(f"{NO['id']}\n")
    village = found_village(folder / "village", study(), settings)
    mark(folder / "sources" / village.sites[0] / "fhir")
    mark_who_objects(folder / "sources" / village.sites[0] / "fhir")
    for name in village.sites:
        registry_in(village.home(name))
    return village


def study() -> Study:
    words = world_study().model_dump(mode="json", by_alias=True)
    words |= {"forest": words["forest"] | {"trees": 6}, "choice": words["choice"] | {"bootstrap": 100}}
    words["schedule"] |= {"answer_minutes": 4, "opening_minutes": 4}
    words["privacy"] |= {"epoch_nights": 1}  # every round tells all that it ever tells
    near = {"kind": "Observation", "codes": ["http://loinc.org|local-Zephyr"], "statistic": "last"}
    words["features"].append({"name": "never", "kind": "continuous", "range": [0, 1], "source": near})
    return Study.model_validate(words)


def mark(folder: Path) -> None:
    """Give the patient with the most observations a name, a number, a note, and values that nobody else has."""
    observations = _read(folder / "Observation.ndjson")
    (chosen,) = pd.Series([_subject(one) for one in observations]).mode()[:1]
    for path in sorted(folder.glob("*.ndjson")):
        text = path.read_text().replace(f'Patient/{chosen}"', f'Patient/{WORDS["id"]}"')
        path.write_text(text.replace(f'"id":"{chosen}"', f'"id":"{WORDS["id"]}"'))
    patients, observations = _read(folder / "Patient.ndjson"), _read(folder / "Observation.ndjson")
    for one in patients:
        if one["id"] == WORDS["id"]:
            one["name"] = [{"family": WORDS["family name"], "given": [WORDS["given name"]]}]
            one["identifier"] = [{"system": "urn:mrn", "value": WORDS["record number"]}]
    own = [one for one in observations if _subject(one) == WORDS["id"]]
    for one in own:
        one["note"] = [{"text": WORDS["note"]}]
        for part in one.get("component", [])[:1]:
            part["valueQuantity"]["value"] = VALUE
    strange = next(one for one in own if "valueQuantity" in one)
    strange["valueQuantity"] = {"value": VALUE, "unit": WORDS["unit"]}
    odd = {**strange, "id": "odd", "code": {"coding": [{"system": "http://loinc.org", "code": WORDS["code"]}]}}
    _write(folder / "Patient.ndjson", patients)
    _write(folder / "Observation.ndjson", [*observations, odd])


def mark_who_objects(folder: Path) -> None:
    """A second patient with many observations, who is on the house's list."""
    observations = _read(folder / "Observation.ndjson")
    others = [_subject(one) for one in observations if _subject(one) != WORDS["id"]]
    (chosen,) = pd.Series(others).mode()[:1]
    for path in sorted(folder.glob("*.ndjson")):
        text = path.read_text().replace(f'Patient/{chosen}"', f'Patient/{NO["id"]}"')
        path.write_text(
            text.replace(f'"id":"{chosen}"', f'"id":"{NO["id"]}"').replace(f'"id": "{chosen}"', f'"id": "{NO["id"]}"')
        )
    patients, observations = _read(folder / "Patient.ndjson"), _read(folder / "Observation.ndjson")
    for one in patients:
        if one["id"] == NO["id"]:
            one["name"] = [{"family": NO["family name"]}]
    for one in observations:
        if _subject(one) == NO["id"] and "valueQuantity" in one:
            one["valueQuantity"]["value"] = 73.27181
    _write(folder / "Patient.ndjson", patients)
    _write(folder / "Observation.ndjson", observations)


def flow(nights: Nights, number: int | None = None) -> str:
    """The site's night as a flow: how the server shows its end. With a number, no opening is waited for to say no."""
    from prefect.client.orchestration import get_client

    from spinney.flows.site_round import SiteRoundInput, site_round

    with served(nights.village):
        ended: Any = site_round(SiteRoundInput(site=nights.site, number=number), return_state=True)
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(ended.state_details.flow_run_id).state
    assert state is not None
    return f"{state.name}: {state.message}"


def broken_source(nights: Nights, patch: pytest.MonkeyPatch) -> str:  # noqa: ARG001
    """Half a packed file, and a line that ends in the middle of the patient."""
    folder = nights.sources / nights.site / "fhir"
    line = json.dumps({"resourceType": "Observation", "id": WORDS["id"], "note": WORDS["note"]}).encode()
    half = folder / "Observation.more.ndjson.gz"
    half.write_bytes(gzip.compress(line * 100)[:40])
    shown = flow(nights, 1)
    half.write_bytes(gzip.compress(line[:-20]))
    return shown


def broken_rule(nights: Nights, patch: pytest.MonkeyPatch) -> str:  # noqa: ARG001
    """The marked patient's upper pressure is below the lower one: a critical rule."""
    path = nights.sources / nights.site / "fhir" / "Observation.ndjson"
    before = path.read_bytes()
    rows = _read(path)
    for one in rows:
        if _subject(one) == WORDS["id"] and "component" in one:
            one["component"][0]["valueQuantity"]["value"] = 61.31337
    _write(path, rows)
    shown = flow(nights, 1)
    path.write_bytes(before)
    return shown


def failing_encoder(nights: Nights, patch: pytest.MonkeyPatch) -> str:
    """A library that quotes the cell which it can't read, and the error before it, too."""
    import spinney.tasks.cohort

    def encode(*_: Any) -> Any:
        try:
            float(WORDS["family name"])
        except ValueError as first:
            raise TypeError(f"no encoding for {WORDS['record number']} = {VALUE}") from first

    patch.setattr(spinney.tasks.cohort, "write_encoded", encode)
    return flow(nights, 1)


def troubled_round(nights: Nights) -> None:
    """Round 1: errors that quote between two steps and within one, then a kill with sealed bytes in the outbox."""
    reply, read = rounds.SiteSession._reply, Patients.rows

    def unreadable(patients: Patients, cohort: CohortRef) -> Any:
        if cohort.path.is_relative_to(nights.vault):
            raise ValueError(f"could not convert {WORDS['family name']} to {VALUE}")
        return read(patients, cohort)

    def quoting(part: rounds.SiteSession, ask: rounds.Ask, *rest: Any) -> None:
        if part.channel.me == nights.site and ask.step == "grow":
            raise KeyError(f"{WORDS['family name']}, {WORDS['given name']}: {VALUE}")
        reply(part, ask, *rest)

    with others(nights.village, nights.site) as running:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Patients, "rows", unreadable)
            nights.shown["flow"] = flow(nights)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rounds.SiteSession, "_reply", quoting)
            nights.shown["step"] = flow(nights)
        assert end_of(start_house(nights.village, nights.site, {KILL_AT: "before publish score"}), LONGEST) == -9
        assert end_of(start_house(nights.village, nights.site, {}), LONGEST) == 0
        for one in running.values():
            one.result(LONGEST)


def undisturbed(nights: Nights, patch: pytest.MonkeyPatch) -> None:
    """Round 2 in this process, where what is about to be sealed can be seen."""
    seal = security.seal

    def overheard(content: bytes, message: Any, signer: Any, recipients: Any = None) -> bytes:
        if message.sender == nights.site:
            nights.said.append(content)
        return seal(content, message, signer, recipients)

    patch.setattr(security, "seal", overheard)
    with others(nights.village, nights.site) as running:
        nights.shown["undisturbed"] = flow(nights)
        for one in running.values():
            one.result(LONGEST)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _write(path: Path, resources: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in resources))


def _subject(one: Mapping[str, Any]) -> str:
    return str(one["subject"]["reference"]).removeprefix("Patient/")


def test_every_trouble_came_and_was_told_without_a_value(nights: Nights) -> None:
    assert nights.shown.pop("undisturbed").startswith("Completed")
    assert all(shown.startswith("Failed") for shown in nights.shown.values()), nights.shown
    assert "can't be read" in nights.shown["source"]
    assert "diastolic below systolic" in nights.shown["quality"]
    assert "TypeError at" in nights.shown["encoding"]
    assert "KeyError at" in nights.shown["step"]
    assert "ValueError at" in nights.shown["flow"]
    assert not MARKS.found_in("\n".join(nights.shown.values()).encode())


def test_the_search_finds_the_patient_where_the_patient_is(nights: Nights) -> None:
    source = MARKS.found_below([nights.sources])
    assert {name for names in source.values() for name in names} == {*WORDS, "number"}
    assert any("number" in names for names in MARKS.found_below([nights.vault / "cohorts"]).values())
    versions = registry_in(nights.village.home(nights.site)).versions("heart-failure")
    assert {version.round for version in versions} == {1, 2}


def test_there_is_something_to_search_in_every_place(nights: Nights) -> None:
    _flush()
    home, folder = nights.village.home(nights.site), nights.village.folder
    for place in ("data-docs/*.html", "reports/*/*.html", "registry/**/MLmodel", "audit.jsonl"):
        assert [*home.glob(place)], place
    assert [*(folder / "exchange").glob(f"*/{nights.site}/2/*")]
    with closing(sqlite3.connect(nights.server.home / "prefect.db")) as database:
        for table in ("flow_run", "flow_run_state", "task_run", "task_run_state", "log", "artifact", "events"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 5, table


def test_prefect_knows_nothing_of_the_patient(nights: Nights) -> None:
    _flush()
    assert b"notes are about codes and units of the source" in rows_of(nights.server.home / "prefect.db")
    assert MARKS.found_below([nights.server.home]) == {}


def test_only_the_vault_knows_of_the_patient(nights: Nights) -> None:
    assert MARKS.found_below([nights.village.folder, nights.temporary], without=[nights.vault]) == {}


def test_no_message_tells_of_the_patient(nights: Nights) -> None:
    assert len(nights.said) > 5
    assert [MARKS.found_in(content) for content in nights.said] == [[]] * len(nights.said)


def test_who_objects_is_found_nowhere_not_even_in_the_vault(nights: Nights) -> None:
    _flush()
    source = OBJECTING.found_below([nights.sources])
    assert {name for names in source.values() for name in names} == {*NO, "number"}
    everywhere = [nights.village.folder, nights.temporary, nights.server.home]
    assert OBJECTING.found_below(everywhere) == {}
    assert [OBJECTING.found_in(content) for content in nights.said] == [[]] * len(nights.said)
    last = [
        line for line in (nights.village.home(nights.site) / "audit.jsonl").read_text().splitlines() if "object" in line
    ]
    assert "1 identifiers object" in last[-1]


def test_the_vault_keeps_no_name_of_the_patient(nights: Nights) -> None:
    kept = MARKS.found_below([nights.vault / "cohorts", nights.vault / "unripe"])
    assert {name for names in kept.values() for name in names} <= {"number"}


def _flush() -> None:
    from prefect.logging.handlers import APILogHandler

    APILogHandler().flush()
