"""A real FHIR server from npm, loaded with Synthea patients: what is read from it is what it has."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spinney.cohort.pull_report import PullResult
from spinney.configuration.site import AnySource, SiteSettings
from spinney.configuration.study_file import read_study
from spinney.connectors.sources import Wanted
from spinney.connectors.sources.fhir_bulk import FhirBulkSettings
from spinney.connectors.sources.fhir_rest import FhirRest, FhirRestSettings
from spinney.connectors.sources.files import FilesSettings
from tests.made_up import pull_at
from tests.servers.fhir_npm import serving
from tests.servers.fhir_traps import FhirTraps

pytestmark = [pytest.mark.service, pytest.mark.timeout(300)]

STUDY = Path(__file__).parents[2] / "docs" / "examples" / "synthea" / "study.yaml"
DATA = Path(os.environ.get("SPINNEY_DATA", Path(__file__).parents[2] / ".." / "shared" / "data")) / "fhir"
KINDS = ("Patient", "Encounter", "Condition", "Observation", "MedicationRequest", "Procedure", "Immunization")

Resources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def resources() -> dict[str, Resources]:
    """By type and id, what the files hold."""
    if not DATA.exists():
        pytest.skip(f"no FHIR files in {DATA}; set SPINNEY_DATA")
    found: dict[str, Resources] = {}
    for kind in KINDS:
        with gzip.open(DATA / f"{kind}.ndjson.gz", "rt", encoding="utf-8") as lines:
            found[kind] = {one["id"]: one for one in map(json.loads, lines)}
    return found


@pytest.fixture(scope="module")
def base_url(resources: dict[str, Resources], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server with all resources in it."""
    folder = tmp_path_factory.mktemp("fhir")
    for kind, of_kind in resources.items():
        entries = [{"resource": one} for one in of_kind.values()]
        bundle = {"resourceType": "Bundle", "type": "collection", "entry": entries}
        (folder / f"{kind}.json").write_text(json.dumps(bundle))
    with serving(folder) as address:
        yield address


def read(files: tuple[Path, ...]) -> Resources:
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    found = {one["id"]: one for one in lines}
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize("page_size", [100, 500, 5000])
def test_what_is_read_is_what_the_server_has(
    base_url: str, resources: dict[str, Resources], tmp_path: Path, page_size: int
) -> None:
    source = FhirRest(FhirRestSettings(base_url=base_url, page_size=page_size))
    pulled = source.pull([Wanted(kind) for kind in KINDS], tmp_path, lambda *_: None)
    assert pulled.read == {kind: len(of_kind) for kind, of_kind in resources.items()}
    assert pulled.notes == ()
    for kind, files in pulled.files.items():
        assert read(files) == resources[kind]


def test_only_the_wanted_codes_are_read(base_url: str, resources: dict[str, Resources], tmp_path: Path) -> None:
    codes = ("http://snomed.info/sct|59621000", "http://snomed.info/sct|44054006")  # hypertension, diabetes
    pulled = FhirRest(FhirRestSettings(base_url=base_url)).pull([Wanted("Condition", codes)], tmp_path, lambda *_: None)
    wanted = {code.split("|")[1] for code in codes}
    expected = {
        id: one
        for id, one in resources["Condition"].items()
        if wanted & {coding["code"] for coding in one["code"]["coding"]}
    }
    assert read(pulled.files["Condition"]) == expected
    assert 0 < len(expected) < len(resources["Condition"])


def table_from(source: AnySource, home: Path) -> PullResult:
    site = SiteSettings(name="synthea", home=home, source=source, validate="none")
    return pull_at(read_study(STUDY), site, now=datetime(2026, 1, 1, tzinfo=UTC))


def test_the_table_is_the_same_through_files_search_and_export(
    base_url: str, resources: dict[str, Resources], tmp_path: Path
) -> None:
    files = table_from(FilesSettings(path=DATA), tmp_path)
    search = table_from(FhirRestSettings(base_url=base_url), tmp_path)
    everything = [one for of_kind in resources.values() for one in of_kind.values()]
    with FhirTraps(everything, cut_after=100_000, poll_after="0") as server:
        export = table_from(FhirBulkSettings(base_url=server.base_url), tmp_path)
        next_night = table_from(FhirBulkSettings(base_url=server.base_url), tmp_path)
        assert [("_since" in one.query) for one in server.asked("$export")] == [False, True]
    tables = [files, search, export, next_night]
    assert files.cohort.rows > 100
    assert len({one.cohort.digest for one in tables}) == 1
    assert len({one.unripe.digest for one in tables}) == 1
