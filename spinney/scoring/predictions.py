"""What a site's models have said about patients, kept until the outcome is known: hashed patients, in private files.

The first word of a version about a row stands: later nights add the rows that are new.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from spinney.errors import SourceFailed
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder

COLUMNS = ("patient", "index_time", "probability", "decision")
FILE = re.compile(r"^(\d+)-(\d+)\.parquet$")


def in_utc(times: pd.Series) -> pd.Series:
    """Times as the vault has them: in UTC, without saying so."""
    return pd.to_datetime(times, utc=True).dt.tz_localize(None)


class Predictions:
    """The predictions of one study in one house."""

    def __init__(self, home: Path, study: str) -> None:
        self.folder = home / "predictions" / study

    def add(self, scores: pa.Table, version: int, now: datetime) -> int:
        """Keep what a version says about rows that it has said nothing about; says how many."""
        known = self.of(version)[["patient", "index_time"]]
        told = scores.select(list(COLUMNS)).to_pandas()
        told["index_time"] = in_utc(told["index_time"])
        told = told.merge(known, how="left", on=["patient", "index_time"], indicator="seen")
        fresh = (
            told[told["seen"] == "left_only"]
            .drop(columns="seen")
            .assign(scored_at=now.astimezone(UTC).replace(tzinfo=None))
        )
        if len(fresh):
            number = 1 + max((self._parts(path)[1] for path in self._files(version)), default=0)
            buffer = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pandas(fresh, preserve_index=False), buffer, compression="zstd")
            write_whole(private_folder(self.folder) / f"{version}-{number:06d}.parquet", buffer.getvalue().to_pybytes())
        return len(fresh)

    def of(self, version: int) -> pd.DataFrame:
        """Everything that a version has said."""
        try:
            tables: list[pd.DataFrame] = [pq.read_table(path).to_pandas() for path in self._files(version)]
        except (OSError, pa.ArrowException):
            raise SourceFailed(f"a file in {self.folder} is damaged; restore it or delete it") from None
        if not tables:
            empty = pd.DataFrame({name: pd.Series(dtype=object) for name in (*COLUMNS, "scored_at")})
            return empty.assign(index_time=in_utc(empty["index_time"]))
        told = pd.concat(tables, ignore_index=True)
        return told.assign(index_time=in_utc(told["index_time"]))

    def versions(self) -> list[int]:
        """The versions that have said something, in the order in which they did so last."""
        newest = sorted(self._files(), key=lambda path: path.stat().st_mtime_ns)
        return list(dict.fromkeys(self._parts(path)[0] for path in reversed(newest)))[::-1]

    def forget(self, older_than: timedelta, now: datetime | None = None) -> int:
        """Delete files that are older; says how many."""
        oldest = ((now or datetime.now(UTC)) - older_than).timestamp()
        gone = [path for path in self._files() if path.stat().st_mtime < oldest]
        for path in gone:
            path.unlink()
        return len(gone)

    def _files(self, version: int | None = None) -> list[Path]:
        named = [path for path in sorted(self.folder.glob("*.parquet")) if FILE.match(path.name)]
        return [path for path in named if version in (None, self._parts(path)[0])]

    @staticmethod
    def _parts(path: Path) -> tuple[int, int]:
        version, number = path.stem.split("-")
        return int(version), int(number)


def forget_predictions(home: Path, older_than: timedelta, now: datetime | None = None) -> int:
    """Delete the older predictions of every study; says how many files."""
    studies = [folder.name for folder in (home / "predictions").glob("*/")]
    return sum(Predictions(home, study).forget(older_than, now) for study in studies)
