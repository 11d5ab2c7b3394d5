"""A list in a file: an identifier per line, or a column of a table."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TextIO

from pydantic import Field

from spinney.connectors.opt_out.identifiers import Named, listed_name
from spinney.connectors.opt_out.lists import ListContent, Place, PlainList
from spinney.errors import SourceFailed

STOPPED = "nobody is pulled while it can't be read"


class FileList(PlainList):
    """A text file with an identifier per line, or a CSV file."""

    kind: Literal["file"] = "file"
    path: Path = Field(description="Text file with an identifier per line (# begins a remark), or .csv, .csv.gz.")
    column: str | None = Field(None, description="The column of a CSV file that holds the identifiers.")

    def read(self, place: Place) -> ListContent:  # noqa: ARG002
        try:
            raw = self.path.read_bytes()
            text = (gzip.decompress(raw) if self.path.suffix == ".gz" else raw).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SourceFailed(f"{self.title} is not UTF-8; save it with that encoding: {STOPPED}") from None
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise SourceFailed(f"{self.title} can't be read ({why}); mend opt_out in site.yaml: {STOPPED}") from None
        words = self._cells(io.StringIO(text)) if self.column else self._lines(io.StringIO(text))
        return self.said(frozenset(words))

    @property
    def title(self) -> str:
        return f"the list {self.path.name}"

    def _lines(self, text: TextIO) -> Iterator[Named]:
        for number, line in enumerate(text, start=1):
            word = line.strip()
            if not word or word.startswith("#"):
                continue
            if len(word) > 1 and word[0] == word[-1] == '"':
                word = word[1:-1]
            if any(mark in word for mark in ',;\t"') or (self.compare == "exact" and len(word.split()) > 1):
                raise SourceFailed(
                    f"{self.title}, line {number} holds more than one identifier; write one per line, or say in "
                    "`column` which column of the table is meant"
                )
            yield self._listed(word, number)

    def _cells(self, text: TextIO) -> Iterator[Named]:
        from spinney.connectors.tables import form_of

        form = form_of(self.path)
        if self.column not in form.columns:
            raise SourceFailed(f"{self.title} has no column {self.column}; it has {', '.join(form.columns[:20])}")
        at, rows = form.columns.index(self.column), csv.reader(text, delimiter=form.separator, strict=True)
        try:
            for row in rows:
                if rows.line_num == 1 or not row:
                    continue
                if len(row) != len(form.columns):
                    raise SourceFailed(
                        f"{self.title}, line {rows.line_num} has {len(row)} cells instead of {len(form.columns)}; "
                        f"is it whole? {STOPPED}"
                    )
                yield self._listed(row[at], rows.line_num)
        except csv.Error:
            raise SourceFailed(f"{self.title}, line {rows.line_num} is no line of a table; {STOPPED}") from None

    def _listed(self, word: str, number: int) -> Named:
        return listed_name(word, self.system, self.compare, f"{self.title}, line {number}")
