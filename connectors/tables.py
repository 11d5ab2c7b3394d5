"""Finished tables in a folder: one CSV or Parquet file per site, named after the site."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter

from spinney.errors import SourceFailed
from spinney.settings import Name

NAME_PATTERN = re.compile(TypeAdapter(Name).json_schema()["pattern"])
MISSING_WORDS = ["?", "NULL", "null", "missing", "unknown"]
PATIENT_WORDS = ("patient", "patientid", "patientnbr", "subject", "subjectid", "person", "personid", "mrn", "pid", "id")


def read_tables(folder: str | Path) -> dict[str, pd.DataFrame]:
    """The table of every site, by the site's name, in the order of the names."""
    directory = Path(folder)
    if not directory.is_dir():
        raise SourceFailed(f"{folder} is not a folder; give one with a CSV or Parquet file per site")
    files: dict[str, Path] = {}
    for file in sorted(directory.iterdir()):
        if file.suffix.lower() not in {".csv", ".parquet"} or not file.is_file() or file.name.startswith("."):
            continue
        if not NAME_PATTERN.fullmatch(file.stem):
            raise SourceFailed(
                f"{file.name}: a site's name is letters, digits, _ . or -, a letter first; rename the file"
            )
        if file.stem in files:
            raise SourceFailed(
                f"{files[file.stem].name} and {file.name} are both the site {file.stem}; keep one of them"
            )
        files[file.stem] = file
    if not files:
        raise SourceFailed(f"{folder} holds no CSV or Parquet file; put one in per site, such as north.csv")
    return {site: read_table(files[site]) for site in sorted(files)}


def read_table(file: Path) -> pd.DataFrame:
    """One table. A library's error may quote a patient's values, so only its kind is told."""
    try:
        table = pd.read_parquet(file) if file.suffix.lower() == ".parquet" else _read_csv(file)
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        raise SourceFailed(f"{file.name} cannot be read as a table ({type(error).__name__}); mend it") from None
    table.columns = table.columns.map(lambda name: str(name).strip())
    if table.empty:
        raise SourceFailed(f"{file.name} has no rows; fill it or take it out of the folder")
    return table


def _read_csv(file: Path) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would shift silently
        return pd.read_csv(
            file,
            na_values=MISSING_WORDS,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            encoding="utf-8-sig",
        )


def patient_column(columns: Iterable[str]) -> str | None:
    """The column that says whose row it is, judged by its name."""
    by_word = {re.sub(r"[^a-z]", "", column.lower()): column for column in reversed(list(columns))}
    return next((by_word[word] for word in PATIENT_WORDS if word in by_word), None)
