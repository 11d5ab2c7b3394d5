"""Resources that are no valid FHIR, found by the models of `fhir.resources` (R4B reads R4), or else as R5."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from spinney.connectors.fhir.shelf import lines_in
from spinney.errors import SourceFailed

Extent = Literal["all", "sample", "none"]


def invalid_ids(
    files: Mapping[str, Sequence[Path]], extent: Extent, sample: int
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Ids that fail validation, and how many were looked at, by kind. A sample is the first so many of each kind.

    Lines that are not JSON or have no id are left to the parser, which puts them into quarantine anyway.
    """
    invalid: dict[str, list[str]] = {}
    looked_at: dict[str, int] = {}
    for kind, paths in files.items() if extent != "none" else ():
        lines = _lines([path for path in paths if path.suffix != ".parquet"])
        for number, line in enumerate(lines):
            if extent == "sample" and number >= sample:
                break
            looked_at[kind] = number + 1
            identifier = _id_if_invalid(kind, line)
            if identifier is not None:
                invalid.setdefault(kind, []).append(identifier)
    return invalid, looked_at


def _id_if_invalid(kind: str, line: bytes) -> str | None:
    from fhir.resources.R4B import get_fhir_model_class  # half a second to load

    if _fits(get_fhir_model_class(kind), line):
        return None
    from fhir.resources import get_fhir_model_class as of_r5

    return None if _fits(of_r5(kind), line) else _id(line)


def _fits(model: Any, line: bytes) -> bool:
    try:
        model.model_validate_json(line)
    except ValueError:  # its text quotes the patient's data, so it goes no further
        return False
    return True


def _id(line: bytes) -> str | None:
    try:
        content = json.loads(line)
        identifier = content.get("id") if isinstance(content, dict) else None
        return str(identifier.encode(), "utf-8") if isinstance(identifier, str) else None
    except (ValueError, RecursionError):  # no JSON, nested without end, or an id that is no text
        return None


def _lines(paths: Sequence[Path]) -> Iterator[bytes]:
    for path in paths:
        try:
            with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
                yield from lines_in(file)
        except (OSError, EOFError, zlib.error):
            raise SourceFailed(f"{path.name} can't be read; is it whole?") from None
