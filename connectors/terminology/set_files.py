"""The files of a code set: digests, bounds, and which kind of file each of them is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from spinney.errors import StudyInvalid

LARGEST_RESOURCE = 256 * 2**20
TABLES = (".csv", ".tsv", ".txt", ".parquet")

Resource = dict[str, Any]


def set_file(folder: Path, name: str) -> Path:
    """A file of a code set, next to the study."""
    path = folder / name
    if not path.is_file():
        raise StudyInvalid([f"{path}: no such file; it stands in code_sets, so put it there or mend its name"])
    return path


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StudyInvalid([f"{path}: cannot be read ({error.strerror})"]) from None


def is_table(path: Path) -> bool:
    """Whether it is a table by its name; anything else is a FHIR resource."""
    return path.name.lower().endswith(TABLES)


def resource_in(path: Path) -> Resource:
    """The FHIR resource in a JSON file."""
    try:
        if path.stat().st_size > LARGEST_RESOURCE:
            raise StudyInvalid(
                [f"{path.name}: larger than {LARGEST_RESOURCE >> 20} MiB; take the part that the study needs, or CSV"]
            )
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise StudyInvalid([f"{path}: cannot be read ({error.strerror})"]) from None
    except (ValueError, RecursionError):
        raise StudyInvalid([f"{path.name}: neither JSON nor a table called .csv, .tsv or .parquet"]) from None
    if not isinstance(content, dict) or content.get("resourceType") not in ("ValueSet", "CodeSystem"):
        raise StudyInvalid([f"{path.name}: no ValueSet and no CodeSystem; export one of these as FHIR JSON"])
    return content


def objects_in(value: object, what: str) -> list[Resource]:
    """A list of objects, or nothing; StudyInvalid for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise StudyInvalid([f"{what} is no list of objects, as FHIR has it"])
    return value


def text_in(holder: Resource, key: str, what: str) -> str:
    """A text that has to be there."""
    value = holder.get(key)
    if not isinstance(value, str) or not value:
        raise StudyInvalid([f"{what} has no {key}"])
    return value
