"""FHIR REST (R4): searches page by page, every resource once, and a count at the end that must be right.

Complete means: as many distinct matches were read as the server counts afterwards. Sorted by `_lastUpdated`, what
arrives while we read comes last, so a shortfall is first answered by reading what is newer than the newest seen, then
by reading the whole search once more (a row that is updated moves to the end, and paging by offset then skips its
neighbour). If the server's count still moves and ours lies between its counts before and after, the report says so;
any other difference fails the pull with both numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin

from pydantic import Field

from spinney.connectors.fhir.http import Http, HttpRefused, host_of, is_below, objects
from spinney.connectors.fhir.search import Query, instant, offered, queries, unpushed
from spinney.connectors.fhir.server import NEEDS_A_TABLE, Connect, FhirSource, connect, search_parameters
from spinney.connectors.fhir.shelf import EPOCH, Shelf, from_content
from spinney.connectors.sources import Progress, Pulled, Source, Surroundings, Wanted, refuse_tables
from spinney.errors import SourceFailed

COMPACT = json.JSONEncoder(separators=(",", ":"))


class FhirRestSettings(FhirSource):
    """A FHIR R4 server that is searched."""

    how = "is searched page by page"

    kind: Literal["fhir-rest"] = "fhir-rest"
    page_size: int = Field(500, ge=1, le=10_000, description="Resources asked for per page; the server may give fewer.")

    def open(self, where: Surroundings) -> Source:  # noqa: ARG002
        return FhirRest(self)


class FhirRest:
    """Searches a FHIR server for what a study wants."""

    def __init__(self, settings: FhirRestSettings, connect: Connect = connect) -> None:
        self.settings, self._connect = settings, connect

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled:
        refuse_tables(wanted, NEEDS_A_TABLE)
        with self._connect(self.settings) as http, Shelf(staging) as shelf:
            declared = search_parameters(http, self.settings.base_url)
            wanted = offered(wanted, declared)
            reader = _Reader(http, self.settings, shelf, frozenset(w.kind for w in wanted), progress)
            notes: list[str] = []
            for one in wanted:
                parameters = declared.get(one.kind, frozenset())
                notes += unpushed(one, parameters)
                shelf.touch(one.kind)
                for query in queries(one, parameters):
                    notes += reader.read(query)
            files = shelf.close()
            latest = max(shelf.newest.values(), default=0)
            newest = EPOCH + timedelta(microseconds=latest) if latest else None
            return Pulled(files, {kind: shelf.counts[kind] for kind in files}, newest, tuple(dict.fromkeys(notes)))


@dataclass
class _Walk:
    """What reading one search from its first to its last page gave."""

    matches: int = 0
    first_total: int | None = None
    last_total: int | None = None


class _Reader:
    """Reads searches onto the shelf and checks that they are complete."""

    def __init__(
        self, http: Http, settings: FhirRestSettings, shelf: Shelf, kinds: frozenset[str], progress: Progress
    ) -> None:
        self._http, self._base, self._shelf, self._kinds = http, settings.base_url, shelf, kinds
        self._page = ("_sort=_lastUpdated", f"_count={settings.page_size}", "_total=accurate")
        self._progress = progress
        self._search = 0

    def read(self, query: Query) -> list[str]:
        """Read one search; returns what the report should say of it."""
        counts: list[int] = []
        for _ in range(2):
            self._search += 1
            walk = self._walk(query.address(*self._page), query.kind)
            now = self._count(query, walk)
            if now is None:
                return [f"{query.kind}: the server tells no total, so completeness could not be checked"]
            newest = self._shelf.newest.get(query.kind)
            if walk.matches < now and newest:
                newer = f"_lastUpdated=ge{instant(EPOCH + timedelta(microseconds=newest))}"
                walk.matches += self._walk(query.address(newer, *self._page), query.kind).matches
                now = self._count(query, walk) or now
            if walk.matches == now:
                return []
            counts.append(now)
        before, now = counts
        if min(counts) <= walk.matches <= max(counts):
            return [f"{query.kind}: changed while it was read ({before} before, {now} after, {walk.matches} read)"]
        raise SourceFailed(
            f"{host_of(self._base)}: {query.kind} is incomplete: {walk.matches} read, but the server counts {now}; "
            "try a smaller page_size, or ask the server's administrator"
        )

    def _walk(self, address: str, kind: str) -> _Walk:
        """Follow the pages of one search."""
        walk, visited, page = _Walk(), set[int](), 1
        self._http.spent.begin_search()
        already = self._shelf.counts[kind]
        url: str | None = f"{self._base}/{address}"
        while url is not None:
            visited.add(hash(url))
            bundle = self._get(url, kind, page, walk)
            total = bundle.get("total")
            walk.last_total = total if isinstance(total, int) else None
            walk.first_total = walk.last_total if page == 1 else walk.first_total
            fresh = self._keep(bundle, kind)
            walk.matches += fresh
            self._http.spent.page(f"{host_of(self._base)}: {kind} search", fresh=fresh > 0)
            known = None if walk.first_total is None else max(already + walk.first_total, self._shelf.counts[kind])
            self._progress(kind, self._shelf.counts[kind], known)
            url = self._next(bundle, url, kind)
            if url is not None and hash(url) in visited:
                raise SourceFailed(
                    f"{host_of(self._base)}: the pages of {kind} go in a circle; {walk.matches} were read"
                )
            page += 1
        return walk

    def _get(self, url: str, kind: str, page: int, walk: _Walk) -> dict[str, Any]:
        try:
            bundle = self._http.json(url, f"{kind} search, page {page}")
        except HttpRefused as refused:
            if refused.status in (401, 403, 404) or (page == 1 and refused.status not in (400, 422)):
                raise
            raise SourceFailed(f"{host_of(self._base)}: {_stopped(kind, page, refused.status, walk)}") from None
        if bundle.get("resourceType") != "Bundle":
            raise SourceFailed(f"{host_of(self._base)}: {kind} search, page {page}: not a Bundle; check base_url")
        return bundle

    def _keep(self, bundle: Mapping[str, Any], kind: str) -> int:
        """Put a page on the shelf; returns how many matches this search had not brought before."""
        fresh = 0
        for entry in objects(bundle.get("entry")):
            content, search = entry.get("resource"), entry.get("search")
            if not isinstance(content, dict):
                continue
            mode = search.get("mode", "match") if isinstance(search, dict) else "match"
            resource = from_content(content, COMPACT.encode(content).encode(), kind)
            if resource.kind == kind and mode == "match":
                fresh += self._shelf.put(resource, self._search)
            elif resource.kind in self._kinds:
                self._shelf.put(resource, 0)
        return fresh

    def _next(self, bundle: Mapping[str, Any], url: str, kind: str) -> str | None:
        """The link to the next page. One that leads elsewhere is refused: the token would go there, too."""
        links = [link.get("url") for link in objects(bundle.get("link")) if link.get("relation") == "next"]
        if not links or not links[0]:
            return None
        try:
            following = urljoin(url, str(links[0]))
        except ValueError:
            following = ""
        if not is_below(following, self._base):
            raise SourceFailed(
                f"{host_of(self._base)}: the next page of {kind} is at {host_of(following)}, not below base_url; "
                "set base_url to the address that the server gives itself"
            )
        return following

    def _count(self, query: Query, walk: _Walk) -> int | None:
        """How many matches the server counts now; None if it never tells."""
        try:
            total = self._http.json(f"{self._base}/{query.address('_summary=count')}", f"{query.kind} count").get(
                "total"
            )
        except HttpRefused as refused:
            if refused.status not in (400, 404, 405, 422, 501):
                raise
            total = None  # counting is optional, and the pages may tell
        if isinstance(total, int):
            return total
        return walk.last_total if walk.last_total is not None else walk.first_total


def _stopped(kind: str, page: int, status: int, walk: _Walk) -> str:
    if page == 1:
        return (
            f"{kind}: the server refuses a search sorted by _lastUpdated with these filters (HTTP {status}); "
            "use fhir-bulk or files"
        )
    said = "an unknown number" if walk.first_total is None else walk.first_total
    return (
        f"{kind} stopped at page {page}: the server's own link to it fails (HTTP {status}); "
        f"{walk.matches} of {said} were read. Try another page_size"
    )


SOURCE = FhirRestSettings
