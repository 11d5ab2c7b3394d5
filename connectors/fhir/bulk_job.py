"""One Bulk Data export from kick-off to downloaded files, written down so that a restarted process goes on with it.

`export.json` in the staging folder holds where the server reports on the export and, later, its manifest; a file that
is partly there is continued. Links that have expired meanwhile raise `ExportGone`: the export has to be started again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from spinney.connectors.fhir.http import (
    Answer,
    Http,
    HttpRefused,
    backoff,
    host_of,
    objects,
    parse_object,
    retry_after,
    same_origin,
)
from spinney.connectors.fhir.shelf import lines_of, parse_instant
from spinney.errors import SourceFailed

OLDEST_JOB_SECONDS = 24 * 3600
FASTEST_POLL = 1.0
SECTIONS = ("output", "deleted", "error", "outcome")


class ExportGone(HttpRefused):
    """The export or its files are no longer on the server."""


@dataclass(frozen=True)
class ExportPart:
    """One file of an export."""

    kind: str
    url: str
    path: Path
    count: int | None


@dataclass
class Job:
    """An export that runs on the server."""

    path: Path
    request: str
    status_url: str
    started: str
    since: str | None = None
    manifest: dict[str, Any] | None = None
    finished: dict[str, int] = field(default_factory=dict)
    """File name -> number of lines."""

    def save(self) -> None:
        written = {name: value for name, value in vars(self).items() if name != "path"}
        draft = self.path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(written), encoding="utf-8")
        draft.replace(self.path)

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        for part in self.path.parent.glob("part-*.ndjson"):
            part.unlink()


def resume(path: Path, request: str) -> Job | None:
    """The job of an earlier process, if it asked for the same and is not from another night."""
    try:
        job = Job(path=path, **json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    started = parse_instant(job.started)
    young = started is not None and (datetime.now(UTC) - started).total_seconds() < OLDEST_JOB_SECONDS
    if young and job.request == request:
        return job
    job.forget()
    return None


def kick_off(http: Http, base_url: str, address: str, path: Path, request: str, since: str | None) -> Job:
    """Ask the server to begin an export."""
    headers = {"Accept": "application/fhir+json", "Prefer": "respond-async"}
    answer = http.send("GET", f"{base_url}/{address}", "export", headers=headers, accept=(202,))
    status_url = urljoin(f"{base_url}/", answer.headers.get("content-location", ""))
    if "content-location" not in answer.headers or not same_origin(status_url, base_url):
        raise SourceFailed(
            f"{host_of(base_url)}: the export's status address is missing or on another host; "
            "set base_url to the address that the server gives itself"
        )
    job = Job(path, request, status_url, datetime.now(UTC).isoformat(), since)
    job.forget()  # what is left of another export must not be continued
    job.save()
    return job


def await_manifest(http: Http, job: Job, progress: Callable[[int], None]) -> dict[str, Any]:
    """Poll, as often as the server wishes, until the export is ready."""
    polls = 0
    while job.manifest is None:
        answer = _status(http, job)
        if answer.status == 202:
            polls += 1
            asked = retry_after(answer.headers)
            done = re.search(r"(\d{1,3})\s*%", answer.headers.get("x-progress", ""))
            if done:
                progress(int(done[1]))
            http.wait(max(FASTEST_POLL, backoff(polls) if asked is None else asked))
        else:
            job.manifest = _whole_manifest(http, job.status_url, answer.body)
            job.save()
    return job.manifest


def parts(manifest: dict[str, Any], section: str, folder: Path) -> Iterator[ExportPart]:
    """The files of one section of the manifest: output, deleted, error or outcome."""
    for number, item in enumerate(objects(manifest.get(section))):
        count = item.get("count")
        path = folder / f"part-{section}-{number:05d}.ndjson"
        yield ExportPart(
            str(item.get("type", "")), str(item.get("url", "")), path, count if isinstance(count, int) else None
        )


def fetch(http: Http, base_url: str, job: Job, part: ExportPart, watch: Callable[[bytes], None]) -> int:
    """Download one file and check it; returns its number of lines. A wrong one is fetched once more from the start."""
    if part.path.name in job.finished and part.path.exists():
        return job.finished[part.path.name]
    what = f"export file of {part.kind or 'unknown type'}"
    needed = (job.manifest or {}).get("requiresAccessToken")
    token = needed is True or (needed is None and same_origin(part.url, base_url))
    _refuse_leaks(part.url, base_url, what, token)
    for last in (False, True):
        _download(http, part, what, token, watch)
        lines, whole = inspect(part.path)
        if part.count in (None, lines) and (whole or last):
            job.finished[part.path.name] = lines
            job.save()
            return lines
        part.path.unlink()
    job.forget()
    raise SourceFailed(
        f"{host_of(base_url)}: {what} is incomplete: {lines} lines read, but the manifest counts {part.count}; "
        "run the pull again, or ask the server's administrator"
    )


def _download(http: Http, part: ExportPart, what: str, token: bool, watch: Callable[[bytes], None]) -> None:
    try:
        http.download(part.url, part.path, what, token=token, watch=watch)
    except HttpRefused as refused:
        if refused.status in (403, 404, 410):  # signed links of object stores answer 403 when they are old
            raise ExportGone(str(refused), refused.status) from None
        raise
    part.path.touch()


def _refuse_leaks(url: str, base_url: str, what: str, token: bool) -> None:
    if token and not same_origin(url, base_url):
        raise SourceFailed(f"{host_of(base_url)}: {what} is on {host_of(url)}, and a token is not sent there")
    if base_url.startswith("https:") and not url.startswith("https:"):
        raise SourceFailed(f"{host_of(base_url)}: {what} is offered without TLS; ask the server's administrator")


def inspect(path: Path) -> tuple[int, bool]:
    """Number of lines, and whether the last one is whole: a connection may end early without an error."""
    lines, last = 0, b"{}"
    for line in lines_of(path):
        lines, last = lines + 1, line
    try:
        return lines, isinstance(json.loads(last), dict)
    except (ValueError, RecursionError):
        return lines, False


def delete(http: Http, job: Job) -> list[str]:
    """Tell the server that its files are no longer needed; a refusal is only worth a note."""
    try:
        http.send("DELETE", job.status_url, "export", accept=(200, 202, 204, 404, 410))
    except SourceFailed:
        return ["the server did not delete the export; it may keep the files until they expire"]
    return []


def _status(http: Http, job: Job) -> Answer:
    try:
        headers = {"Accept": "application/json"}
        return http.send("GET", job.status_url, "export status", headers=headers, accept=(200, 202))
    except HttpRefused as refused:
        if refused.status in (404, 410):
            raise ExportGone(str(refused), refused.status) from None
        if refused.status not in (401, 403, 408, 429, 502, 503, 504):
            job.forget()  # the server gave up; going on with this export would fail every time
        raise


def _whole_manifest(http: Http, url: str, body: bytes) -> dict[str, Any]:
    """The manifest with all its pages."""
    complaint = f"{host_of(url)}: the finished export has no manifest with files; ask the server's administrator"
    whole = page = parse_object(body, complaint)
    while True:
        if not isinstance(page.get("output"), list):
            raise SourceFailed(complaint)
        following = [str(link.get("url")) for link in objects(page.get("link")) if link.get("relation") == "next"]
        http.spent.files(sum(len(objects(whole.get(section))) for section in SECTIONS))
        http.spent.page(f"{host_of(url)}: export manifest", fresh=bool(page["output"]))
        if not following:
            return whole
        if not same_origin(following[0], url):
            raise SourceFailed(f"{host_of(url)}: the manifest goes on at another host, and a token is not sent there")
        page = http.json(following[0], "export manifest")
        for section in SECTIONS:
            whole[section] = objects(whole.get(section)) + objects(page.get(section))
