"""Who the scored patients are: kept from the pull until their scores are written back, and not an hour longer.

The vault knows patients by keyed hashes only, but a score must reach the right one. So a pull for scoring leaves the
identifiers of the rows that are still open, and of no others, in a file of mode 0600; writing back deletes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spinney.cohort.vault import Vault
from spinney.errors import SourceFailed
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder

IDENTIFIERS, SCORES = "identifiers.parquet", "scores.parquet"


class Handover:
    """The private folder of one study between pull and write-back."""

    def __init__(self, vault: Vault, study: str) -> None:
        self.vault, self.folder = vault, vault.folder / "handover" / study

    def keep_identifiers(self, patients: pa.ChunkedArray) -> None:
        """The hash and the identifier of every patient whose row is open. What an earlier run left is deleted."""
        self.forget()
        known = pa.chunked_array([patients.unique()])
        self._write(IDENTIFIERS, pa.table({"patient": self.vault.pseudonyms(known), "identifier": known}))

    def identifiers(self) -> Mapping[str, str]:
        """The identifier by hash."""
        table = self._read(IDENTIFIERS)
        return dict(zip(table["patient"].to_pylist(), map(str, table["identifier"].to_pylist()), strict=True))

    def keep_scores(self, scores: pa.Table) -> None:
        self._write(SCORES, scores)

    def scores(self) -> pa.Table:
        return self._read(SCORES)

    def forget(self) -> None:
        """Nobody can be found by a score any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, name: str, table: pa.Table) -> None:
        private_folder(self.folder)
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="zstd")
        write_whole(self.folder / name, buffer.getvalue().to_pybytes())

    def _read(self, name: str) -> pa.Table:
        path: Path = self.folder / name
        try:
            return pq.read_table(path)
        except (OSError, pa.ArrowException):
            raise SourceFailed("what a pull for scoring left is gone; start site-score again") from None
