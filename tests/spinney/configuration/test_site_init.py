"""A first site.yaml from a few answers: whatever was answered, it is read again as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spinney.configuration.site_init import site_text, write_site
from spinney.errors import SourceFailed, StudyInvalid

NORTH = {"name": "north", "home": "home", "timezone": "UTC"}
FHIR = {"kind": "fhir-rest", "base_url": "https://fhir.example.org/r4"}
ANSWERS = {
    "files": {"kind": "files", "path": "fhir"},
    "sql": {"kind": "sql", "url": "sqlite:///his.sqlite"},
    "omop": {"kind": "omop", "url": "postgresql+psycopg://reader@db/omop", "cdm_schema": "cdm"},
    "rest": {**FHIR, "auth": "none"},
    "bulk": {**FHIR, "kind": "fhir-bulk", "auth": "smart-backend", "user": "our-client", "secret_env": "FHIR_KEY"},
    "basic": {**FHIR, "auth": "basic", "user": 'o\'brien "the": #1', "secret_env": "FHIR_PASSWORD"},
    "client": {**FHIR, "auth": "client-credentials", "user": "our-client", "secret_env": "FHIR_CLIENT_SECRET"},
    "bearer": {**FHIR, "auth": "bearer", "secret_env": "FHIR_TOKEN"},
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_was_answered_is_what_the_file_says(tmp_path: Path, kind: str):
    answers = {**NORTH, **ANSWERS[kind]}
    site = write_site(tmp_path / "site.yaml", answers)
    assert (site.name, site.source.kind, site.home) == ("north", answers["kind"], tmp_path / "home")
    if "user" in answers:
        assert answers["user"] in vars(site.source.auth).values()


@pytest.mark.parametrize("exchange", ["", "../exchange"])
def test_without_an_exchange_its_section_is_there_as_a_comment(tmp_path: Path, exchange: str):
    site = write_site(tmp_path / "site.yaml", {**NORTH, **ANSWERS["files"], "exchange": exchange})
    assert (site.exchange is None) is (not exchange)
    assert "# The mailbox between the houses" in (tmp_path / "site.yaml").read_text()


def test_only_the_variable_of_a_secret_is_written(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FHIR_TOKEN", "hunter2")
    text = site_text("site.yaml", {**NORTH, **ANSWERS["bearer"]})
    assert yaml.safe_load(text)["source"]["auth"] == {"kind": "bearer", "token_env": "FHIR_TOKEN"}
    assert "hunter2" not in text


def test_the_file_says_how_it_is_tried():
    assert "spinney site check STUDY --site north.yaml" in site_text("north.yaml", {**NORTH, **ANSWERS["files"]})


def test_a_mistake_in_an_answer_leaves_no_file_behind(tmp_path: Path):
    with pytest.raises(StudyInvalid, match="base_url must look like"):
        write_site(tmp_path / "site.yaml", {**NORTH, **FHIR, "base_url": "ftp://x", "auth": "none"})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_left_alone(tmp_path: Path):
    (tmp_path / "site.yaml").write_text("somebody's work")
    with pytest.raises(SourceFailed, match="is there already"):
        write_site(tmp_path / "site.yaml", {**NORTH, **ANSWERS["files"]})
    assert (tmp_path / "site.yaml").read_text() == "somebody's work"
