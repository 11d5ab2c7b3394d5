"""The tutorial's study on 100 Synthea patients: the same table, digest for digest, whichever way the data come."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text

from spinney.cohort.pull_report import PullResult
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings, read_site
from spinney.configuration.study_file import read_study
from spinney.study.definition import EventFeature
from spinney.study.study import Study
from tests.made_up import pull_at
from tests.places import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "synthea"
NOW = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = ("Condition", "Encounter", "MedicationRequest", "Observation", "Procedure")
COLUMNS = ("patient", "kind", "code", "time", "until", "recorded", "value", "text", "unit", "status", "class")

CREATE = (
    'CREATE TABLE events (patient TEXT, kind TEXT, code TEXT, "time" {moment}, "until" {moment}, recorded {moment}, '
    '"value" DOUBLE PRECISION, "text" TEXT, unit TEXT, status TEXT, "class" TEXT)',
    "CREATE TABLE patients (patient TEXT, birth DATE, sex TEXT, died {moment})",
)
QUERY = 'SELECT {columns} FROM events WHERE kind = \'{kind}\' AND "time" >= :since AND "time" <= :until'


@pytest.fixture(scope="module")
def study() -> Study:
    return read_study(EXAMPLE / "study.yaml")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One vault for all, because the digest covers the pseudonyms, which depend on its key."""
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def from_files(study: Study, home: Path, synthea: Path) -> PullResult:
    return pulled(study, home, {"kind": "files", "path": synthea})


def pulled(study: Study, home: Path, source: dict[str, Any]) -> PullResult:
    return pull_at(study, SiteSettings.model_validate({"name": "synthea", "home": home, "source": source}), now=NOW)


def flattened(folder: Path) -> Iterator[dict[str, Any]]:
    """Events as a database would hold them, made without the product's own parser."""
    for kind in KINDS:
        with gzip.open(folder / f"{kind}.ndjson.gz", "rt") as file:
            for line in file:
                yield from events_of(kind, json.loads(line))


