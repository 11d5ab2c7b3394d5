"""What a source has delivered, without the patients who are left out: before anything is counted.

Files of the source's own are left as they are and copied without these patients; what lies in the vault is replaced.
"""
# ruff: noqa: S608 (SQL made of our own words; file names go through text)

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from spinney.cohort.objections import ObjectionJudge
from spinney.connectors.duck import name, open_bench, text
from spinney.connectors.fhir.http import objects
from spinney.connectors.fhir.shape_sql import GROUP_MEMBERS
from spinney.connectors.fhir.shapes import SHAPES
from spinney.connectors.fhir.shelf import content_of, lines_in
from spinney.connectors.opt_out.identifiers import names_of, plain_id
from spinney.connectors.sources import GROUP, Pulled
from spinney.connectors.tables import form_of
from spinney.errors import SourceFailed
from spinney.storage.files import is_full

PERSON, SUBJECTS = "Patient", sorted({shape.subject for shape in SHAPES.values()})
# what may name a patient in a line of JSON, also where somebody has escaped the slash
NAMES = re.compile(rb'(?:Patient\\?/|urn:uuid:|urn:oid:|"id"\s*:\s*")([^"/|\\]+)')
BARE = re.compile(rb'"reference"\s*:\s*"([^"/|\\:]+)"')
KEPT_OF_GROUPS = {*GROUP_MEMBERS, "type"} - {"member", "quantity"}  # its text may name everybody
ESCAPED = b"\\u"
CSV = "utf-8"


def without_objectors(pulled: Pulled, judge: ObjectionJudge, patient: str | None, vault: Path, work: Path) -> Pulled:
    """The same without those whom the judge leaves out. `patient`: the column of a finished table."""
    if not judge.objections.anybody:
        return pulled
    if judge.objections.systems:
        _describe_all(pulled, judge)
    spare, removed = work / "without", Counter[str]()
    with open_bench(work) as bench:
        files = {
            kind: tuple(
                _copied(bench, path, kind, judge, vault, spare / str(place), removed)
                for place, path in enumerate(paths)
            )
            for kind, paths in pulled.files.items()
        }
        table = pulled.table and _table_without(bench, pulled.table, patient, judge, vault, spare)
    return replace(pulled, files=files, table=table, read={}, held=_held(pulled, judge, removed))


def _copied(
    bench: duckdb.DuckDBPyConnection,
    path: Path,
    kind: str,
    judge: ObjectionJudge,
    vault: Path,
    spare: Path,
    removed: Counter[str],
) -> Path:
    if path.suffix == ".parquet":
        return _parquet_without(bench, path, "patient", judge, vault, spare)
    if kind == GROUP:
        return _members_without(path, judge, vault, spare)
    return _lines_without(path, lambda line: _is_out(line, kind, judge), vault, spare, removed)


def _held(pulled: Pulled, judge: ObjectionJudge, removed: Counter[str]) -> Mapping[str, Mapping[str, int]]:
    """What is told of the source's own files; of a file in which somebody may be who is left out, no count."""
    if not judge.left_out:
        return pulled.held
    read = {path.name: kind for kind, paths in pulled.files.items() for path in paths}
    return {
        name: {kind: count - removed[name] * (kind == read[name]) for kind, count in holds.items()}
        if name in read
        else {}
        for name, holds in pulled.held.items()
    }


def _describe_all(pulled: Pulled, judge: ObjectionJudge) -> None:
    """What the patients of the source are called besides their ids."""
    files = pulled.files.get(PERSON, ())
    if pulled.table is not None or not files or any(path.suffix == ".parquet" for path in files):
        raise SourceFailed(
            "opt_out: a list with a `system` needs a source with FHIR Patient resources, where that identifier is "
            "looked up; list the source's own ids of patients, without `system`"
        )
    for path in files:
        with _opened(path) as lines:
            for line in lines_in(lines):
                content = content_of(line)
                if isinstance(content.get("id"), str):
                    pairs = objects(content.get("identifier"))
                    judge.describe(content["id"], [(str(one.get("system")), str(one.get("value"))) for one in pairs])


