"""A list in a database: a query that yields identifiers, over the source's own address or another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
from pydantic import Field

from spinney.connectors.database import address_below
from spinney.connectors.opt_out.identifiers import Named, listed_name
from spinney.connectors.opt_out.lists import ListContent, ListSettings, Place, PlainList
from spinney.connectors.sources import SourceSettings, Wanted
from spinney.connectors.sources.sql import Sql, SqlSettings
from spinney.errors import SourceFailed

PEOPLE = "Patient"


class SqlList(PlainList):
    """A query that yields a column `patient`."""

    kind: Literal["sql"] = "sql"
    query: str = Field(description="Query that yields the identifiers in a column `patient`.")
    url: str = Field("", description="SQLAlchemy address without a password; empty: that of the site's own source.")
    password_env: str | None = Field(None, description="Environment variable that holds the password.")
    timeout_minutes: float = Field(60, gt=0, description="Longest time for the query, where the database can tell.")

    def read(self, place: Place) -> ListContent:
        if not self.url:
            raise SourceFailed("opt_out: a list of kind sql needs `url`, since the source itself is no database")
        try:
            database = Sql(self._database, place.around.timezone)
            pulled = database.pull([Wanted(PEOPLE)], place.staging, lambda *_: None)
        except SourceFailed as error:
            told = type(error)(f"{self.title}: {error}")
            raise told from None
        (file,) = pulled.files[PEOPLE]
        found: set[Named] = set()
        with pq.ParquetFile(file) as rows:
            for batch in rows.iter_batches(columns=["patient"]):
                for word in batch.column(0).to_pylist():
                    found.add(listed_name(word or "", self.system, self.compare, f"{self.title}: one of its rows"))
        file.unlink()
        return self.said(frozenset(found))

    @property
    def _database(self) -> SqlSettings:
        words: dict[str, Any] = {"url": self.url, "password_env": self.password_env, "patients": self.query}
        return SqlSettings(**words, table="SELECT 1", timeout_minutes=self.timeout_minutes)

    @property
    def title(self) -> str:
        return "the query of opt_out"

    def beside(self, source: SourceSettings) -> ListSettings:
        if self.url or not isinstance(source, SqlSettings):
            return self
        password = self.password_env or source.password_env
        return self.model_copy(update={"url": source.url, "password_env": password})

    def anchored(self, folder: Path) -> ListSettings:
        return self.model_copy(update={"url": address_below(folder, self.url)}) if self.url else self
