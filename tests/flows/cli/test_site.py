"""spinney site: from a few questions to a look at the data, and one clear line for everything that can be wrong."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from spinney.cohort.vault import Vault
from spinney.configuration.site import read_site
from tests.flows.cli.stays import STUDY, resources, spinney
from tests.made_up import write
from tests.places import ROOT
from tests.servers.fhir_traps import FhirTraps, Stumble

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


@pytest.mark.parametrize(
    ("options", "said", "kind"),
    [
        (["--kind", "files", "--path", "fhir"], "", "files"),
        (["--kind", "sql"], "postgresql+psycopg://reader@db/his\nHIS_PASSWORD\n", "sql"),
        (["--kind", "fhir-rest"], "https://fhir.example.org/r4\nnone\n", "fhir-rest"),
        (["--kind", "fhir-rest", "--auth", "bearer"], "https://fhir.example.org/r4\nFHIR_TOKEN\n", "fhir-rest"),
        ([], "fhir-bulk\nhttps://fhir.example.org/r4\nsmart-backend\nour-client\nFHIR_KEY\n", "fhir-bulk"),
        (["--kind", "fhir-bulk", "--auth", "basic", "--user", "u: #1"], "https://x.org/r4\nP\n", "fhir-bulk"),
    ],
)
def test_init_asks_what_no_option_says_and_writes_a_file_that_can_be_read(
    tmp_path: Path, options: list[str], said: str, kind: str
) -> None:
    file = tmp_path / "site.yaml"
    answer = spinney("site", "init", "-o", file, "--name", "north", *options, answers=said)
    assert answer.exit_code == 0, answer.output
    site = read_site(file)
    assert (site.name, site.source.kind) == ("north", kind)
    assert sum(line.startswith("#") for line in file.read_text().splitlines()) > 8


def test_init_writes_no_secret_and_names_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIS_PASSWORD", "hunter2")
    options = ["--kind", "sql", "--url", "sqlite:///his.sqlite", "--secret-env", "HIS_PASSWORD"]
    assert spinney("site", "init", "-o", tmp_path / "site.yaml", "--name", "north", *options).exit_code == 0
    text = (tmp_path / "site.yaml").read_text()
    assert 'password_env: "HIS_PASSWORD"' in text
    assert "hunter2" not in text


def test_init_does_not_overwrite(folder: Path) -> None:
    before = (folder / "site.yaml").read_text()
    answer = spinney("site", "init", "--name", "north", "--kind", "files", "--path", "fhir")
    assert answer.exit_code == 2
    assert "site.yaml is there already" in answer.stderr
    assert (folder / "site.yaml").read_text() == before


def test_init_leaves_no_file_with_a_mistake_behind(tmp_path: Path) -> None:
    options = ["--kind", "fhir-rest", "--base-url", "ftp://x", "--auth", "none"]
    answer = spinney("site", "init", "-o", tmp_path / "site.yaml", "--name", "north", *options)
    assert answer.exit_code == 2
    assert "base_url must look like https://host/path" in answer.stderr
    assert not (tmp_path / "site.yaml").exists()


def test_a_sample_has_fewer_index_events(folder: Path) -> None:  # noqa: ARG001
    found = json.loads(spinney("site", "check", "study.yaml", "--sample", "2023-03-10", "--json").stdout)
    assert found["cohort"]["rows"] == 20
    assert found["left_out"] == {"before the first day of the study": 40}


@pytest.mark.parametrize("sample", ["5200w", "1900-01-01"])
def test_a_sample_is_a_time_back_from_today_or_a_day(folder: Path, sample: str) -> None:  # noqa: ARG001
    found = json.loads(spinney("site", "check", "study.yaml", "--sample", sample, "--json").stdout)
    assert found["cohort"]["rows"] == 60


def test_a_sample_is_never_more_than_the_study(folder: Path) -> None:
    limited = (folder / "study.yaml").read_text().replace("cohort:\n", "cohort:\n  since: 2023-03-10\n")
    (folder / "limited.yaml").write_text(limited)
    found = json.loads(spinney("site", "check", "limited.yaml", "--sample", "1900-01-01", "--json").stdout)
    assert found["cohort"]["rows"] == 20


def test_a_sample_that_is_neither_says_what_to_write(folder: Path) -> None:  # noqa: ARG001
    answer = spinney("site", "check", "study.yaml", "--sample", "recent")
    assert answer.exit_code == 2
    assert "neither a time such as 90d nor a day such as 2024-01-31" in answer.stderr


@pytest.mark.parametrize("words", [("keys", "new"), ("audit", "show")])
def test_a_house_is_also_found_by_its_site_file(folder: Path, words: tuple[str, str]) -> None:
    answer = spinney(*words, "--site", "site.yaml")
    assert answer.exit_code == 0
    assert str(folder / "home") in answer.stdout + answer.stderr


def test_forget_deletes_old_cohorts_only(folder: Path) -> None:
    assert spinney("site", "check", "study.yaml").exit_code == 0
    vault = Vault(folder / "home")
    before = vault.cohorts("stays")
    old = before[0].path
    long_ago = old.stat().st_mtime - timedelta(days=31).total_seconds()
    os.utime(old.with_suffix(".json"), (long_ago, long_ago))
    spinney("site", "check", "study.yaml", "--sample", "2023-03-10")
    assert spinney("site", "forget", "--older-than", "30d").output == "1 cohorts forgotten\n"
    assert not old.exists()
    assert len(vault.cohorts("stays")) >= 1


# What people get wrong, and the one line that they see. Words in braces are filled in by `trouble`.

FHIR = "source: {{kind: fhir-rest, base_url: '{base}', attempts: 1{more}}}"
SQL = """source:
  kind: sql
  url: sqlite:///{database}
  patients: SELECT id AS patient, birth, sex FROM people
  events:
    Encounter: {encounters}
    Observation: SELECT id AS patient, day AS time, code, kilos AS value, 'kg' AS unit FROM weights
