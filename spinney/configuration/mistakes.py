"""What pydantic found wrong with a settings file, in words that say what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from spinney.configuration.yaml_lines import Place
from spinney.study.settings import Name

Schema = Mapping[str, Any]

_WORDS = {
    "missing": "is missing",
    "int_type": "needs a whole number",
    "int_parsing": "needs a whole number",
    "int_from_float": "needs a whole number",
    "float_type": "needs a number",
    "float_parsing": "needs a number",
    "finite_number": "needs a finite number",
    "bool_type": "needs true or false",
    "bool_parsing": "needs true or false",
    "string_type": "needs text; put it in quotes",
    "tuple_type": "needs a list, such as [a, b]",
    "list_type": "needs a list, such as [a, b]",
    "dict_type": "needs lines of the form `key: value`",
    "model_type": "needs lines of the form `key: value`",
    "model_attributes_type": "needs lines of the form `key: value`",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "needs at least {min_length}, has {actual_length}",
    "too_long": "needs at most {max_length}, has {actual_length}",
    "string_too_short": "needs at least {min_length} characters",
    "string_too_long": "needs at most {max_length} characters",
    "string_pattern_mismatch": "does not have the form {pattern}",
    "literal_error": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "union_tag_not_found": "is missing",
}
_NAME = TypeAdapter(Name).json_schema()["pattern"]


def in_words(error: ValidationError, model: type[BaseModel], lines: Mapping[Place, int]) -> Iterator[tuple[int, str]]:
    """Each mistake as its line and one sentence that begins with its place, such as `features[3].range`."""
    schema = model.model_json_schema()
    details = error.errors(include_url=False)
    for detail in details:
        if detail["type"] == "too_short" and any(_is_within(other["loc"], detail["loc"]) for other in details):
            continue  # pydantic does not count items that have mistakes of their own
        place = _place_in_file(detail, lines)
        line = next((lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in lines), 1)
        text = _sentence(detail, schema)
        yield line, f"{_written(place)}: {text}" if place else text


def _sentence(detail: ErrorDetails, schema: Schema) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch" and context["pattern"] == _NAME:
        return "needs a name: a letter first, then up to 63 letters, digits, or any of _ . -"
    if kind == "extra_forbidden":
        known = _keys_at(schema, detail["loc"][:-1])
        return f"unknown key{_suggestion(detail['loc'][-1], known) or _listed(known)}"
    words = _WORDS.get(kind, detail["msg"].replace("Input should be", "must be")).format(**context)
    if kind == "literal_error":
        return words + _suggestion(detail["input"], _quoted(context["expected"]))
    if kind == "union_tag_invalid":
        return words + _suggestion(context["tag"], _quoted(context["expected_tags"]))
    return words


def _quoted(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


def _suggestion(written: object, known: list[str]) -> str:
    close = get_close_matches(str(written), known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _listed(known: list[str]) -> str:
    return f"; known here: {', '.join(known)}" if known else ""


def _place_in_file(detail: ErrorDetails, lines: Mapping[Place, int]) -> Place:
    """A pydantic location without the names of union members, which nobody wrote."""
    place: Place = ()
    for step in detail["loc"]:
        if (*place, step) in lines:
            place = (*place, step)
    if detail["type"] == "missing":
        return (*place, detail["loc"][-1])
    if detail["type"].startswith("union_tag"):
        return (*place, detail["ctx"]["discriminator"].strip("'"))
    return place


def _is_within(inner: Place, outer: Place) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _written(place: Place) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def _keys_at(schema: Schema, loc: Place) -> list[str]:
    """The keys that the model knows at a location."""
    branches = _branches(schema, schema)
    for step in loc:
        below = [branch for parent in branches for branch in _below(parent, step, schema)]
        branches = below or branches  # the name of a union member is no step down
    return sorted({key for branch in branches for key in branch.get("properties", {})})


def _below(parent: Schema, step: str | int, root: Schema) -> list[Schema]:
    child = parent.get("items") if isinstance(step, int) else parent.get("properties", {}).get(step)
    return _branches(child, root) if isinstance(child, Mapping) else []


def _branches(schema: Schema, root: Schema) -> list[Schema]:
    """A schema with references followed and alternatives spread out."""
    if "$ref" in schema:
        return _branches(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    alternatives = [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", [])]
    return [branch for choice in alternatives for branch in _branches(choice, root)] or [schema]
