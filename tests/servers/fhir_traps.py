"""A small FHIR server over real HTTP that plays the traps met on real ones: search, Bulk Data export and SMART tokens.

Everything is honest until a trap is set: `with FhirTraps(resources) as server: server.totals = "wrong"`. What it was
asked is in `server.requests`.
"""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

import jwt

Json = dict[str, Any]
DATES = {"Observation": "effectiveDateTime", "MedicationRequest": "authoredOn"}


@dataclass
class Stumble:
    """The next answers to matching requests: a status instead of what was asked for."""

    path: str
    status: int
    retry_after: str | None = None
    times: int = 1
    skip: int = 0


@dataclass
class Asked:
    """One request that came in."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    length: int


@dataclass
class FhirTraps:
    """The server and its traps."""

    resources: Iterable[Json] = ()
    parameters: tuple[str, ...] = ("combo-code", "code", "date", "authoredon", "vaccine-code")

    tls: ssl.SSLContext | None = None
    plays: bytes | None = None  # answers this to everything, as a login page or another service would

    # traps of the search
    stumbles: list[Stumble] = field(default_factory=list)
    most_unsorted: int | None = None  # beyond this offset an unsorted search's own `next` answers 400
    next_fails_at: int | None = None  # the link to this offset answers 400, sorted or not
    next_host: str | None = None
    next_circles: bool = False
    never_ends: bool = False  # every page of a search, and of a manifest, is empty and has a next one
    tells_totals: bool = True
    counts: bool = True  # accepts _summary=count
    miscounts_by: int = 0
    includes: bool = False  # every page repeats what its entries refer to
    late: list[Json] = field(default_factory=list)  # one of these arrives with every page
    pages_by_offset: bool = False
    updates: list[str] = field(default_factory=list)  # one of these ids is updated with every page

    # traps of the authorisation
    keys: dict[str, Any] = field(default_factory=dict)  # kid -> public key; empty: no token is needed
    requests_per_token: int | None = None
    lives: int = 300
    algorithms: tuple[str, ...] = ("RS384", "ES384")
    clients: dict[str, str] = field(default_factory=dict)  # id -> secret; with keys or clients a token is needed
    methods: tuple[str, ...] | None = ("client_secret_basic", "client_secret_post")
    scopes: tuple[str, ...] = ()  # those that a client may ask for; empty: any
    token_answer: Json = field(default_factory=dict)  # written over what the token endpoint answers

    # traps of the export
    polls: int = 1
    poll_after: str | None = "1"
    lines_per_file: int = 1000
    cut_after: int | None = None  # bytes after which the first download of every file breaks
    cuts_per_file: int = 1
    ranges: bool = True
    silent_cut: bool = False  # ends the first download of every file early, without an error
    since: bool = True
    type_filter: bool = True
    tells_time: bool = True
    wrong_count: bool = False
    counted: bool = True
    truncated: bool = False  # every file ends in the middle of a line, every time
    calls: dict[str, str] = field(default_factory=dict)  # type -> what the manifest calls it
    expired_links: int = 0  # so many downloads answer 404
    deletable: bool = True
    needs_token: bool = False
    files_host: str | None = None
    packing: str = ""  # how files are packed that nobody asked to be packed
    swells: bool = False  # the first line of every file is followed by megabytes of blanks
    token_host: str | None = None
    errors: list[Json] = field(default_factory=list)
    deleted: list[str] | None = None
    transaction_time: str = "2026-01-01T00:00:00.000Z"

    def __enter__(self) -> Self:
        self.requests: list[Asked] = []
        self.store: dict[str, dict[str, Json]] = {}
        self.exports: dict[str, Json] = {}
        self.tokens: dict[str, int] = {}
        self.jtis: set[str] = set()
        self.forms: list[dict[str, str]] = []
        self.downloads: dict[str, int] = {}
        self.lock = threading.Lock()
        for resource in self.resources:
            self.put(resource)
        handler = type("Handler", (self.handler(),), {"traps": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        if self.tls:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.origin = f"http{'s' if self.tls else ''}://127.0.0.1:{self._server.server_port}"
        self.base_url = f"{self.origin}/fhir"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handler(self) -> type[Handler]:
        """Who answers; a server that can do more has its own."""
        return Handler

    def put(self, resource: Json) -> None:
        of_kind = self.store.setdefault(resource["resourceType"], {})
        of_kind.pop(resource["id"], None)  # sorted by lastUpdated, what is new comes last
        of_kind[resource["id"]] = resource

    def asked(self, ending: str) -> list[Asked]:
        return [one for one in self.requests if one.path.endswith(ending)]

    def stumble(self, path: str) -> Stumble | None:
        for one in self.stumbles:
            if one.path in path and one.skip:
                one.skip -= 1
            elif one.path in path and one.times:
                one.times -= 1
                return one
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # clients may leave as they like
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    traps: FhirTraps

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = parse_qs(url.query)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.traps.lock:
            self.traps.requests.append(Asked(method, url.path, query, headers, len(self.path)))
            stumble = self.traps.stumble(url.path)
            if stumble is not None:
                extra = {"Retry-After": stumble.retry_after} if stumble.retry_after else {}
                return self._json({"resourceType": "OperationOutcome"}, stumble.status, extra)
            if self.traps.plays is not None:
                return self._bytes(self.traps.plays, 200, {})
            return self._route(method, url.path, query, body)

    def _route(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> None:
        if path == "/fhir/metadata":
            return self._json(self._capabilities())
        if path == "/fhir/.well-known/smart-configuration":
            algorithms = list(self.traps.algorithms)
            token = {"token_endpoint": f"{self.traps.token_host or self.traps.origin}/token"}
            if self.traps.methods is not None:
                token["token_endpoint_auth_methods_supported"] = list(self.traps.methods)
            return self._json({**token, "token_endpoint_auth_signing_alg_values_supported": algorithms})
        if path == "/token":
            form = dict(parse_qsl(body.decode()))
            self.traps.forms.append(form)
            return self._token(form) if "client_assertion" in form else self._token_of_client(form)
        if path.startswith("/files/"):
            return self._file(path.removeprefix("/files/"))
        if not self._known():
            return self._json({"resourceType": "OperationOutcome"}, 401)
        if path.endswith("/$export"):
            return self._kick_off(query)
        if path.startswith("/exports/"):
            return self._export(method, path.removeprefix("/exports/"))
        if path.startswith("/fhir/") and "/" not in path.removeprefix("/fhir/"):
            return self._search(path.removeprefix("/fhir/"), query)
        return self._json({"resourceType": "OperationOutcome"}, 404)

    def _json(self, content: Json, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._bytes(json.dumps(content).encode(), status, {"Content-Type": "application/fhir+json", **(headers or {})})

    def _bytes(self, body: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _capabilities(self) -> Json:
        parameters = [{"name": name} for name in self.traps.parameters]
        kinds = [{"type": kind, "searchParam": parameters} for kind in self.traps.store]
        return {"resourceType": "CapabilityStatement", "fhirVersion": "4.0.1", "rest": [{"resource": kinds}]}

    # authorisation

    def _known(self) -> bool:
        if not self.traps.keys and not self.traps.clients:
            return True
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        left = self.traps.tokens.get(token, 0)
        self.traps.tokens[token] = left - 1
        return left > 0

    def _token(self, form: dict[str, str]) -> None:
        assertion = form.get("client_assertion", "")
        try:
            key = self.traps.keys[str(jwt.get_unverified_header(assertion).get("kid"))]
            algorithms = list(self.traps.algorithms)
            claims = jwt.decode(assertion, key, algorithms=algorithms, audience=f"{self.traps.origin}/token")
            assert claims["iss"] == claims["sub"]
            assert claims["jti"] not in self.traps.jtis
        except (jwt.PyJWTError, KeyError, AssertionError):
            return self._json({"error": "invalid_client", "error_description": "secret text"}, 400)
        self.traps.jtis.add(claims["jti"])
        return self._grant()

    def _token_of_client(self, form: dict[str, str]) -> None:
        """https://www.rfc-editor.org/rfc/rfc6749: 2.3.1 (who), 4.4.2 (what is asked), 5.1 and 5.2 (the answers)."""
        kind, _, pair = self.headers.get("Authorization", "").partition(" ")
        told = base64.b64decode(pair).decode().split(":", 1) if kind == "Basic" else []
        in_header = [unquote_plus(word) for word in told]
        in_form = [form[name] for name in ("client_id", "client_secret") if name in form]
        method = "client_secret_basic" if in_header else "client_secret_post"
        if in_header and len(in_form) == 2:
            return self._json({"error": "invalid_request"}, 400)  # one way at a time
        who = in_header or in_form
        known = len(who) == 2 and self.traps.clients.get(who[0]) == who[1]
        if not known or (self.traps.methods is not None and method not in self.traps.methods):
            challenge = {"WWW-Authenticate": "Basic"} if in_header else {}
            return self._json({"error": "invalid_client", "error_description": "secret text"}, 401, challenge)
        if form.get("grant_type") != "client_credentials":
            return self._json({"error": "unsupported_grant_type"}, 400)
        if self.traps.scopes and form.get("scope") not in self.traps.scopes:
            return self._json({"error": "invalid_scope", "error_description": "secret text"}, 400)
        return self._grant()

    def _grant(self) -> None:
        token = f"token-{len(self.traps.tokens) + 1}"
        self.traps.tokens[token] = self.traps.requests_per_token or 10**9
        granted = {"access_token": token, "token_type": "bearer", "expires_in": self.traps.lives}
        never_kept = {"Cache-Control": "no-store", "Pragma": "no-cache"}
        return self._json(granted | self.traps.token_answer, 200, never_kept)

    # search

    def _search(self, kind: str, query: dict[str, list[str]]) -> None:
        traps, first = self.traps, {name: values[0] for name, values in query.items()}
        matches = [one for one in traps.store.get(kind, {}).values() if _matches(one, kind, query)]
        total = len(matches) + traps.miscounts_by
        offset, size = int(first.get("_offset", 0)), int(first.get("_count", 50))
        counting = first.get("_summary") == "count"
        if (counting and not traps.counts) or (not counting and self._breaks("_sort" in first, offset)):
            return self._json({"resourceType": "OperationOutcome"}, 400)
        if counting:
            return self._json({"resourceType": "Bundle", "type": "searchset", "total": total})
        begin = offset
        if "_after" in first and not traps.pages_by_offset:
            begin = [one["id"] for one in matches].index(first["_after"]) + 1
        page = [] if traps.never_ends else matches[begin : begin + size]
        bundle: Json = {"resourceType": "Bundle", "type": "searchset", "entry": self._entries(page)}
        if traps.tells_totals and first.get("_total") == "accurate":
            bundle["total"] = total
        if begin + len(page) < len(matches) or traps.never_ends:
            following = {**first, "_offset": str(offset + size), **({"_after": page[-1]["id"]} if page else {})}
            address = f"{traps.next_host or traps.origin}/fhir/{kind}?{urlencode(following)}"
            bundle["link"] = [{"relation": "next", "url": self.path if traps.next_circles else address}]
        self._json(bundle)
        return self._time_goes_by(kind)

    def _breaks(self, is_sorted: bool, offset: int) -> bool:
        most = self.traps.next_fails_at if is_sorted else self.traps.most_unsorted
        return most is not None and offset >= most

    def _entries(self, page: list[Json]) -> list[Json]:
        links = [link for one in page for link in (one.get("subject", {}), *one.get("hasMember", []))]
        named = sorted({link.get("reference", "") for link in links}) if self.traps.includes else []
        stored = (self.traps.store.get(kind, {}).get(id) for kind, _, id in (name.partition("/") for name in named))
        return [{"resource": one, "search": {"mode": "match"}} for one in page] + [
            {"resource": one, "search": {"mode": "include"}} for one in stored if one
        ]

    def _time_goes_by(self, kind: str) -> None:
        """What other clients do between two pages."""
        if self.traps.late:
            self.traps.put(self.traps.late.pop(0))
        if self.traps.updates:
            old = self.traps.store[kind][self.traps.updates.pop(0)]
            self.traps.put({**old, "meta": {"lastUpdated": "2026-06-01T00:00:00Z"}})

    # export

    def _kick_off(self, query: dict[str, list[str]]) -> None:
        traps = self.traps
        if ("_since" in query and not traps.since) or ("_typeFilter" in query and not traps.type_filter):
            return self._json({"resourceType": "OperationOutcome"}, 400)
        name = f"e{sum(one.path.endswith('/$export') for one in traps.requests)}"
        kinds = query.get("_type", [",".join(traps.store)])[0].split(",")
        since = query.get("_since", [""])[0]
        files = {kind: _newer(traps.store.get(kind, {}).values(), since) for kind in kinds}
        traps.exports[name] = {"polls": traps.polls, "files": files, "since": since}
        return self._bytes(b"", 202, {"Content-Location": f"{traps.origin}/exports/{name}"})

    def _export(self, method: str, name: str) -> None:
        traps, export = self.traps, self.traps.exports.get(name)
        if export is None:
            return self._json({}, 404)
        if method == "DELETE":
            if traps.deletable:
                del traps.exports[name]
            return self._bytes(b"", 202 if traps.deletable else 500, {})
        if export["polls"] > 0:
            export["polls"] -= 1
            extra = {"Retry-After": traps.poll_after} if traps.poll_after else {}
            return self._bytes(b"", 202, {"X-Progress": "working, 50%", **extra})
        manifest = self._manifest(name, export)
        if traps.never_ends:
            following = {"relation": "next", "url": f"{traps.origin}/exports/{name}?page={len(traps.requests)}"}
            manifest |= {"output": [], "link": [following]}
        return self._json(manifest)

    def _manifest(self, name: str, export: Json) -> Json:
        traps = self.traps
        host = traps.files_host or traps.origin
        manifest: Json = {"requiresAccessToken": traps.needs_token, "output": [], "error": []}
        if traps.tells_time:
            manifest["transactionTime"] = traps.transaction_time
        for kind, found in export["files"].items():
            for start in range(0, len(found), traps.lines_per_file):
                item: Json = {"type": traps.calls.get(kind, kind), "url": f"{host}/files/{name}/{kind}/{start}"}
                if traps.counted:
                    item["count"] = len(found[start : start + traps.lines_per_file]) + traps.wrong_count
                manifest["output"].append(item)
        if traps.errors:
            manifest["error"].append({"type": "OperationOutcome", "url": f"{host}/files/{name}/error/0"})
        if traps.deleted is not None:
            manifest["deleted"] = [{"type": "Bundle", "url": f"{host}/files/{name}/deleted/0"}]
        return manifest

    def _file(self, path: str) -> None:
        traps = self.traps
        name, section, start = path.split("/")
        if traps.needs_token and not self._known():
            return self._json({}, 401)
        if name not in traps.exports or traps.expired_links > 0:
            traps.expired_links -= 1
            return self._json({}, 404)
        if section == "error":
            lines = traps.errors
        elif section == "deleted":
            entries = [{"request": {"method": "DELETE", "url": url}} for url in traps.deleted or []]
            lines = [{"resourceType": "Bundle", "type": "transaction", "entry": entries}]
        else:
            lines = traps.exports[name]["files"][section][int(start) : int(start) + traps.lines_per_file]
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return self._send_file(path, body[:-20] if traps.truncated else body)

    def _send_file(self, path: str, body: bytes) -> None:
        traps = self.traps
        begun = traps.downloads[path] = traps.downloads.get(path, 0) + 1
        headers, status, wanted = {"Content-Type": "application/fhir+ndjson"}, 200, self.headers.get("Range")
        if traps.swells:
            body += b" " * (8 << 20) + b"\n"
        if traps.packing:
            headers["Content-Encoding"], body = traps.packing, gzip.compress(body)
        if wanted and traps.ranges:
            first = int(wanted.removeprefix("bytes=").removesuffix("-"))
            headers["Content-Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
            status, body = 206, body[first:]
        if traps.silent_cut and begun == 1:
            body = body[: len(body) // 2 - 3]
        if traps.cut_after is None or begun > traps.cuts_per_file:
            return self._bytes(body, status, headers)
        self.send_response(status)
        for header, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body[: traps.cut_after])
        self.wfile.flush()
        self.close_connection = True
        return None


def _newer(resources: Iterable[Json], since: str) -> list[Json]:
    return [one for one in resources if _updated(one) > _instant(since)] if since else list(resources)


def _updated(resource: Json) -> datetime:
    return _instant(resource.get("meta", {}).get("lastUpdated", "2020-01-01T00:00:00Z"))


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _matches(resource: Json, kind: str, query: dict[str, list[str]]) -> bool:
    for value in query.get("_lastUpdated", []):
        if _updated(resource) < _instant(value.removeprefix("ge")):
            return False
    for value in query.get("date", []) + query.get("authoredon", []):
        when = _instant(resource[DATES[kind]])
        if (value.startswith("ge") and when < _instant(value[2:])) or (
            value.startswith("le") and when > _instant(value[2:])
        ):
            return False
    for name in ("code", "combo-code"):
        for value in query.get(name, []):
            concepts = [
                resource["code"],
                *(part["code"] for part in resource.get("component", []) if name == "combo-code"),
            ]
            codes = {f"{coding['system']}|{coding['code']}" for concept in concepts for coding in concept["coding"]}
            if not codes & set(value.split(",")):
                return False
    return True