def events_of(kind: str, resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    period = resource.get("period") or resource.get("performedPeriod") or {}
    status = resource.get("status") or (resource.get("clinicalStatus") or {}).get("coding", [{}])[0].get("code")
    event = dict.fromkeys(COLUMNS) | {
        "patient": resource["subject"]["reference"].split("/")[1],
        "kind": kind,
        "time": resource.get("effectiveDateTime")
        or resource.get("onsetDateTime")
        or resource.get("authoredOn")
        or period.get("start"),
        "until": resource.get("abatementDateTime") or period.get("end"),
        "recorded": resource.get("issued") or resource.get("recordedDate") or resource.get("authoredOn"),
        "status": status,
        "class": (resource.get("class") or {}).get("code"),
    }
    types = resource.get("type") or [resource.get("code") or resource.get("medicationCodeableConcept")]
    for concept, holder in [(one, resource) for one in types] + [(c["code"], c) for c in resource.get("component", [])]:
        quantity = holder.get("valueQuantity") or {}
        answer = (holder.get("valueCodeableConcept") or {}).get("coding", [None])[0]
        for coding in concept["coding"]:
            yield event | {
                "code": f"{coding['system']}|{coding['code']}",
                "value": quantity.get("value"),
                "unit": quantity.get("code"),
                "text": f"{answer['system']}|{answer['code']}" if answer else holder.get("valueString"),
            }


def people_of(folder: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(folder / "Patient.ndjson.gz", "rt") as file:
        for line in file:
            one = json.loads(line)
            died = one.get("deceasedDateTime")
            yield {"patient": one["id"], "birth": one["birthDate"], "sex": one["gender"], "died": died}


def load(url: str, folder: Path) -> None:
    engine = create_engine(url)
    places = ", ".join(f":{column}" for column in COLUMNS)
    with engine.begin() as connection:
        connection.execute(text(f"INSERT INTO events VALUES ({places})"), in_utc(flattened(folder), url))
        connection.execute(
            text("INSERT INTO patients VALUES (:patient, :birth, :sex, :died)"), in_utc(people_of(folder), url)
        )
    engine.dispose()


def in_utc(rows: Iterator[dict[str, Any]], url: str) -> list[dict[str, Any]]:
    """SQLite compares times as text, so there they are all written alike."""
    if not url.startswith("sqlite"):
        return list(rows)
    moments = ("time", "until", "recorded", "died")
    return [row | {name: plain(row[name]) for name in moments if row.get(name)} for row in rows]


def plain(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")


def sql_source(url: str) -> dict[str, Any]:
    columns = ", ".join(f'"{column}"' for column in COLUMNS if column != "kind")
    events = {kind: QUERY.format(columns=columns, kind=kind) for kind in KINDS}
    return {"kind": "sql", "url": url, "patients": "SELECT * FROM patients", "events": events}


def test_the_study_has_windowed_features_of_every_sort_and_a_label(study: Study) -> None:
    windowed = [f.source for f in study.features if isinstance(f.source, EventFeature) and f.source.window]
    assert len(windowed) >= 15
    assert {source.kind for source in windowed} >= {"Observation", "MedicationRequest", "Procedure", "Encounter"}
    assert len({source.statistic for source in windowed}) >= 12


def test_the_files_give_a_table_with_both_classes_and_open_rows(from_files: PullResult) -> None:
    report = from_files.report
    assert report.read["Observation"] == 16_315
    assert not report.quarantined
    assert (report.rows, report.positive, report.unripe) == (1363, 365, 219)
    assert report.index_events == report.rows + report.unripe + report.left_out.total()


def test_plain_loops_over_the_events_find_the_same_values_and_labels(
    from_files: PullResult, home: Path, synthea: Path
) -> None:
    vault = Vault(home)
    rows = vault.read(from_files.cohort).to_pylist()
    events = [
        event | {name: moment(event[name]) for name in ("time", "until", "recorded")} for event in flattened(synthea)
    ]
    people = sorted({event["patient"] for event in events})
    hidden = dict(zip(vault.pseudonyms(pa.array(people)).to_pylist(), people, strict=True))
    by_patient: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        by_patient.setdefault(event["patient"], []).append(event)
    for row in rows:
        at, mine = row["index_time"].replace(tzinfo=UTC), by_patient[hidden[row["patient"]]]
        year = [e for e in mine if e["kind"] == "Encounter" and at - timedelta(365) <= e["time"] <= at]
        assert row["visits"] == len(year)
        assert row["systolic"] == known(mine, "8480-6", at, 730)[-1]
        sugar = known(mine, "4548-4", at, 1095)
        assert row["hba1c"] == (pytest.approx(median(sugar)) if sugar else None)
        later = [e for e in mine if e["class"] in ("EMER", "IMP") and at < e["time"] <= at + timedelta(365)]
        assert row["acute_care"] == bool(later)


def known(events: list[dict[str, Any]], loinc: str, at: datetime, days: int) -> list[float]:
    """Values of a code in a window, in the order of their times, as far as they were recorded by then."""
    seen = [
        (event["time"], event["recorded"], event["value"])
        for event in events
        if event["code"] == f"http://loinc.org|{loinc}"
        and at - timedelta(days) <= event["time"] <= at
        and event["recorded"] <= at
    ]
    return [value for _, _, value in sorted(set(seen))]


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


@pytest.mark.parametrize("database", ["postgres", "sqlite"])
def test_a_database_gives_the_same_table_digest_for_digest(
    request: pytest.FixtureRequest, database: str, study: Study, home: Path, synthea: Path, from_files: PullResult
) -> None:
    make: Callable[..., str] = request.getfixturevalue(database)
    url = make(*(statement.format(moment="TIMESTAMPTZ" if database == "postgres" else "TEXT") for statement in CREATE))
    load(url, synthea)
    result = pulled(study, home, sql_source(url))
    assert result.cohort.digest == from_files.cohort.digest
    assert result.unripe.digest == from_files.unripe.digest
    assert result.cohort.watermark == from_files.cohort.watermark


def test_one_bundle_per_patient_gives_the_same_table(
    tmp_path: Path, study: Study, home: Path, synthea: Path, from_files: PullResult
) -> None:
    bundles: dict[str, list[Any]] = {}
    for kind in (*KINDS, "Patient"):
        with gzip.open(synthea / f"{kind}.ndjson.gz", "rt") as file:
            for line in file:
                one = json.loads(line)
                who = one["id"] if kind == "Patient" else one["subject"]["reference"].split("/")[1]
                bundles.setdefault(who, []).append({"resource": one})
    for who, entries in bundles.items():
        (tmp_path / f"{who}.json").write_text(json.dumps({"resourceType": "Bundle", "entry": entries}))
    assert pulled(study, home, {"kind": "files", "path": tmp_path}).cohort == from_files.cohort


def test_the_example_runs_as_the_tutorial_says(tmp_path: Path, synthea: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "synthea")
    (tmp_path / "synthea" / "fhir").symlink_to(synthea)
    site = read_site(tmp_path / "synthea" / "site.yaml")
    result = pull_at(read_study(tmp_path / "synthea" / "study.yaml"), site, now=NOW)
    assert Vault(site.home).read(result.cohort).num_rows == 1363
