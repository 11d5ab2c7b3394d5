"""What a FHIR server may cost a pull, and which hosts it may send us to.

A server that was taken over, or is only broken, can name any address in its answers, hand out pages without end, or
answer with a few packed bytes that fill a disk. Every limit that is reached ends the pull with its name.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from pydantic import Field

from spinney.base import Settings
from spinney.errors import SourceFailed

USUAL_PORTS = {"https": 443, "http": 80}
LARGEST_EXPANSION = 200
"""FHIR packs to a fifteenth or less of its size; what packs better than this holds nothing."""
SMALL = 1 << 20  # of so little the expansion says nothing
PACKINGS = ("", "identity", "gzip", "x-gzip", "deflate")
GIB = 1 << 30


class Limits(Settings):
    """The most that one pull takes from its server; an honest one stays far below."""

    pages: int = Field(200_000, ge=1, description="Pages of all searches together, and of an export's manifest.")
    empty_pages: int = Field(100, ge=1, description="Pages of a search in a row that bring nothing new.")
    files: int = Field(20_000, ge=1, description="Files of one export.")
    wire_gib: float = Field(64, gt=0, description="Bytes that come over the network, in GiB.")
    unpacked_gib: float = Field(256, gt=0, description="The same after decompression, in GiB.")


class Spent:
    """What a pull has cost so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pages = self._empty = 0
        self._wire = self._unpacked = 0

    def begin_search(self) -> None:
        """Empty pages are counted anew."""
        self._empty = 0

    def page(self, what: str, *, fresh: bool = True) -> None:
        """One more page, and whether it brought anything."""
        self._pages += 1
        self._empty = 0 if fresh else self._empty + 1
        if self._pages > self._limits.pages:
            raise _reached("pages", self._limits.pages, f"{what}: the server has handed out more pages")
        if self._empty > self._limits.empty_pages:
            raise _reached("empty_pages", self._limits.empty_pages, f"{what}: more pages in a row bring nothing new")

    def files(self, count: int) -> None:
        """So many files has an export."""
        if count > self._limits.files:
            raise _reached("files", self._limits.files, f"the export has more files ({count:,})")

    def take(self, wire: int, unpacked: int, what: str) -> None:
        """So many bytes more have come, and became so many."""
        self._wire += wire
        self._unpacked += unpacked
        if self._wire > self._limits.wire_gib * GIB:
            raise _reached("wire_gib", self._limits.wire_gib, f"{what}: more bytes have come over the network")
        if self._unpacked > self._limits.unpacked_gib * GIB:
            raise _reached("unpacked_gib", self._limits.unpacked_gib, f"{what}: more bytes have been unpacked")


def refuse_expansion(wire: int, unpacked: int, what: str) -> None:
    """A few bytes that become very many are no resources."""
    if unpacked > SMALL and unpacked > LARGEST_EXPANSION * wire:
        raise SourceFailed(
            f"{what}: the answer unpacks to more than {LARGEST_EXPANSION} times its size, which no resources do; "
            "ask the server's administrator"
        )


def refuse_packing(encoding: str, what: str) -> None:
    """Only what is unpacked in small pieces: others may grow without bound in one."""
    if encoding.strip().lower() not in PACKINGS:
        raise SourceFailed(
            f"{what}: the answer is packed in a way that was not asked for; only gzip and deflate are read"
        )


def refuse_stranger(url: str, base_url: str, allowed: Collection[str], what: str) -> None:
    """The server's own host, and those that the owner of site.yaml has listed."""
    there = _host_and_port(url)
    if there is None or there not in {_host_and_port(base_url), *(_listed(one, url) for one in allowed)}:
        named = there[0] if there else "an unreadable address"
        raise SourceFailed(
            f"{what} is on {named}, where nothing is asked for; if that is right, list it under allowed_hosts"
        )


def is_host(text: str) -> bool:
    """Whether it is a host, or host:port, and no address."""
    parts = _split(f"//{text}")
    return parts is not None and parts.netloc == text and bool(parts.hostname) and "@" not in text


def _listed(entry: str, url: str) -> tuple[str, int] | None:
    parts = _split(url)
    return _host_and_port(f"{parts.scheme}://{entry}") if parts else None


def _host_and_port(url: str) -> tuple[str, int] | None:
    parts = _split(url)
    if parts is None or parts.scheme not in USUAL_PORTS or not parts.hostname:
        return None
    return parts.hostname.rstrip("."), parts.port or USUAL_PORTS[parts.scheme]


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # only now it is read
    except ValueError:
        return None
    return parts


def _reached(name: str, limit: float, what: str) -> SourceFailed:
    return SourceFailed(f"{what} than limits.{name} allows ({limit:,}); if that is right, raise it in site.yaml")
