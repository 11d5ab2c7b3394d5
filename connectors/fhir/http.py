"""The HTTP client of the FHIR sources: patient with servers that stumble, strict with everything else.

Waits and tries again on 429, 5xx and broken connections (exponential backoff with jitter, Retry-After honoured up to a
cap), renews a token once on 401, and gives up at a deadline. Every failure is one line that says what to do, without
query strings, headers or bodies: those may name patients or hold secrets.
"""

from __future__ import annotations

import json
import logging
import random
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import httpx

from spinney.connectors.fhir.limits import Limits, Spent, refuse_expansion, refuse_packing
from spinney.errors import SourceFailed

# httpx logs every address with its query, httpcore every header: neither belongs in anybody's log.
logging.getLogger("httpx").setLevel(logging.WARNING)
logging.getLogger("httpcore").setLevel(logging.WARNING)

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
FIRST_WAIT = 0.5
LONGEST_BACKOFF = 30.0
LONGEST_RETRY_AFTER = 300.0
RATE_WINDOW = 60.0  # seconds
LEAST_BYTES = 60 * 1024  # that have to come meanwhile: less is no progress, and never would the night end
LARGEST_BODY = 64 * 2**20
LARGEST_FILE = 64 * 2**30

T = TypeVar("T")


class HttpRefused(SourceFailed):
    """The server answered, but not with what was asked for."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


class Auth(Protocol):
    """Puts credentials on a request."""

    kind: str

    def headers(self) -> Mapping[str, str]: ...

    def renew(self) -> bool:
        """Called after a 401: True if other credentials are there now."""
        ...


class Anonymous:
    kind = "none"

    def headers(self) -> Mapping[str, str]:
        return {}

    def renew(self) -> bool:
        return False


@dataclass(frozen=True)
class Answer:
    """A whole answer of bounded size."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Again(Exception):
    """This attempt failed in a way that may heal."""

    def __init__(self, failure: SourceFailed, after: float | None = None) -> None:
        self.failure, self.after = failure, after
        self.failure.transient = True
        self.progressed, self.slow = False, False
        super().__init__()


class _Unauthorised(Exception):
    def __init__(self, failure: SourceFailed) -> None:
        self.failure = failure
        super().__init__()