def _members_without(path: Path, judge: ObjectionJudge, vault: Path, spare: Path) -> Path:
    """A file of Groups, of which each one that has members who are left out keeps the others and what is read of it."""

    def rest(line: bytes) -> bytes | None:
        content = content_of(line)
        told = content.get("member") or []
        members = objects(told)
        if not content or not isinstance(told, list) or len(members) != len(told):  # who is in it can't be told
            named = [word.decode("utf-8", "surrogateescape") for word in NAMES.findall(line) + BARE.findall(line)]
            return None if sum(judge.out(word) for word in named if _is_named(word, judge)) else line
        staying = [one for one in members if not _is_member_out(one, judge)]
        if len(staying) == len(members):
            return line
        known = {name: content[name] for name in KEPT_OF_GROUPS if name in content}
        return json.dumps(known | ({"member": staying} if staying else {})).encode()

    with _opened(path) as lines:
        if not sum(rest(line) != line for line in lines_in(lines)):
            return path
    target = _target(path, vault, spare)
    with _opened(path) as lines, _written(target) as kept:
        kept.writelines(left + b"\n" for line in lines_in(lines) if (left := rest(line)) is not None)
    return _placed(target, path, vault)


def _is_member_out(member: Mapping[str, Any], judge: ObjectionJudge) -> bool:
    (entity,) = objects([member.get("entity")]) or ({},)
    logical, reference = entity.get("identifier"), entity.get("reference")
    called = isinstance(logical, dict) and judge.knows(str(logical.get("system") or ""), str(logical.get("value")))
    if not isinstance(reference, str) or not reference:
        return called
    is_patient = "/" not in reference or plain_id(reference) != reference.strip()
    return sum((called, is_patient and judge.out(plain_id(reference)))) > 0


def _is_out(line: bytes, kind: str, judge: ObjectionJudge) -> bool:
    """Whether a resource belongs to somebody who is left out; a line that is none, whether it names somebody."""
    named = [word.decode("utf-8", "surrogateescape") for word in NAMES.findall(line) + BARE.findall(line)]
    told = judge.objections
    is_plain = kind != PERSON and ESCAPED not in line and not told.required and not told.systems
    if is_plain and not any(_is_named(word, judge) for word in named):
        return False
    content = content_of(line)
    if not content:
        return any(judge.out(word) for word in named if _is_named(word, judge))
    logical = [one["identifier"] for one in _subjects(content) if isinstance(one.get("identifier"), dict)]
    called = [judge.knows(str(one.get("system") or ""), str(one.get("value"))) for one in logical]
    return sum([*called, *map(judge.out, _people(content, kind))]) > 0


def _is_named(word: str, judge: ObjectionJudge) -> bool:
    return bool(judge.objections.objects & {*names_of(word)})


def _people(content: Mapping[str, Any], kind: str) -> list[str]:
    """The patients to whom a resource belongs."""
    own = content.get("id") if PERSON in (kind, content.get("resourceType")) else None
    references = [one.get("reference") for one in _subjects(content)]
    return [plain_id(one) for one in (own, *references) if isinstance(one, str) and one]


