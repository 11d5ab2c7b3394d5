"""An OMOP Common Data Model, 5.3 or 5.4, in any database that SQLAlchemy speaks to; nobody writes a query.

Codes of the study are looked up in the `concept` table, as concept ids (omop|201826) or as codes of a vocabulary
(http://snomed.info/sct|44054006), and only rows of these concepts are read, by standard and by source concept. Rows are
streamed, and a row with two codes becomes two rows of one event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from spinney.connectors.database import Database, address_below, checked_address, write_texts
from spinney.connectors.omop.model import Model
from spinney.connectors.omop.records import DETAIL, ERAS, RECORDS, VISIT, Record
from spinney.connectors.omop.rows import EVENT, MEMBER, PATIENT, ReadingHabits, events, members, patients
from spinney.connectors.sources import (
    GROUP,
    Progress,
    Pulled,
    Question,
    Source,
    SourceSettings,
    Surroundings,
    Wanted,
    as_yaml,
    refuse_tables,
)
from spinney.study.definition import Kind

NOWHERE = "OMOP has no table for it"
STARTER = """\
# An OMOP Common Data Model 5.3 or 5.4. It is only read, in one transaction; the study says what is looked for.
source:
  kind: omop
  url: {url}
{secret}
{schemas}
"""


class OmopSettings(SourceSettings):
    """Tables of the OMOP Common Data Model."""

    asks = (
        Question("url", "Address of the database, without a password, such as postgresql+psycopg://reader@db/omop"),
        Question("secret_env", "Environment variable with the password (empty: none)", default=""),
        Question(
            "cdm_schema", "Schema with the tables person, visit_occurrence ... (empty: the user's own)", default=""
        ),
        Question("vocabulary_schema", "Schema with the table concept (empty: the same)", default=""),
    )

    kind: Literal["omop"] = "omop"
    url: str = Field(description="SQLAlchemy address without a password, such as postgresql+psycopg://reader@db/omop.")
    password_env: str | None = Field(None, description="Environment variable that holds the password.")
    cdm_schema: str | None = Field(None, description="Schema of person, visit_occurrence ...; empty: the user's own.")
    vocabulary_schema: str | None = Field(None, description="Schema of concept and concept_ancestor; empty: the same.")
    results_schema: str | None = Field(
        None, description="Schema of the table cohort, for a study that asks who is in a group; empty: the cdm_schema."
    )
    patient: Literal["person_id", "person_source_value"] = Field(
        "person_id", description="What a patient is called by: scores, lists of objections and other sources use it."
    )
    midnight: Literal["day", "moment"] = Field(
        "day", description="What a *_datetime at 00:00:00 means: OMOP writes it where only the day is known."
    )
    visit_details: bool = Field(False, description="Rows of visit_detail are encounters, too, each within its visit.")
    eras: tuple[Kind, ...] = Field((), description="Resource types that are read from drug_era and condition_era.")
    drug_types: dict[Kind, tuple[int, ...]] = Field(
        {}, description="By kind of medication the drug_type_concept_id that it is; a kind that is not named: all."
    )
    classes: dict[int, str] = Field({}, description="Encounter class by visit_concept_id, where ours is not meant.")
    timeout_minutes: float = Field(60, gt=0, description="Longest time for one query, where the database can tell.")

    @field_validator("url")
    @classmethod
    def _has_no_password(cls, value: str) -> str:
        return checked_address(value)

    @model_validator(mode="after")
    def _kinds_have_such_tables(self) -> Self:
        if unknown := sorted(set(self.eras) - set(ERAS)):
            raise ValueError(f"eras: there is none of {unknown[0]}; there are eras of {', '.join(ERAS)}")
        if both := sorted(set(self.eras) & set(self.drug_types)):
            raise ValueError(f"{both[0]}: rows of drug_era have no type; take it out of drug_types or out of eras")
        of_drugs = {kind for kind, records in RECORDS.items() if records[0].table == "drug_exposure"}
        if unknown := sorted(set(self.drug_types) - of_drugs):
            raise ValueError(f"drug_types: {unknown[0]} is not in drug_exposure; {', '.join(sorted(of_drugs))} are")
        return self

    def open(self, where: Surroundings) -> Source:
        return Omop(self, where.timezone)

    def reach(self, where: Surroundings) -> str:
        with Omop(self, where.timezone).model() as model:
            return f"OMOP CDM {model.version} on {model.connection.dialect.name} answers"

    def anchored(self, folder: Path) -> Self:
        return self.model_copy(update={"url": address_below(folder, self.url)})

    @classmethod
    def starter(cls, answers: Mapping[str, str]) -> str:
        variable = answers.get("secret_env")
        secret = f"  password_env: {as_yaml(variable)}" if variable else "  # password_env: OMOP_PASSWORD"
        schemas = [
            f"  {key}: {as_yaml(answers[key])}" if answers.get(key) else f"  # {key}: {example}"
            for key, example in (("cdm_schema", "cdm"), ("vocabulary_schema", "vocabulary"))
        ]
        return STARTER.format(url=as_yaml(answers["url"]), secret=secret, schemas="\n".join(schemas))


class Omop:
    """Reads the tables of one database."""

    def __init__(self, settings: OmopSettings, timezone: str = "UTC") -> None:
        self.settings = settings
        self.database = Database(settings.url, settings.password_env, settings.timeout_minutes, timezone)
        drug_types = {str(kind): types for kind, types in settings.drug_types.items()}
        self._habits = ReadingHabits(settings.patient, settings.midnight == "day", drug_types, settings.classes)

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled:
        refuse_tables(wanted, "kind files or sql")
        files: dict[str, tuple[Path, ...]] = {}
        read: dict[str, int] = {}
        notes: list[str] = []
        midnights: dict[str, Counter[str]] = {}
        with self.model() as model:
            for one in wanted:
                columns: Sequence[str] = PATIENT
                rows = patients(model, self._habits)
                if one.kind == GROUP:
                    if model.cohort is None:
                        notes.append("Group: there is no table cohort; say where under results_schema in site.yaml")
                        continue
                    columns, rows = MEMBER, members(model, self._habits, _numbers(one))
                elif one.kind != "Patient":
                    records = self._records(one.kind)
                    there = [record for record in records if record.table in model.tables]
                    if not there:
                        absent = " and no ".join(record.table for record in records)
                        notes.append(f"{one.kind}: {f'there is no {absent}' if absent else NOWHERE}")
                        continue
                    columns, rows = EVENT, events(model, self._habits, there, one, midnights)
                path = staging / f"{one.kind}.parquet"
                places = {name: place for place, name in enumerate(columns)}
                read[one.kind] = write_texts(path, places, rows, partial(_tell, progress, one.kind))
                files[one.kind] = (path,)
        return Pulled(files, read, notes=tuple(notes), by_patient=midnights)

    @contextmanager
    def model(self) -> Iterator[Model]:
        """The tables, while a connection is open."""
        with self.database.connected() as connection:
            schemas = self.settings.cdm_schema, self.settings.vocabulary_schema, self.settings.results_schema
            yield Model(connection, *schemas)

    def _records(self, kind: str) -> tuple[Record, ...]:
        if kind in self.settings.eras:
            return ERAS[kind]
        return (VISIT, DETAIL) if kind == "Encounter" and self.settings.visit_details else RECORDS.get(kind, ())


def _numbers(wanted: Wanted) -> list[int]:
    """The cohort_definition_ids among the words for the groups that are wanted."""
    return sorted(int(word) for word in wanted.codes if word.isdecimal())


def _tell(progress: Progress, kind: str, count: int) -> None:
    progress(kind, count, None)


SOURCE = OmopSettings
