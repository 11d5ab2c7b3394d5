"""One hospital in every kind of source, with or without a marked patient, and with lists on which that patient is."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spinney.configuration.site import SiteSettings
from spinney.study.study import Study
from tests.made_up import REGISTRY, WEIGHT, crowd, encounter, observation, patient, plain_study, study
from tests.made_up_omop import model
from tests.servers.fhir_traps import FhirTraps

MARK = "canary-7f3e91"
KEY = bytes(range(32))
KINDS = ("fhir-rest", "fhir-bulk", "ndjson", "bundle", "sql", "omop", "csv", "parquet", "sql table")
Resource = dict[str, Any]


def people(marked: bool, others: int = 12, again: int = 0) -> list[Resource]:
    """So many patients, some of whom come again, and perhaps the marked one: with the newest event, the first stay and
    a lot of weights."""
    rows: list[Resource] = [one for one in crowd(others) if isinstance(one, dict)]
    rows += [encounter("2023-03-25T10:00:00Z", "2023-03-27T10:00:00Z", who=f"p{number}") for number in range(again)]
    if marked:
        own = [encounter("2022-11-01T10:00:00Z", "2022-11-03T10:00:00Z", who=MARK)]
        own += [encounter("2023-12-20T10:00:00Z", "2023-12-24T10:00:00Z", who=MARK)]
        own += [observation(f"2022-11-{day:02d}", 187.31337 + day, who=MARK) for day in range(1, 3)]
        rows = [own[0], patient(MARK, identifier=[{"system": "urn:mrn", "value": "943 476"}]), *rows, *own[1:]]
    return [{**one, "id": one["id"].replace("_", "-"), "meta": {"lastUpdated": "2023-12-31T00:00:00Z"}} for one in rows]


def fixed_ids(rows: list[Resource]) -> list[Resource]:
    """The same ids in both hospitals, whatever else was made before."""
    return [{**one, "id": one["id"] if one["resourceType"] == "Patient" else _name(one)} for one in rows]


def _name(one: Resource) -> str:
    words = json.dumps({name: value for name, value in one.items() if name != "id"}, sort_keys=True)
    import hashlib

    return hashlib.sha256(words.encode()).hexdigest()[:20]


def study_of(kind: str, **more: Any) -> Study:
    found = plain_study() if kind in ("csv", "parquet", "sql table") else study()
    return Study.model_validate({**found.model_dump(mode="json"), **more})


@contextmanager
def source_of(kind: str, folder: Path, rows: list[Resource]) -> Iterator[dict[str, Any]]:
    """The `source` of site.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if kind in ("fhir-rest", "fhir-bulk"):
            server = stack.enter_context(FhirTraps(rows, ("combo-code",), poll_after="0", deleted=[]))
            yield {"kind": kind, "base_url": server.base_url}
        elif kind == "ndjson":
            for name in {one["resourceType"] for one in rows}:
                lines = "".join(f"{json.dumps(one)}\n" for one in rows if one["resourceType"] == name)
                (folder / f"{name}.ndjson.gz").write_bytes(gzip.compress(lines.encode()))
            yield {"kind": "files", "path": str(folder)}
        elif kind == "bundle":
            bundle = {"resourceType": "Bundle", "entry": [{"resource": one} for one in rows]}
            (folder / "all.json").write_text(json.dumps(bundle))
            yield {"kind": "files", "path": str(folder)}
        elif kind == "sql":
            yield sql_source(folder, rows)
        elif kind == "omop":
            yield omop_source(folder, rows)
        else:
            yield table_source(kind, folder, rows)


def sql_source(folder: Path, rows: list[Resource]) -> dict[str, Any]:
    with closing(sqlite3.connect(folder / "his.db")) as database:
        database.execute("CREATE TABLE person (patient, birth, sex)")
        database.execute("CREATE TABLE registry (who, since)")
        database.executemany("INSERT INTO registry VALUES (?, ?)", registered(rows))
        database.execute("CREATE TABLE event (kind, patient, code, time, until, value, unit, status, class)")
        for one in (one for one in rows if one["resourceType"] != "Group"):
            who = one.get("subject", {}).get("reference", "").removeprefix("Patient/")
            if one["resourceType"] == "Patient":
                database.execute("INSERT INTO person VALUES (?, ?, ?)", (one["id"], one["birthDate"], one["gender"]))
            elif one["resourceType"] == "Encounter":
                period = one["period"]["start"], one["period"].get("end")
                row = ("Encounter", who, None, *period, None, None, one["status"], one["class"]["code"])
                database.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            else:
                value = one["valueQuantity"]["value"]
                row = ("Observation", who, WEIGHT, one["effectiveDateTime"], None, value, "kg", "final", None)
                database.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        database.commit()
    columns = "patient, code, time, until, value, unit, status, class"
    events = {name: f"SELECT {columns} FROM event WHERE kind = '{name}'" for name in ("Encounter", "Observation")}
    people = "SELECT patient, birth, sex FROM person"
    lists = f"""SELECT who AS patient, '{REGISTRY}' AS "group", since AS "start" FROM registry"""
    more = {"groups": lists} if registered(rows) else {}
    return {"kind": "sql", "url": f"sqlite:///{folder / 'his.db'}", "patients": people, "events": events, **more}


