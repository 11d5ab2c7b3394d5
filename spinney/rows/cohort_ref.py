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

    def note(self) -> bytes:
        """As a house writes it down: without the folder, which may be moved."""
        return self.model_copy(update={"path": Path(self.path.name)}).model_dump_json().encode()

    @classmethod
    def of_note(cls, note: bytes | str, folder: Path) -> CohortRef:
        """What a house wrote down, wherever its folder is now."""
        read = cls.model_validate_json(note)
        return read.model_copy(update={"path": folder / read.path.name})
