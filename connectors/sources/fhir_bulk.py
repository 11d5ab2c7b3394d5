"""FHIR Bulk Data: the server writes everything into files, we fetch them, and it deletes them.

On the first night the export brings everything; later ones only what changed since (`_since`), laid over the store of
the night before. Everything is read anew when the server does not accept `_since` or does not say when an export was
taken, when the study asks for more than the store holds, every `rebuild_days` days (deletions may go unreported), and
always for groups: patients who join one bring a past that `_since` leaves out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

from pydantic import Field, model_validator

from spinney.connectors.fhir.bulk_job import (
    ExportGone,
    ExportPart,
    Job,
    await_manifest,
    delete,
    fetch,
    kick_off,
    parts,
    resume,
)
from spinney.connectors.fhir.bulk_store import BulkStore, Night, described, usable_since
from spinney.connectors.fhir.http import Http, HttpRefused, objects, parse_object
from spinney.connectors.fhir.search import instant, offered, queries
from spinney.connectors.fhir.server import NEEDS_A_TABLE, Connect, FhirSource, connect, search_parameters
from spinney.connectors.fhir.shelf import Shelf, content_of, from_line, lines_of, parse_instant
from spinney.connectors.sources import Progress, Pulled, Source, Surroundings, Wanted, refuse_tables

REFUSED_PARAMETER = (400, 404, 405, 422, 501)
LONGEST_FILTERS = 6_000
SEVERITIES = ("fatal", "error", "warning", "information")


class FhirBulkSettings(FhirSource):
    """A FHIR server with Bulk Data export."""

    how = "exports in bulk ($export)"

    kind: Literal["fhir-bulk"] = "fhir-bulk"
    export: Literal["system", "patient", "group"] = Field("patient", description="Which $export is asked for.")
    group: str | None = Field(
        None, pattern=r"^[A-Za-z0-9.-]{1,64}$", description="Id of the Group, where export is group."
    )
    incremental: bool = Field(True, description="Ask only for what changed since the last night, where possible.")
    rebuild_days: float = Field(7, gt=0, description="After so many days everything is read anew.")

    @model_validator(mode="after")
    def _a_group_has_an_id(self) -> Self:
        if (self.export == "group") != (self.group is not None):
            raise ValueError("group belongs to export: group, and is needed there")
        return self

    def open(self, where: Surroundings) -> Source:
        return FhirBulk(self, where.store())

    @property
    def address(self) -> str:
        return {"system": "$export", "patient": "Patient/$export"}.get(self.export, f"Group/{self.group}/$export")


class FhirBulk:
    """Pulls by Bulk Data export. `store`: folder that keeps resources from night to night; None: all every night."""

    def __init__(self, settings: FhirBulkSettings, store: Path | None = None, connect: Connect = connect) -> None:
        self.settings, self._connect = settings, connect
        keeps = settings.incremental and settings.export != "group"
        self._store = BulkStore(store) if store is not None and keeps else None

    def pull(self, wanted: Sequence[Wanted], staging: Path, progress: Progress) -> Pulled:
        refuse_tables(wanted, NEEDS_A_TABLE)
        with self._connect(self.settings) as http:
            declared = search_parameters(http, self.settings.base_url)
            wanted = offered(wanted, declared)
            filters = type_filters(wanted, declared)
            run = partial(_Run, http, self.settings, self._store, wanted, filters, staging, progress)
            try:
                return run().pull()
            except ExportGone:  # links expire, most of all under a process that was restarted
                return run().pull()


class _Run:
    """One export, from the question to the files on the shelf."""

    def __init__(
        self,
        http: Http,
        settings: FhirBulkSettings,
        store: BulkStore | None,
        wanted: Sequence[Wanted],
        filters: Sequence[str],
        staging: Path,
        progress: Progress,
    ) -> None:
        self._http, self._settings, self._store, self._staging = http, settings, store, staging
        self._wanted, self._filters, self._progress = wanted, filters, progress
        self._kinds = tuple(dict.fromkeys(one.kind for one in wanted))
        self._server = f"{settings.base_url}/{settings.address}"
        self._notes: list[str] = []
        self._held: dict[str, Mapping[str, int]] = {}
        self._night = store.last_night() if store else None

    def pull(self) -> Pulled:
        since = usable_since(self._night, self._server, self._wanted, self._settings.rebuild_days)
        job = self._job(since)
        try:
            manifest = await_manifest(self._http, job, lambda percent: self._progress("export", percent, 100))
            output = self._fetch(job, "output")
            deleted = self._fetch(job, "deleted") if job.since else []
            outcomes = self._fetch(job, "error") + self._fetch(job, "outcome")
        except ExportGone:
            job.forget()
            raise
        pulled = self._shelve(job, manifest, output, deleted)
        self._notes += _told(outcomes) + delete(self._http, job)
        job.forget()
        return replace(pulled, notes=tuple(self._notes))

    def _job(self, since: str | None) -> Job:
        """The export of an interrupted run, or a new one with as few resources as the server lets us ask for."""
        path = self._staging / "export.json"
        asked = json.dumps([self._server, self._kinds, self._filters, since])
        request = sha256(asked.encode()).hexdigest()
        if job := resume(path, request):
            return job
        address = f"{self._settings.address}?_type={','.join(self._kinds)}"
        narrower: list[tuple[str, str | None, str]] = []
        if since:
            narrower.append((f"&_since={quote(since, safe='')}", since, "_since, so everything was read"))
        if self._filters:
            filters = "&_typeFilter=" + ",".join(quote(one, safe="") for one in self._filters)
            narrower.append((filters, None, "_typeFilter, so all codes were read"))
        for parameter, from_then, missing in narrower:
            try:
                return kick_off(self._http, self._settings.base_url, address + parameter, path, request, from_then)
            except HttpRefused as refused:
                if refused.status not in REFUSED_PARAMETER:
                    raise
                self._notes.append(f"the server does not accept {missing}")
        return kick_off(self._http, self._settings.base_url, address, path, request, None)

    def _fetch(self, job: Job, section: str) -> list[ExportPart]:
        """Download the files of one section that hold what is wanted."""
        every = list(parts(job.manifest or {}, section, self._staging))
        chosen = [part for part in every if section != "output" or self._may_be_wanted(part.kind)]
        self._held |= {_name(part): {} for part in every if section == "output"}
        if left := sorted({part.kind for part in every} - {part.kind for part in chosen}):
            self._notes.append(f"the export has {', '.join(left)}, too, which nobody asked for: not fetched")
        read: Counter[str] = Counter()
        for part in chosen:
            counts = [other.count for other in chosen if other.kind == part.kind]
            total = None if None in counts else sum(count or 0 for count in counts)
            meter = _Meter(self._progress, part.kind or section, read[part.kind], total)
            read[part.kind] += fetch(self._http, self._settings.base_url, job, part, meter)
            self._progress(part.kind or section, read[part.kind], total)
        return chosen

    def _may_be_wanted(self, told: str) -> bool:
        """The manifest's word for a file is only a hint: nothing, or one that has a wanted type in it, is looked at."""
        return not told or any(kind.lower() in told.lower() for kind in self._kinds)

    def _shelve(
        self, job: Job, manifest: dict[str, Any], output: Sequence[ExportPart], deleted: Sequence[ExportPart]
    ) -> Pulled:
        folder = self._store.begin() if self._store else self._staging
        taken = parse_instant(manifest.get("transactionTime"))
        quarantined: Counter[str] = Counter()
        with Shelf(folder) as shelf:
            for part in output:
                held: Counter[str] = Counter()
                for line in lines_of(part.path):
                    resource = from_line(line, part.kind if part.kind in self._kinds else "")
                    held[resource.kind] += 1
                    if resource.kind in self._kinds:
                        shelf.put(resource)
                    elif not resource.kind:
                        quarantined["line without a resource type"] += 1
                self._held[_name(part)] = held
            for kind, id in _deletions(deleted):
                shelf.bury(kind, id)
            if job.since and self._store and self._night:
                self._store.carry_over(self._night, shelf, self._kinds)
            for kind in self._kinds:
                shelf.touch(kind)
            files = shelf.close()
            counts = {kind: shelf.counts[kind] for kind in files}
        self._remember(folder, taken, job, "deleted" in manifest)
        return Pulled(files, counts, taken, quarantined=quarantined, held=self._held)

    def _remember(self, folder: Path, taken: datetime | None, job: Job, tells_deletions: bool) -> None:
        """Make tonight's folder the one on which tomorrow's export is laid."""
        if self._store is None:
            return
        if taken is None:
            self._notes.append("the export has no transactionTime, so the next one is a full one again")
        if job.since and not tells_deletions:
            days = f"{self._settings.rebuild_days:g}"
            self._notes.append(f"the server does not tell of deletions; they show at the full export every {days} days")
        kept = self._night if job.since else None
        self._store.commit(
            Night(
                folder=folder.name,
                server=self._server,
                taken=instant(taken) if taken else None,
                rebuilt=kept.rebuilt if kept else datetime.now(UTC).isoformat(),
                holds={kind: kept.holds[kind] for kind in self._kinds} if kept else described(self._wanted),
            )
        )