def registered(rows: list[Resource]) -> list[tuple[str, str]]:
    """Who is in the Groups, and since when."""
    members = [one for group in rows for one in group.get("member", ())]
    return [(one["entity"]["reference"].removeprefix("Patient/"), one["period"]["start"]) for one in members]


def described(rows: list[Resource]) -> set[str]:
    return {one["id"] for one in rows if one["resourceType"] == "Patient"}


def omop_source(folder: Path, rows: list[Resource]) -> dict[str, Any]:
    """Tables of the model, in which a day is written as its midnight."""
    lists, rows = registered(rows), [one for one in rows if one["resourceType"] != "Group"]
    named = [one.get("subject", {}).get("reference", one["id"]).removeprefix("Patient/") for one in rows]
    people = {who: number for number, who in enumerate(dict.fromkeys(named), start=2)}
    made: list[tuple[str, dict[str, object]]] = [
        ("concept", {"concept_id": 3025315, "vocabulary_id": "LOINC", "concept_code": WEIGHT.partition("|")[2]}),
        *(("person", {"person_id": people[who], "person_source_value": who}) for who in {*named} - described(rows)),
    ]
    for number, one in enumerate(rows):
        who = people[named[number]]
        if one["resourceType"] == "Patient":
            year, month, day = map(int, one["birthDate"].split("-"))
            born = {"year_of_birth": year, "month_of_birth": month, "day_of_birth": day}
            made.append(("person", {"person_id": who, **born, "person_source_value": one["id"]}))
        elif one["resourceType"] == "Encounter":
            start, end = (one["period"][name].replace("T", " ").removesuffix("Z") for name in ("start", "end"))
            concept = 9201 if one["class"]["code"] == "IMP" else 9202
            days = {"visit_start_date": start[:10], "visit_end_date": end[:10]}
            times = {"visit_start_datetime": f"{start[:10]} {start[11:] or '00:00:00'}", "visit_end_datetime": end}
            visit = {"visit_occurrence_id": number, "person_id": who, "visit_concept_id": concept}
            made.append(("visit_occurrence", {**visit, **days, **times}))
        else:
            time = {
                "measurement_date": one["effectiveDateTime"],
                "measurement_datetime": one["effectiveDateTime"] + " 00:00:00",
            }
            row = {"measurement_id": number, "person_id": who, "measurement_concept_id": 3025315, **time}
            made.append(
                ("measurement", {**row, "value_as_number": one["valueQuantity"]["value"], "unit_source_value": "kg"})
            )
    for who, since in lists:
        made.append(("cohort", {"cohort_definition_id": 7, "subject_id": people[who], "cohort_start_date": since}))
    with closing(sqlite3.connect(folder / "omop.db")) as database:
        database.executescript(";\n".join(["BEGIN", *model(*made), "COMMIT"]))
    return {"kind": "omop", "url": f"sqlite:///{folder / 'omop.db'}", "patient": "person_source_value"}


def table_source(kind: str, folder: Path, rows: list[Resource]) -> dict[str, Any]:
    """A row per weight."""
    weights = [one for one in rows if one["resourceType"] == "Observation"]
    table = {
        "patient": [one["subject"]["reference"].removeprefix("Patient/") for one in weights],
        "index_time": [one["effectiveDateTime"] for one in weights],
        "weight": [one["valueQuantity"]["value"] for one in weights],
        "outcome": [int(one["valueQuantity"]["value"] > 75) for one in weights],
    }
    if kind == "parquet":
        pq.write_table(pa.table(table), folder / "table.parquet")
        return {"kind": "files", "table": str(folder / "table.parquet")}
    lines = [*zip(*table.values(), strict=True)]
    if kind == "csv":
        body = "".join(";".join(f'"{cell}"' for cell in line) + "\r\n" for line in lines)
        (folder / "table.csv").write_text(f"{';'.join(table)}\r\n{body}")
        return {"kind": "files", "table": str(folder / "table.csv")}
    with closing(sqlite3.connect(folder / "table.db")) as database:
        database.execute(f"CREATE TABLE cohort ({', '.join(table)})")
        database.executemany("INSERT INTO cohort VALUES (?, ?, ?, ?)", lines)
        database.commit()
    return {"kind": "sql", "url": f"sqlite:///{folder / 'table.db'}", "table": "SELECT * FROM cohort"}


def site_at(home: Path, source: dict[str, Any], *lists: dict[str, Any], **more: Any) -> SiteSettings:
    """A site whose vault has the key that all sites of a comparison have."""
    site = SiteSettings.model_validate({"name": "ash", "home": home, "source": source, "opt_out": lists, **more})
    path = site.vault.folder / "key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(KEY)
    return site


def listing(folder: Path, *names: str) -> dict[str, Any]:
    """A list in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opt-out.txt").write_text("".join(f"{name}\n" for name in names))
    return {"kind": "file", "path": str(folder / "opt-out.txt")}
