"""Code sets and their files: what the sets mean is written into the study, and other files are noticed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from spinney.configuration.study_file import LARGEST_FILE, pinned_lines, raw_study, read_study
from spinney.configuration.yaml_lines import YamlDocument, parse
from spinney.errors import StudyInvalid
from spinney.storage.files import write_whole
from spinney.study.codes import CodeSets, Pinned, PinnedSet
from spinney.study.study import Study

MEANING = "# What the code sets mean, for every site: written by spinney study pin, not by hand."


def pin(path: Path) -> tuple[Study, tuple[str, ...]]:
    """Write what the code sets of a study mean into its file; the study, and the sets that changed.

    Everything else in the file stays as it is, comments included. A study that is pinned already is left alone.
    """
    from spinney.connectors.terminology.resolve import resolve  # brings DuckDB

    text, document = raw_study(path)
    sets = _sets(path, document)
    mistakes: list[str] = []
    pinned: Pinned = {}
    for name, one in sets.items():
        try:
            pinned[name] = resolve(name, one, path.resolve().parent)
        except StudyInvalid as error:
            line = document.lines.get(("code_sets", name), 1)
            mistakes += [f"{path}:{line} {mistake}" for mistake in error.mistakes]
    if mistakes:
        raise StudyInvalid(mistakes)
    before = _pinned(document)
    changed = tuple(
        name for name in (*pinned, *(before.keys() - pinned.keys())) if pinned.get(name) != before.get(name)
    )
    if changed:
        _write(path, text, document, pinned)
    return read_study(path), changed


def _sets(path: Path, document: YamlDocument) -> CodeSets:
    if document.mistakes or not isinstance(document.data, dict):
        read_study(path)  # says all that is wrong
    try:
        return TypeAdapter(CodeSets).validate_python(document.data.get("code_sets") or {})
    except ValidationError:
        read_study(path)
        raise


def _pinned(document: YamlDocument) -> dict[str, PinnedSet]:
    """What is pinned already, as far as it can be read: what was written by hand is written anew."""
    found: dict[str, PinnedSet] = {}
    written = document.data.get("pinned")
    for name, one in written.items() if isinstance(written, dict) else ():
        try:
            found[str(name)] = PinnedSet.model_validate(one)
        except ValidationError:
            continue
    return found


def _write(path: Path, text: str, document: YamlDocument, pinned: Mapping[str, PinnedSet]) -> None:
    lines = text.splitlines(keepends=True)
    start, end = _place(text, lines)
    body = pinned_lines(pinned) + "\n" if pinned else ""
    if body and start == len(lines):
        body = ("" if text.endswith("\n") else "\n") + f"\n{MEANING}\n{body}"
    new = "".join(lines[:start]) + body + "".join(lines[end:])
    if len(new.encode()) > LARGEST_FILE:
        raise StudyInvalid(
            [f"{path}: with all codes of its sets it would be larger than {LARGEST_FILE // 1_000_000} MB"]
        )
    if _others(parse(new).data) != _others(document.data):
        raise StudyInvalid(
            [f"{path}: `pinned` can't be written into a file of this form; put every key in a line of its own"]
        )
    mode = path.stat().st_mode & 0o777
    write_whole(path, new.encode())
    path.chmod(mode)


def _place(text: str, lines: list[str]) -> tuple[int, int]:
    """From which line to which `pinned` goes; without one behind the last."""
    root = yaml.compose(text, yaml.SafeLoader)
    keys = [key for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []
    here = next((place for place, key in enumerate(keys) if key.value == "pinned"), None)
    if here is None:
        return len(lines), len(lines)
    start = keys[here].start_mark.line
    end = keys[here + 1].start_mark.line if here + 1 < len(keys) else len(lines)
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1  # what stands before the next key belongs to it
    return start, end


def _others(data: Any) -> Any:
    return {key: value for key, value in data.items() if key != "pinned"} if isinstance(data, dict) else data