def _name(part: ExportPart) -> str:
    """What people see of a file: its place in the export; its address may hold a token."""
    return f"{part.path.stem.removeprefix('part-')} ({part.kind or 'no type told'})"


class _Meter:
    """Counts lines as they come in."""

    def __init__(self, progress: Progress, kind: str, read: int, total: int | None) -> None:
        self._progress, self._kind, self._read, self._total = progress, kind, read, total

    def __call__(self, chunk: bytes) -> None:
        self._read += chunk.count(b"\n")
        self._progress(self._kind, self._read, self._total)


def type_filters(wanted: Sequence[Wanted], declared: Mapping[str, frozenset[str]]) -> list[str]:
    """The study's filters as `_typeFilter` wants them; none if they would make the address too long.

    The end of the window is left out: what lies beyond it tonight is needed tomorrow, and `_since` would not bring it.
    """
    filters: list[str] = []
    for kind in dict.fromkeys(one.kind for one in wanted):
        same = [replace(one, until=None) for one in wanted if one.kind == kind]
        asked = [query for one in same for query in queries(one, declared.get(kind, frozenset()))]
        if all(query.filters for query in asked):
            filters += [query.address().replace(",", "%2C") for query in asked]
    return filters if sum(len(quote(one, safe="")) for one in filters) < LONGEST_FILTERS else []


def _deletions(files: Sequence[ExportPart]) -> Iterator[tuple[str, str]]:
    """Type and id of what was deleted, from bundles of DELETE requests."""
    for part in files:
        for line in lines_of(part.path):
            for entry in objects(
                parse_object(line, "a list of deletions is not JSON; run the pull again").get("entry")
            ):
                request = entry.get("request")
                if isinstance(request, dict) and request.get("method") == "DELETE":
                    kind, _, id = str(request.get("url")).partition("/")
                    yield kind, id


def _told(outcomes: Sequence[ExportPart]) -> list[str]:
    """What the server has to say about its export, as counts: the texts may name patients."""
    severities: Counter[str] = Counter()
    for part in outcomes:
        for line in lines_of(part.path):
            severities.update(str(issue.get("severity")) for issue in objects(content_of(line).get("issue")))
    counts = ", ".join(f"{severities[one]} {one}" for one in SEVERITIES if severities[one])
    return [f"the server reports trouble with its export: {counts}"] if counts else []


SOURCE = FhirBulkSettings
