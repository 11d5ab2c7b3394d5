"""Finished tables, CSV or Parquet: their names and form, and folders with one file per site, named after the site."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from spinney.errors import SourceFailed
from spinney.study.settings import Name

NAME_PATTERN = re.compile(TypeAdapter(Name).json_schema()["pattern"])
LONGEST_HEADER = 1 << 20
MISSING_WORDS = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "?", "NULL", "null", "missing", "unknown"]
"""Cells that say nothing. None is not among them: beside words it is an answer, such as `not measured`."""
NO_NUMBER = "none"
"""What is missing, too, in a column of numbers."""
PATIENT_WORDS = ("patient", "patientid", "patientnbr", "subject", "subjectid", "person", "personid", "mrn", "pid", "id")


class TableForm(NamedTuple):
    """The columns of a table, and how its numbers and columns are told apart if it is text."""

    columns: tuple[str, ...]
    separator: str = ","
    decimal: str = "."


def form_of(file: Path) -> TableForm:
    """The form of a CSV or Parquet file; refused if two columns have one name or a quote is not closed."""
    if file.name.lower().endswith(".parquet"):
        try:
            form = TableForm(tuple(pq.read_schema(file).names))
        except (OSError, pa.ArrowException) as error:
            raise SourceFailed(f"{file.name} cannot be read as a table ({type(error).__name__}); mend it") from None
    else:
        form = _csv_form(file)
    check_names(form.columns, file.name)
    return form


def check_names(columns: Iterable[str], where: str) -> None:
    """Two columns of one name, or of names that differ only in case, can't be told apart."""
    twins = [name for name, times in Counter(column.strip().lower() for column in columns).items() if times > 1]
    if twins:
        raise SourceFailed(f"{where}: {', '.join(twins[:5])} is the name of more than one column; rename or drop one")


def _csv_form(file: Path) -> TableForm:
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as content:
            head = content.readline(LONGEST_HEADER).decode("utf-8-sig")
            quotes = head.count('"') + _quotes_in(content)
    except (OSError, EOFError, zlib.error) as error:
        raise SourceFailed(f"{file.name} cannot be read as a table ({type(error).__name__}); mend it") from None
    except UnicodeDecodeError:
        raise SourceFailed(f"{file.name} is not UTF-8: save the file with that encoding") from None
    if quotes % 2:
        raise SourceFailed(f'{file.name}: a quote (") is not closed; close it, or take out the one that is too much')
    separator = next((mark for mark in ";\t|" if mark in head and "," not in head), ",")
    columns = next(csv.reader(io.StringIO(head), delimiter=separator), [])
    return TableForm(
        tuple(columns), separator, "," if separator == ";" else "."
    )  # so write houses with a decimal comma


def _quotes_in(content: io.BufferedIOBase) -> int:
    quotes = 0
    while block := content.read(1 << 20):
        quotes += block.count(b'"')
    return quotes


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
        form = form_of(file)
        table = pd.read_parquet(file) if file.suffix.lower() == ".parquet" else _read_csv(file, form)
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        raise SourceFailed(f"{file.name} cannot be read as a table ({type(error).__name__}); mend it") from None
    table.columns = table.columns.map(lambda name: str(name).strip())
    table = table.apply(_without_none)
    if table.empty:
        raise SourceFailed(f"{file.name} has no rows; fill it or take it out of the folder")
    return table


def _read_csv(file: Path, form: TableForm) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would shift silently
        return pd.read_csv(
            file,
            sep=form.separator,
            decimal=form.decimal,
            na_values=MISSING_WORDS,
            keep_default_na=False,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            encoding="utf-8-sig",
        )


def _without_none(column: pd.Series) -> pd.Series:
    """None is missing where all else are numbers."""
    if column.dtype.kind != "O" or not (none := column.astype(str).str.strip().str.lower() == NO_NUMBER).any():
        return column
    numbers = pd.to_numeric(column.mask(none), errors="coerce")
    return numbers if numbers.notna().equals(column.mask(none).notna()) and numbers.notna().any() else column


def patient_column(columns: Iterable[str]) -> str | None:
    """The column that says whose row it is, judged by its name."""
    by_word = {re.sub(r"[^a-z]", "", column.lower()): column for column in reversed(list(columns))}
    return next((by_word[word] for word in PATIENT_WORDS if word in by_word), None)