def _subjects(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects([content.get(member) for member in SUBJECTS])


def _lines_without(
    path: Path, is_out: Callable[[bytes], bool], vault: Path, spare: Path, removed: Counter[str]
) -> Path:
    with _opened(path) as lines:
        removed[path.name] = sum(map(is_out, lines_in(lines)))  # all are asked: everybody is counted
    if not removed[path.name]:
        return path
    target = _target(path, vault, spare)
    with _opened(path) as lines, _written(target) as kept:
        kept.writelines(line + b"\n" for line in lines_in(lines) if not is_out(line))
    return _placed(target, path, vault)


def _parquet_without(
    bench: duckdb.DuckDBPyConnection, path: Path, column: str, judge: ObjectionJudge, vault: Path, spare: Path
) -> Path:
    source = f"read_parquet({text(path)})"
    try:
        kinds = {row[0]: row[1] for row in bench.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
        if column not in kinds:
            raise SourceFailed(f"{path.name}: column {column} is missing; it has {', '.join([*kinds][:20])}")
        known = f"CAST({name(column)} AS VARCHAR)"
        people = [row[0] for row in bench.execute(f"SELECT DISTINCT {known} FROM {source}").fetchall()]
        whole = kinds[column] in ("DOUBLE", "FLOAT")  # 17.0 is called 17 on a list
        gone = [who for who in people if who is not None and judge.out(who.removesuffix(".0") if whole else who)]
        if not gone:
            return path
        target = _target(path, vault, spare)
        bench.register("gone", pa.table({"who": pa.array(gone, pa.string())}))
        rows = f"SELECT * FROM {source} WHERE {known} IS NULL OR {known} NOT IN (SELECT who FROM gone)"
        bench.execute(f"COPY ({rows}) TO {text(target)} (FORMAT parquet, COMPRESSION zstd)")
        bench.unregister("gone")
    except duckdb.IOException as error:
        raise SourceFailed(f"{path.name} can't be read ({type(error).__name__}); is it whole?") from None
    return _placed(target, path, vault)


def _table_without(
    bench: duckdb.DuckDBPyConnection, path: Path, column: str | None, judge: ObjectionJudge, vault: Path, spare: Path
) -> Path:
    if column is None:
        raise SourceFailed("opt_out needs to know whose a row is; name patient_column in source of site.yaml")
    if path.suffix == ".parquet":
        return _parquet_without(bench, path, column, judge, vault, spare)
    form = form_of(path)
    if column not in form.columns:
        raise SourceFailed(f"{path.name}: column {column} is missing; it has {', '.join(form.columns[:20])}")
    at, width = form.columns.index(column), len(form.columns)

    def is_out(record: str) -> bool:
        cells = next(csv.reader([record], delimiter=form.separator), [])
        people = cells if len(cells) != width else [cells[at]]  # a broken line may have anybody anywhere
        named = [who for who in people if who.strip()]
        if len(cells) != width:
            return any(_is_named(who, judge) for who in named)
        return sum(map(judge.out, named)) > 0

    try:
        with _opened(path) as content:
            records = _records(content)
            next(records, None)
            if not sum(map(is_out, records)):
                return path
        target = _target(path, vault, spare)
        with _opened(path) as content, _written(target) as kept:
            records = _records(content)
            kept.write(next(records).encode(CSV, "surrogateescape"))
            kept.writelines(one.encode(CSV, "surrogateescape") for one in records if not is_out(one))
    except csv.Error:
        raise SourceFailed(f"{path.name} is no table of text that can be read; is it whole?") from None
    return _placed(target, path, vault)


def _records(content: BufferedIOBase) -> Iterator[str]:
    """Rows of a table of text as they are; one with a quoted line break goes over several lines."""
    record = ""
    for line in content:
        record += line.decode(CSV, "surrogateescape")
        if record.count('"') % 2 == 0:
            yield record
            record = ""
    if record:
        yield record


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as content:
            yield content
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and is_full(error):
            raise
        raise SourceFailed(f"{path.name} can't be read; is it whole?") from None


def _written(path: Path) -> Any:
    return gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb")


def _target(path: Path, vault: Path, spare: Path) -> Path:
    folder = path.parent if path.is_relative_to(vault) else spare
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / (f"without.{path.name}" if path.is_relative_to(vault) else path.name)


def _placed(target: Path, path: Path, vault: Path) -> Path:
    return target.replace(path) if path.is_relative_to(vault) else target
