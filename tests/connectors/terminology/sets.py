"""Small made-up value sets, code systems and tables, and what a code set of them means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spinney.connectors.terminology.resolve import resolve
from spinney.study.codes import CodeSet

SCT = "http://snomed.info/sct"
ICD = "http://hl7.org/fhir/sid/icd-10"
OWN = "http://house.example/codes"

Words = dict[str, Any]


def value_set(
    url: str = "http://sets.example/a", *include: Words, exclude: list[Words] | None = None, **more: Any
) -> Words:
    compose: Words = {"include": [*include], **({"exclude": exclude} if exclude else {})}
    return {"resourceType": "ValueSet", "url": url, "compose": compose, **more}


def codes(system: str, *words: str, **more: Any) -> Words:
    return {"system": system, "concept": [{"code": word} for word in words], **more}


def by_filter(system: str, *filters: tuple[str, str, str], **more: Any) -> Words:
    named = [dict(zip(("property", "op", "value"), one, strict=True)) for one in filters]
    return {"system": system, "filter": named, **more}


def code_system(*concepts: Words, url: str = OWN, **more: Any) -> Words:
    return {"resourceType": "CodeSystem", "url": url, "content": "complete", "concept": [*concepts], **more}


def concept(code: str, *below: Words, **properties: Any) -> Words:
    kinds = {str: "valueCode", bool: "valueBoolean", int: "valueInteger"}
    told = [
        {"code": name, kinds[type(one)]: one}
        for name, value in properties.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return {"code": code, **({"concept": [*below]} if below else {}), **({"property": told} if told else {})}


def meaning(folder: Path, *files: Words | str, below: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """What a code set of these files means; a text is a CSV file."""
    names = []
    for place, one in enumerate(files):
        name = f"{place}.csv" if isinstance(one, str) else f"{place}.json"
        (folder / name).write_text(one if isinstance(one, str) else json.dumps(one))
        names.append(name)
    return dict(resolve("it", CodeSet(files=tuple(names), descendants_of=below), folder).codes)