class Http:
    """One server's client. `refuse` raises for an address that nothing is asked of; `sleep` is there for tests."""

    def __init__(
        self,
        auth: Auth | None = None,
        *,
        verify: ssl.SSLContext | bool = True,
        timeout: float = 60.0,
        attempts: int = 6,
        deadline: float = 6 * 3600.0,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        refuse: Callable[[str, str], None] = lambda _url, _what: None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.auth: Auth = auth or Anonymous()
        self.spent, self._refuse = Spent(limits), refuse
        self.timeout, self.attempts, self.sleep = timeout, attempts, sleep
        self._ends = time.monotonic() + deadline
        self._client = httpx.Client(
            verify=verify,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 20.0)),
            headers={"User-Agent": "spinney", "Cache-Control": "no-cache", "Accept-Encoding": "gzip"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def send(
        self,
        method: str,
        url: str,
        what: str,
        *,
        headers: Mapping[str, str] | None = None,
        form: Callable[[], Mapping[str, str]] | None = None,
        content: bytes | None = None,
        accept: Collection[int] = (200,),
    ) -> Answer:
        """A request whose answer is small enough for memory. `form` is made anew for every attempt."""

        def once() -> Answer:
            data = form() if form else None
            with self._open(method, url, what, headers or {}, accept, True, data, content) as response:
                return Answer(response.status_code, response.headers, self._whole(response, what))

        return self._patiently(once)

    def json(self, url: str, what: str) -> dict[str, Any]:
        """GET of a JSON object."""
        headers = {"Accept": "application/fhir+json, application/json"}
        answer = self.send("GET", url, what, headers=headers)
        return parse_object(answer.body, f"{host_of(url)}: {what}: not JSON; is base_url a FHIR server's address?")

    def download(self, url: str, path: Path, what: str, *, token: bool, watch: Callable[[bytes], None]) -> None:
        """GET into a file. What is already in the file is not asked for again where the server supports Range."""
        furthest = size_of(path)

        def once() -> None:
            nonlocal furthest
            try:
                self._download_once(url, path, what, token, watch)
            except _Again as again:
                again.progressed = size_of(path) > furthest and not again.slow
                furthest = max(furthest, size_of(path))
                raise

        self._patiently(once)

    def wait(self, seconds: float) -> None:
        """Sleep, unless the deadline would pass meanwhile."""
        self._check_deadline(seconds)
        self.sleep(seconds)

    def _check_deadline(self, seconds: float = 0.0) -> None:
        if time.monotonic() + seconds > self._ends:
            raise SourceFailed("the pull did not end before its deadline; raise deadline_hours or ask for less data")

    def _patiently(self, once: Callable[[], T]) -> T:
        attempt, renewed = 0, False
        while True:
            try:
                return once()
            except _Again as again:
                attempt = 1 if again.progressed else attempt + 1
                if attempt >= self.attempts:
                    raise again.failure from None
                self.wait(backoff(attempt) if again.after is None else again.after)
            except _Unauthorised as refused:
                if renewed or not self.auth.renew():
                    raise refused.failure from None
                renewed = True

    @contextmanager
    def _open(
        self,
        method: str,
        url: str,
        what: str,
        headers: Mapping[str, str],
        accept: Collection[int],
        token: bool,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Iterator[httpx.Response]:
        """A streamed answer with one of the accepted status codes, or an error."""
        self._check_deadline()
        self._refuse(url, what)
        credentials = self.auth.headers() if token else {}
        try:
            asked = self._client.stream(method, url, headers={**headers, **credentials}, data=form, content=content)
            with asked as response:
                if response.status_code not in accept:
                    failure = HttpRefused(
                        _refusal(response, what, self.auth.kind if token else "none"), response.status_code
                    )
                    if response.status_code in TRANSIENT:
                        raise _Again(failure, retry_after(response.headers))
                    raise _Unauthorised(failure) if response.status_code == 401 and token else failure
                refuse_packing(response.headers.get("content-encoding", ""), what)
                yield response
        except httpx.RequestError as error:
            failed = SourceFailed(_unreachable(error, url, what, self.timeout))
            if _hopeless(error):
                raise failed from None
            raise _Again(failed) from None
        except httpx.InvalidURL:
            raise SourceFailed(f"{what}: not a web address; check base_url") from None

    def _whole(self, response: httpx.Response, what: str) -> bytes:
        body = bytearray()
        for chunk in self._chunks(response, what):
            body += chunk
            if len(body) > LARGEST_BODY:
                raise SourceFailed(f"{what}: the answer is over {LARGEST_BODY >> 20} MiB; lower page_size")
        return bytes(body)

    def _chunks(self, response: httpx.Response, what: str) -> Iterator[bytes]:
        """The answer, unpacked piece by piece, as long as it keeps to the limits."""
        wire = unpacked = 0
        since, before = time.monotonic(), 0
        for chunk in response.iter_bytes():
            self._check_deadline()
            if time.monotonic() - since >= RATE_WINDOW:
                if response.num_bytes_downloaded - before < LEAST_BYTES:
                    raise _too_slow(what)
                since, before = time.monotonic(), response.num_bytes_downloaded
            came, wire = response.num_bytes_downloaded - wire, response.num_bytes_downloaded
            unpacked += len(chunk)
            refuse_expansion(wire, unpacked, what)
            self.spent.take(came, len(chunk), what)
            yield chunk

    def _download_once(self, url: str, path: Path, what: str, token: bool, watch: Callable[[bytes], None]) -> None:
        have = size_of(path)
        headers = {"Accept": "application/fhir+ndjson", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with self._open("GET", url, what, headers, (200, 206, 416), token) as response:
            found = response.headers.get("content-range", "")
            if response.status_code == 416 and found.endswith(f"/{have}"):
                return  # the file was whole already
            if response.status_code == 416 or (response.status_code == 206 and not found.startswith(f"bytes {have}-")):
                path.unlink()
                raise _Again(HttpRefused(f"{host_of(url)}: {what} cannot be resumed; run the pull again", 416), 0.0)
            self._write(response, path, what, "ab" if response.status_code == 206 else "wb", watch)

    def _write(
        self, response: httpx.Response, path: Path, what: str, mode: str, watch: Callable[[bytes], None]
    ) -> None:
        encoded = response.headers.get("content-encoding", "identity") != "identity"
        with path.open(mode) as file:
            try:
                for chunk in self._chunks(response, what):
                    file.write(chunk)
                    watch(chunk)
                    if file.tell() > LARGEST_FILE:
                        raise SourceFailed(f"{what}: the file is over {LARGEST_FILE >> 30} GiB")
            except httpx.RequestError:
                if encoded:  # ranges count packed bytes, so what was unpacked so far is of no use
                    file.truncate(0)
                raise


def _too_slow(what: str) -> _Again:
    again = _Again(
        SourceFailed(f"{what}: less than {LEAST_BYTES >> 10} KiB came in {RATE_WINDOW:g} s; is it overloaded?")
    )
    again.slow = True
    return again


def backoff(attempt: int) -> float:
    """Seconds before the next attempt: doubled every time, with jitter so that clients don't come back together."""
    return float(min(LONGEST_BACKOFF, FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, hides nothing


def retry_after(headers: Mapping[str, str]) -> float | None:
    """What the server asks for, in seconds or as a date, capped; None if it asks for nothing that can be read."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value) if value.isdigit() else (_http_date(value) - datetime.now(UTC)).total_seconds()
    except ValueError:
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def parse_object(body: bytes, complaint: str) -> dict[str, Any]:
    """A JSON object, or the complaint; the decoder's own message would quote the body."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise SourceFailed(complaint)
    return value


def _http_date(value: str) -> datetime:
    date = parsedate_to_datetime(value)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def host_of(url: str) -> str:
    """Host and port, all of an address that an error may show."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "an unreadable address"
    return parsed.host + (f":{parsed.port}" if parsed.port else "")


def same_origin(url: str, other: str) -> bool:
    """True if a token for one address may go to the other."""
    try:
        there, here = httpx.URL(url), httpx.URL(other)
    except httpx.InvalidURL:
        return False
    return (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)


def is_below(url: str, base: str) -> bool:
    """True if an address has the base's origin and lies below its path."""
    if not same_origin(url, base):
        return False
    path, root = httpx.URL(url).path, httpx.URL(base).path.rstrip("/")
    return ".." not in path.split("/") and (path == root or path.startswith(f"{root}/"))


def objects(value: object) -> list[dict[str, Any]]:
    """The JSON objects of a list; whatever else a server may send is left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _refusal(response: httpx.Response, what: str, auth: str) -> str:
    """One line for a status that was not wanted."""
    status = response.status_code
    advice = {
        401: f"the credentials are refused; check auth (kind is {auth}) and that its secret is still valid",
        403: "these credentials may not read this; ask the server's administrator for the right scope",
        404: "nothing is there; check base_url",
        410: "it is no longer there",
        429: "the server is busy; run it at a quieter time or ask for less",
    }.get(status)
    if advice is None and 300 <= status < 400:
        advice = "the server has moved; set base_url to its new address"
    if advice is None:
        advice = (
            "the server fails; ask its administrator" if status >= 500 else "the server does not accept the request"
        )
    return f"{host_of(str(response.url))}: {what}: {advice} (HTTP {status})"


def _unreachable(error: httpx.RequestError, url: str, what: str, timeout: float) -> str:
    """One line for a connection that failed, by the cause behind httpx's error."""
    host, causes = host_of(url), list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return f"{host}: its TLS certificate is not trusted; set ca_file to the authority that signed it"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return f"{host}: no TLS connection; check that base_url's scheme (http or https) and port are right"
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return f"{host}: no such host; check base_url and the network's name service"
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"{host}: cannot be reached; check base_url, the firewall and that the server runs"
    if isinstance(error, httpx.TimeoutException):
        return f"{host}: {what}: no answer within {timeout:g} s; raise timeout_seconds or lower page_size"
    if isinstance(error, httpx.UnsupportedProtocol):
        return "base_url must begin with https:// or http://"
    return f"{host}: {what}: the connection broke; check the network and the server's log"


def _hopeless(error: httpx.RequestError) -> bool:
    """True for what the next attempt cannot heal."""
    wrong = (ssl.SSLCertVerificationError, httpx.UnsupportedProtocol)
    return any(isinstance(cause, wrong) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
