"""Resources that nobody here made, through Spinney and the reference: python -m tests.oracle.trial FOLDER [STUDIES].

A folder holds NDJSON (also gzipped), bundles or single resources; each study asks for some of the codes that are in it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.oracle import fhir
from tests.oracle.agreement import differences
from tests.oracle.found import cases

READ = {"Patient", "Medication", *fhir.WHEN}
INDEXES = (
    {"kind": "Encounter", "at": "start"},
    {"kind": "Encounter", "at": "end", "statuses": ["finished"]},
    {"kind": "Observation", "at": "start"},
    {"kind": "Condition", "at": "start"},
    {"kind": "MedicationRequest", "at": "start"},
)


def resources_in(folder: Path) -> list[dict[str, Any]]:
    """Of the types that Spinney reads; whatever a bundle holds, also a bundle in a bundle."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*.*json*")):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = text.splitlines() if ".ndjson" in path.name else [text]
        for line in filter(None, lines):
            found += _unpacked(json.loads(line))
    return [one for one in found if one.get("resourceType") in READ and "id" in one]


def _unpacked(one: Any, url: str = "") -> Iterator[dict[str, Any]]:
    if not isinstance(one, dict):
        return
    if one.get("resourceType") != "Bundle":
        yield {"id": url.removeprefix("urn:uuid:"), **one} if url else one
    for entry in one.get("entry", ()) if one.get("resourceType") == "Bundle" else ():
        yield from _unpacked(entry.get("resource"), entry.get("fullUrl", ""))


def tried(folder: Path, studies: int, indexes: tuple[dict[str, Any], ...] = INDEXES) -> Iterator[tuple[str, list[str]]]:
    """For each study what it was, and where the two differ."""
    resources = resources_in(folder)
    for index in indexes:
        for number, case in enumerate(cases(resources, studies, index)):
            told = case.told()
            words = f"{len(told.ripe)} + {len(told.still_open)} rows, {case.study.label.source.outcome}"
            with TemporaryDirectory() as place:
                yield f"{index['kind']} {index['at']} {number}: {words}", differences(case, Path(place))


if __name__ == "__main__":
    for what, wrong in tried(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2):
        told = [f"{len(wrong)} values differ", *wrong[:5]] if wrong else ["agree"]
        sys.stdout.write("\n  ".join([what, *told]) + "\n")
        sys.stdout.flush()
