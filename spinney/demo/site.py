"""The files of a made-up hospital: its data in one form, and a site.yaml that says how to read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from spinney.configuration.study_file import read_study
from spinney.demo.fhir import write_resources
from spinney.demo.history import MadeUpHistory, make_history
from spinney.demo.hospitals import make_hospitals
from spinney.demo.omop import write_omop
from spinney.demo.sql import PATIENTS, QUERIES, write_sql
from spinney.demo.table import write_study_table
from spinney.study.study import Study

STUDY_FILE = Path(__file__).with_name("study.yaml")

Form = Literal["fhir", "omop", "sql", "table"]


def world_study() -> Study:
    """The study that the made-up hospitals sign."""
    return read_study(STUDY_FILE)


def write_tables(folder: Path, sites: int, patients: int, seed: int) -> dict[str, Path]:
    """A finished table per hospital; the same arguments write the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    study, files = world_study(), {}
    for hospital in make_hospitals(sites, patients, seed):
        files[hospital.name] = folder / f"{hospital.name}.csv"
        write_study_table(make_history(hospital, seed), study, files[hospital.name], drop_empty=True)
    return files


def write_data(history: MadeUpHistory, form: Form, folder: Path, url: str | None = None) -> dict[str, Any]:
    """Write a history in one form; says what site.yaml has as `source`, with paths relative to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if form == "fhir":
        write_resources(history, folder / "fhir")
        return {"kind": "files", "path": "fhir"}
    if form == "table":
        write_study_table(history, world_study(), folder / "table.csv")
        return {"kind": "files", "table": "table.csv"}
    if form == "omop":
        write_omop(history, url or f"sqlite:///{folder / 'omop.sqlite'}")
        where = {"kind": "omop", "url": url or "sqlite:///omop.sqlite"}
        return {**where, "patient": "person_source_value", "midnight": "moment"}  # it knows all times to the minute
    write_sql(history, url or f"sqlite:///{folder / 'his.sqlite'}")
    return {"kind": "sql", "url": url or "sqlite:///his.sqlite", "patients": PATIENTS, "events": QUERIES}


def site_settings(history: MadeUpHistory, source: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The content of site.yaml."""
    hospital = history.hospital
    habits = hospital.habits
    maps = {
        "codes": habits.code_map(hospital.name),
        "units": habits.unit_map(),
        "assumed_units": habits.assumed_units(),
    }
    if hospital.without:
        more = {"accepted": {"empty": [*hospital.without]}, **more}
    plain = {"name": hospital.name, "home": "home", "timezone": hospital.timezone, "source": dict(source)}
    return {**plain, **{name: pairs for name, pairs in maps.items() if pairs}, **more}


def write_yaml(path: Path, content: Mapping[str, Any], comment: str) -> None:
    """Settings as people write them: blocks of text stay blocks."""
    words = yaml.dump(dict(content), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)
    path.write_text(f"# {comment}\n{words}", encoding="utf-8")


class _Plain(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Plain.add_representer(str, _text)
