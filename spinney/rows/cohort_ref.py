"""What may be said of a cohort outside of the vault: where it is and what it is, never what is in it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import Field

from spinney.base import Settings


class CohortRef(Settings):
    """Where a cohort is and what it is; all that may be passed around."""

    path: Path = Field(description="Parquet file in the vault.")
    rows: int = Field(ge=0, description="How many rows it has.")
    digest: str = Field(description="SHA-256 of its content, the same for the same rows in any order.")
    study: str = Field(description="Digest of the study that it was made for.")
    watermark: datetime | None = Field(None, description="Newest moment that the data tell of.")
