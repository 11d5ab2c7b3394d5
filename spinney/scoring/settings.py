"""The `scores` section of site.yaml: where the nightly scores of patients go. Secrets are only named."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from spinney.base import Name, Settings
from spinney.connectors.database import address_below
from spinney.connectors.fhir.server import FhirServer


class ScoresTable(Settings):
    """A table of the hospital's that Spinney may write to; it is made if it isn't there."""

    url: str = Field(description="SQLAlchemy address without a password, such as postgresql+psycopg://spinney@db/his.")
    password_env: str | None = Field(None, description="Environment variable that holds the password.")
    table: Name = Field("spinney_scores", description="Name of the table.")
    schema_name: Name | None = Field(None, alias="schema", description="Its schema; empty: the user's default.")

    @field_validator("url")
    @classmethod
    def _has_no_password(cls, value: str) -> str:
        try:
            url = make_url(value)
        except ArgumentError:
            raise ValueError("url must look like postgresql+psycopg://user@host/database") from None
        if url.password is not None or any("password" in key.lower() for key in url.query):
            raise ValueError("url must hold no password; name its environment variable in password_env")
        return value

    def anchored(self, folder: Path) -> Self:
        """These settings with a relative file of SQLite below the folder of site.yaml."""
        return self.model_copy(update={"url": address_below(folder, self.url)})


class ScoresFhir(FhirServer):
    """A FHIR R4 server that takes RiskAssessment resources."""

    patient_system: str | None = Field(
        None,
        description="System of the patient identifiers, where patients aren't known by the id of their resource.",
    )


class ScoresSettings(Settings):
    """Where scores go: a table, a FHIR server, or both."""

    table: ScoresTable | None = Field(None, description="A table of a database.")
    fhir: ScoresFhir | None = Field(None, description="A FHIR server.")

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if self.table is None and self.fhir is None:
            raise ValueError("scores needs table, fhir or both")
        return self
