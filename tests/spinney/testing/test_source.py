"""Every source of ours holds the contract that a source of somebody else's is held to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from spinney.connectors.sources import SourceSettings
from spinney.connectors.sources.fhir_bulk import FhirBulkSettings
from spinney.connectors.sources.fhir_rest import FhirRestSettings
from spinney.connectors.sources.files import FilesSettings
from spinney.connectors.sources.omop import OmopSettings
from spinney.connectors.sources.sql import SqlSettings
from spinney.demo.omop import TABLES as OMOP_TABLES
from spinney.testing.source import Reading, SourceContract
from tests.made_up import observation, patient, write
from tests.servers.fhir_traps import FhirTraps, Stumble

PATIENTS = "SELECT patient FROM patients"
READINGS = "SELECT patient, code, at AS time, value, unit FROM readings WHERE at BETWEEN :since AND :until"


def resources(patients: Sequence[str], readings: Sequence[Reading]) -> list[dict[str, object]]:
    """The same in FHIR."""
    people = [patient(name) for name in patients]
    return people + [
        observation(one.time.isoformat(), one.value, code=one.code, who=one.patient, issued=one.time.isoformat())
        for one in readings
    ]


class FilesPlace:
    """Resources that another program left in a folder."""

    secrets = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fhir"
        self.settings = FilesSettings(path=self.folder)
        self.wrong = FilesSettings(path=folder / "nowhere")

    def hold(self, patients: Sequence[str], readings: Sequence[Reading]) -> None:
        write(self.folder, resources(patients, readings))

    def away(self) -> None:
        return None


class BundlePlace(FilesPlace):
    """The same as one bundle, which has to be unpacked."""

    def hold(self, patients: Sequence[str], readings: Sequence[Reading]) -> None:
        self.folder.mkdir()
        entries = [{"resource": one} for one in resources(patients, readings)]
        (self.folder / "all.json").write_text(json.dumps({"resourceType": "Bundle", "entry": entries}))


class SqlitePlace:
    """A database file, which may be locked by another program."""

    secrets = ()

    def __init__(self, folder: Path) -> None:
        self.path = folder / "his.db"
        queries = {"patients": PATIENTS, "events": {"Observation": READINGS}}
        self.settings: SourceSettings = SqlSettings(url=f"sqlite:///{self.path}", **queries)
        self.wrong: SourceSettings = SqlSettings(url=f"sqlite:///{folder / 'nowhere.db'}", **queries)

    def hold(self, patients: Sequence[str], readings: Sequence[Reading]) -> None:
        fill(f"sqlite:///{self.path}", "TEXT", patients, readings)

    @contextmanager
    def away(self) -> Iterator[None]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            yield


class PostgresPlace:
    """A database server."""

    secrets = ("hunter2",)

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HIS_PASSWORD", "hunter2")
        queries = {"patients": PATIENTS, "events": {"Observation": READINGS}}
        self.url = url
        self.settings = SqlSettings(url=url, **queries)
        nobody = url.replace("postgres@", "nobody@")
        self.wrong = SqlSettings(url=nobody, password_env="HIS_PASSWORD", **queries)

    def hold(self, patients: Sequence[str], readings: Sequence[Reading]) -> None:
        fill(self.url, "TIMESTAMPTZ", patients, readings)

    def away(self) -> None:
        return None  # tests of the source end its server's sessions


def fill(url: str, of_time: str, patients: Sequence[str], readings: Sequence[Reading]) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE patients (patient TEXT)"))
        connection.execute(
            text(f"CREATE TABLE readings (patient TEXT, code TEXT, at {of_time}, value FLOAT, unit TEXT)")
        )
        connection.execute(text("INSERT INTO patients VALUES (:name)"), [{"name": name} for name in patients])
        rows = [{**vars(one), "time": written(one.time, of_time)} for one in readings]
        connection.execute(text("INSERT INTO readings VALUES (:patient, :code, :time, :value, 'kg')"), rows)
    engine.dispose()


class OmopPlace:
    """The tables of OMOP, in a file or on a server."""

    secrets = ()

    def __init__(self, url: str, wrong: str) -> None:
        self.url = url
        self.settings = OmopSettings(url=url, patient="person_source_value")
        self.wrong = OmopSettings(url=wrong, patient="person_source_value")

    def hold(self, patients: Sequence[str], readings: Sequence[Reading]) -> None:
        codes = {code: number for number, code in enumerate(sorted({one.code for one in readings}), 1)}
        persons = {name: number for number, name in enumerate(patients, 1)}
        tables: dict[str, list[dict[str, object]]] = {
            "concept": [
                *(
                    {"concept_id": number, "vocabulary_id": "LOINC", "concept_code": code.partition("|")[2]}
                    for code, number in codes.items()
                ),
                {"concept_id": 9529, "vocabulary_id": "UCUM", "concept_code": "kg"},
            ],
            "person": [{"person_id": number, "person_source_value": name} for name, number in persons.items()],
            "measurement": [
                {
                    "measurement_id": number,
                    "person_id": persons[one.patient],
                    "measurement_concept_id": codes[one.code],
                    "measurement_date": one.time.date().isoformat(),
                    "measurement_datetime": written(one.time, "TEXT"),
                    "value_as_number": one.value,
                    "unit_concept_id": 9529,
                }
                for number, one in enumerate(readings)
            ],
        }
        engine = create_engine(self.url)
        with engine.begin() as connection:
            for table, rows in tables.items():
                connection.execute(text(f"CREATE TABLE {table} ({OMOP_TABLES[table]})"))
                into = f"{table} ({', '.join(rows[0])}) VALUES ({', '.join(f':{name}' for name in rows[0])})"
                connection.execute(text(f"INSERT INTO {into}"), rows)
        engine.dispose()

    def away(self) -> None:
        return None  # the connection is that of the places above


def written(moment: datetime, of_time: str) -> datetime | str:
    return moment if of_time != "TEXT" else moment.strftime("%Y-%m-%d %H:%M:%S")


class ServerPlace:
    """A FHIR server that knows who asks."""

    secrets = ("hunter2",)

    def __init__(self, server: FhirTraps, kind: type[FhirRestSettings | FhirBulkSettings]) -> None:
        self.server = server
        quick = {"attempts": 1, "base_url": server.base_url}
        self.settings = kind(**quick)
        self.wrong = kind(attempts=1, base_url=f"{server.origin}/elsewhere")

    def hold(self, patients: Sequence[str], readings: Sequence[Reading]) -> None:
        for resource in resources(patients, readings):
            self.server.put(resource)

    @contextmanager
    def away(self) -> Iterator[None]:
        self.server.stumbles.append(Stumble("", 503, times=10_000))
        yield
        self.server.stumbles.clear()


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    with FhirTraps() as traps:
        yield traps


class TestFiles(SourceContract):
    @pytest.fixture(params=[FilesPlace, BundlePlace])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> FilesPlace:
        made: FilesPlace = request.param(tmp_path)
        return made


class TestSqlite(SourceContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> SqlitePlace:
        return SqlitePlace(tmp_path)


class TestPostgres(SourceContract):
    @pytest.fixture
    def place(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PostgresPlace:
        return PostgresPlace(request.getfixturevalue("postgres")(), monkeypatch)


class TestOmop(SourceContract):
    @pytest.fixture(params=["sqlite", "postgres"])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> OmopPlace:
        if request.param == "sqlite":
            return OmopPlace(f"sqlite:///{tmp_path / 'omop.db'}", f"sqlite:///{tmp_path / 'nowhere.db'}")
        url = str(request.getfixturevalue("postgres")())
        return OmopPlace(url, url.replace("postgres@", "nobody@"))


class TestFhirServers(SourceContract):
    @pytest.fixture(params=[FhirRestSettings, FhirBulkSettings])
    def place(self, request: pytest.FixtureRequest, server: FhirTraps) -> ServerPlace:
        return ServerPlace(server, request.param)


def test_every_source_is_held_to_it() -> None:
    from spinney.plugins import SOURCES

    assert set(SOURCES) == {"files", "omop", "sql", "fhir-rest", "fhir-bulk"}