"""
STAYS = "SELECT id AS patient, day AS time, gone AS until, 'IMP' AS class, 'finished' AS status FROM stays"


@contextmanager
def trouble(folder: Path) -> Iterator[Callable[..., str]]:
    """Servers and files to get wrong, and their names."""
    database = folder / "his.sqlite"
    with sqlite3.connect(database) as his:
        his.executescript(
            "CREATE TABLE people (id, birth, sex); CREATE TABLE stays (id, day, gone);"
            "CREATE TABLE weights (id, day, code, kilos);"
        )
    his.close()
    (folder / "empty").mkdir()
    (folder / "notes.docx").write_text("not data")
    for name in ("broken", "mixed"):
        (folder / name).mkdir()
    (folder / "broken" / "Encounter.ndjson.gz").write_bytes(b"this is not gzip")
    (folder / "mixed" / "everything.ndjson.gz").write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with socket.socket() as closed, FhirTraps() as guarded, FhirTraps(plays=b"<html>login</html>") as page:
        closed.bind(("127.0.0.1", 0))
        guarded.stumbles.append(Stumble("/fhir/metadata", 401, times=99))
        known = {
            "closed": f"http://127.0.0.1:{closed.getsockname()[1]}/fhir",
            "guarded": guarded.base_url,
            "page": page.base_url,
            "database": str(database),
            "encounters": STAYS,
            "more": "",
        }

        def filled(text: str, **instead: str) -> str:
            values = {**known, **instead}
            return text.format(**{key: value.format(**known) for key, value in values.items()})

        yield filled


FILES = "source: {{kind: files, path: {path}}}"
MISTAKES: dict[str, tuple[str, dict[str, str], str]] = {
    "host unreachable": (FHIR, {"base": "{closed}"}, r"^127\.0\.0\.1:\d+: cannot be reached; check base_url, the fire"),
    "unknown host": (FHIR, {"base": "http://no-such-host.invalid/r4"}, r"^no-such-host\.invalid: no such host; check"),
    "401": (FHIR, {"base": "{guarded}"}, r": metadata: the credentials are refused; check auth \(kind is none\).*401"),
    "no FHIR server": (FHIR, {"base": "{page}"}, r"not JSON; is base_url a FHIR server's address\?"),
    "secret not set": (
        FHIR,
        {"base": "https://x.org/r4", "more": ", auth: {{kind: bearer, token_env: NOBODY_SET_THIS}}"},
        r"NOBODY_SET_THIS.*not set",
    ),
    "key file is no key": (
        FHIR,
        {"base": "https://x.org/r4", "more": ", auth: {{kind: smart-backend, client_id: c, key_file: notes.docx}}"},
        r"notes\.docx",
    ),
    "unknown table": (SQL, {"encounters": "SELECT 1 AS patient, 2 AS time FROM stayz"}, "no such table: stayz; mend"),
    "missing column": (
        SQL,
        {"encounters": "SELECT id, day AS time FROM stays"},
        "column patient is missing",
    ),
    "unknown column": (
        SQL,
        {"encounters": "SELECT id AS patient, day AS time, 1 AS vlaue FROM stays"},
        r"unknown column vlaue; did you mean value\?",
    ),
    "unknown parameter": (SQL, {"encounters": "SELECT 1 AS patient, :from AS time"}, "unknown parameter :from; known"),
    "no such database": (SQL, {"database": "gone.sqlite"}, r"gone\.sqlite is not there; mend url in site\.yaml"),
    "password in the file": (
        "source: {{kind: sql, url: 'postgresql://me:secret@db/his', table: SELECT 1}}",
        {},
        r"^site\.yaml:3 source\.url: url must hold no password; name its environment variable in password_env$",
    ),
    "dialect not installed": (
        "source: {{kind: sql, url: 'oracle://me@db/his', table: SELECT 1, password_env: HOME}}",
        {},
        "oracle needs the Python package|is no dialect",
    ),
    "no events": (SQL, {}, r"index events \(Encounter\)|has events with the study's codes"),
    "folder not there": (FILES, {"path": "nowhere"}, r"nowhere is not there; mend the path in site\.yaml"),
    "nothing in the folder": (FILES, {"path": "empty"}, "empty holds no Encounter or Observation"),
    "another kind of file": (FILES, {"path": "notes.docx"}, r"notes\.docx can't be read; it should end in"),
    "broken file": (FILES, {"path": "broken"}, r"^Encounter\.ndjson\.gz can't be read; is it whole\?$"),
    "cut-off file": (FILES, {"path": "mixed"}, r"^everything\.ndjson\.gz can't be read; is it whole\?$"),
    "unknown time zone": (f"{FILES}\ntimezone: Mars/Base", {"path": "fhir"}, "Mars/Base is no time zone"),
    "misspelt key": (f"{FILES}\ntimezon: UTC", {"path": "fhir"}, "timezon: unknown key; did you mean timezone"),
    "unknown kind": ("source: {{kind: fhir, path: fhir}}", {}, "must be one of"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_wrong_setting_is_one_line_that_says_what_to_do(folder: Path, mistake: str) -> None:
    template, instead, said = MISTAKES[mistake]
    with trouble(folder) as filled:
        (folder / "site.yaml").write_text(f"name: north\nhome: home\n{filled(template, **instead)}\n")
        answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 2, answer.output
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1, answer.stderr
    assert re.search(said, answer.stderr.strip()), answer.stderr


@pytest.mark.parametrize("missing", ["study.yaml", "site.yaml"])
def test_a_file_that_is_not_there_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"{missing}: cannot be read")


def test_a_study_of_finished_tables_does_not_fit_fhir_resources(folder: Path) -> None:
    (folder / "study.yaml").write_text("name: t\nfeatures: [{name: a, kind: binary}]\nlabel: {name: y}\n")
    answer = spinney("site", "check", "study.yaml")
    assert answer.exit_code == 2
    assert "the study has no `cohort`" in answer.stderr


def test_a_code_without_a_match_is_named_with_its_neighbours(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY.replace("29463-7", "29463-1"))
    answer = spinney("site", "check", "study.yaml")
    assert "LOINC 29463-1: 0 of 32 observations; nearest in your data: LOINC 29463-7 (32)" in answer.stdout


def test_a_unit_that_nobody_knows_is_named_and_set_aside(folder: Path) -> None:
    (folder / "fhir" / "Observation.ndjson").unlink()
    write(folder / "fhir", [one for one in resources("stones") if one["resourceType"] == "Observation"])
    answer = spinney("site", "check", "study.yaml")
    assert "Observation: 32; in quarantine: unknown unit 32" in answer.stdout
    assert "weight: 0 count; unknown unit 32" in answer.stdout
    assert "LOINC 29463-7: 32 values in stones, not kg (unknown unit); map it under units in site.yaml" in answer.stdout
    assert "critical: at most 5% of what was read is in quarantine (32 of 133 fail)" in answer.stdout
    assert answer.exit_code == 2


def test_a_bad_age_to_forget_is_wrong_usage(folder: Path) -> None:  # noqa: ARG001
    answer = spinney("site", "forget", "--older-than", "a month")
    assert answer.exit_code == 2
    assert "write a whole number and min, h, d or w" in answer.stderr


@pytest.mark.parametrize("words", [[], ["init"], ["check"], ["forget"]])
def test_help_is_there_before_anything_heavy_is_imported(words: list[str]) -> None:
    heavy = {"pandas", "prefect", "duckdb", "great_expectations", "mlflow", "sklearn"}
    if words != ["init"]:  # its options are those of the sources
        heavy |= {"numpy", "pydantic", "rich", "spinney.connectors.sources"}
    call = f"main({['site', *words, '--help']!r}, standalone_mode=False)"
    code = (
        f"import sys\nfrom spinney.flows.cli import main\n{call}\nprint('HEAVY', sorted({heavy!r} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.startswith("Usage:")
    assert answer.stdout.endswith("HEAVY []\n")
