"""A small FHIR R4 server over HTTP for a folder of NDJSON files: searches with filters, totals, sorting and pages.

It is there for the demo and for tests. It reads its folder once, listens on 127.0.0.1 only and knows no credentials.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlsplit

PARAMETERS = {
    "Patient": (),
    "Encounter": ("type", "date"),
    "Observation": ("code", "combo-code", "date"),
    "Condition": ("code",),
    "MedicationRequest": ("code", "authoredon"),
}
CODES, DATES = frozenset({"code", "combo-code", "type"}), frozenset({"date", "authoredon"})
EVERYWHERE = frozenset({"_count", "_sort", "_total", "_summary", "_lastUpdated", "_cursor"})
LARGEST_PAGE = 1000
Json = dict[str, Any]


class BadSearch(Exception):
    """A search that this server does not understand."""


@dataclass(frozen=True, slots=True)
class Served:
    """One resource as it lies in its file, and what searches ask about it."""

    updated: str
    id: str
    start: str
    end: str
    codes: frozenset[str]
    line: bytes


class DemoFhirServer:
    """`with FhirServer(folder) as server:` then it answers at `server.base_url`."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.store = {kind: _read(folder / f"{kind}.ndjson", kind) for kind in PARAMETERS}
        self.matches = lru_cache(maxsize=16)(self._matches)
        self._server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"fhir": self}))
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/fhir"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def capabilities(self) -> Json:
        resources = [
            {
                "type": kind,
                "interaction": [{"code": "search-type"}],
                "searchParam": [{"name": name, "type": "date" if name in DATES else "token"} for name in names],
            }
            for kind, names in PARAMETERS.items()
        ]
        return {
            "resourceType": "CapabilityStatement",
            "status": "active",
            "date": "2024-01-01",
            "kind": "instance",
            "fhirVersion": "4.0.1",
            "format": ["json"],
            "implementation": {"description": "Made-up patients"},
            "rest": [{"mode": "server", "resource": resources}],
        }

    def search(self, kind: str, asked: list[tuple[str, str]]) -> bytes:
        """A page of a search as a Bundle."""
        known = EVERYWHERE | set(PARAMETERS[kind])
        for name, _ in asked:
            if name not in known:
                raise BadSearch(f"{kind} has no search parameter {name[:40]}")
        options = dict(asked)
        filters = tuple((name, value) for name, value in asked if name not in EVERYWHERE or name == "_lastUpdated")
        found = self.matches(kind, filters)
        if options.get("_summary") == "count":
            return _bundle(len(found), (), "")
        start, count = _number(options, "_cursor", 0), min(_number(options, "_count", 100), LARGEST_PAGE)
        page = found[start : start + count]
        following = ""
        if start + count < len(found):
            rest = [(name, value) for name, value in asked if name != "_cursor"] + [("_cursor", str(start + count))]
            following = f"{self.base_url}/{kind}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in rest)
        return _bundle(len(found), page, following)

    def _matches(self, kind: str, filters: tuple[tuple[str, str], ...]) -> list[Served]:
        tests = [_test(name, value) for name, value in filters]
        return [entry for entry in self.store[kind] if all(test(entry) for test in tests)]


def _read(path: Path, kind: str) -> list[Served]:
    """The resources of a file by the time of their last update."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        return sorted(
            (_entry(line.strip(), kind) for line in file if line.strip()), key=lambda one: (one.updated, one.id)
        )


def _entry(line: bytes, kind: str) -> Served:
    content = json.loads(line)
    period = content.get("period", {})
    start = content.get("effectiveDateTime") or content.get("authoredOn") or period.get("start", "")
    end = period.get("end", "9999") if kind == "Encounter" else start
    concepts = [content.get("code"), content.get("medicationCodeableConcept"), *content.get("type", ())]
    concepts += [part.get("code") for part in content.get("component", ())]
    codes = frozenset(
        f"{coding.get('system', '')}|{coding.get('code', '')}"
        for concept in concepts
        if concept
        for coding in concept.get("coding", ())
    )
    return Served(content["meta"]["lastUpdated"], content["id"], start, end, codes, line)


def _test(name: str, value: str) -> Callable[[Served], bool]:
    if name in CODES:
        wanted = {re.sub(r"\\(.)", r"\1", code) for code in re.split(r"(?<!\\),", value)}
        return lambda entry: not wanted.isdisjoint(entry.codes)
    prefix, moment = value[:2], _plain(value[2:])
    if prefix not in ("ge", "le"):
        raise BadSearch(f"{name} needs ge or le")
    if name == "_lastUpdated":
        return lambda entry: entry.updated >= moment if prefix == "ge" else entry.updated <= moment
    return lambda entry: entry.end >= moment if prefix == "ge" else bool(entry.start) and entry.start <= moment


def _plain(moment: str) -> str:
    """Moments here are in UTC to the second, so that texts compare as times do."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(T\d\d:\d\d:\d\d)?(?:\.\d+)?Z?", moment)
    if found is None:
        raise BadSearch("moments are written like 2024-01-31T12:00:00Z here")
    return f"{found[1]}{found[2] or 'T00:00:00'}Z"


def _number(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or len(text) > 9:
        raise BadSearch(f"{name} is a whole number")
    return int(text)


def _bundle(total: int, page: Any, following: str) -> bytes:
    link = json.dumps([{"relation": "next", "url": following}] if following else []).encode()
    entries = b",".join(b'{"resource":' + entry.line + b',"search":{"mode":"match"}}' for entry in page)
    head = f'{{"resourceType":"Bundle","type":"searchset","total":{total},'.encode()
    return head + b'"link":' + link + b',"entry":[' + entries + b"]}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # clients may leave as they like
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    fhir: DemoFhirServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        folder, _, kind = address.path.rpartition("/")
        if folder != "/fhir" or kind not in {*PARAMETERS, "metadata"}:
            self._answer(404, _outcome("not-found", "no such resource type"))
        elif kind == "metadata":
            self._answer(200, json.dumps(self.fhir.capabilities()).encode())
        else:
            try:
                self._answer(200, self.fhir.search(kind, parse_qsl(address.query, keep_blank_values=True)))
            except BadSearch as reason:
                self._answer(400, _outcome("invalid", str(reason)))

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/fhir+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it, and addresses hold codes."""


def _outcome(code: str, words: str) -> bytes:
    issue = {"severity": "error", "code": code, "diagnostics": words}
    return json.dumps({"resourceType": "OperationOutcome", "issue": [issue]}).encode()
