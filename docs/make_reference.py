"""Write docs/reference.md from the models of the settings files; with --check only say whether it is true."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spinney.configuration.house import CoordinatorSettings
from spinney.configuration.site import SiteSettings
from spinney.study.study import Study

PAGE = Path(__file__).with_name("reference.md")
FILES = {"study.yaml": Study, "site.yaml": SiteSettings, "coordinator.yaml": CoordinatorSettings}
HEAD = """# Settings

Every key of the three settings files, as the code reads them. A key that is not here is an error, and the error
names the line and the nearest key. Keys in **bold** have to be there.
<!-- written by docs/make_reference.py from the pydantic models; `make docs` writes it again -->
"""
LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
}


def page() -> str:
    """The whole page."""
    schemas = {file: model.model_json_schema() for file, model in FILES.items()}
    return "\n".join([HEAD, *(line for file, schema in schemas.items() for line in _file(file, schema))])


def _file(file: str, schema: dict[str, Any]) -> Iterator[str]:
    yield from _table(f"## {file}", schema, file)
    for name, section in sorted(schema.get("$defs", {}).items()):
        if "properties" in section:
            yield from _table(f"### {name}", section, file)


def _table(title: str, schema: dict[str, Any], file: str) -> Iterator[str]:
    suffix = "" if title.startswith("## ") else f" {{#{file.partition('.')[0]}-{title.removeprefix('### ').lower()}}}"
    yield f"{title}{suffix}\n"
    if schema.get("description"):
        yield f"{_plain(schema['description'])}\n"
    yield "| key | value | default | |\n|---|---|---|---|"
    needed = schema.get("required", [])
    for key, about in schema["properties"].items():
        name = f"**`{key}`**" if key in needed else f"`{key}`"
        yield f"| {name} | {_kind(about, file)} | {_default(about)} | {_plain(about.get('description', ''))} |"
    yield ""


def _kind(about: dict[str, Any], file: str) -> str:
    """What may be written there, in words; other sections as links."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{file.partition('.')[0]}-{name.lower()})"
    if "const" in about:
        return f"`{about['const']}`"
    if "enum" in about:
        return ", ".join(f"`{one}`" for one in about["enum"])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in about:
            kinds = [_kind(one, file) for one in about[several] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    return ", ".join([_plain_kind(about, file), *_limits(about)])


def _plain_kind(about: dict[str, Any], file: str) -> str:
    kind = about.get("type", "anything")
    if kind == "array" and "prefixItems" in about:
        return "[" + ", ".join(_kind(one, file) for one in about["prefixItems"]) + "]"
    if kind == "array":
        return f"list of {_kind(about['items'], file)}" if "items" in about else "list"
    if kind == "object" and isinstance(about.get("additionalProperties"), dict):
        return f"name: {_kind(about['additionalProperties'], file)}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "section"}
    return {**words, "path": "path", "date": "day"}.get(about.get("format", ""), words.get(kind, kind))


def _limits(about: dict[str, Any]) -> Iterator[str]:
    for limit, words in LIMITS.items():
        if limit in about:
            yield words.format(about[limit])


def _default(about: dict[str, Any]) -> str:
    if "default" not in about or about["default"] in (None, "", [], {}):
        return ""
    default = about["default"]
    if isinstance(default, dict):
        return "as below"
    words = {True: "true", False: "false"}.get(default) if isinstance(default, bool) else None
    return f"`{words or default}`"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else "docs/reference.md is old; run: make docs")
    PAGE.write_text(page(), encoding="utf-8")
