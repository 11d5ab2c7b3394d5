"""What the exchange needs of a place, and the words for what goes wrong there."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from spinney.connectors.exchange.errors import ExchangeDenied, ExchangeError, TransientExchangeError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_IN_THE_WAY = {errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EPERM}


@dataclass(frozen=True)
class Listed:
    """One line of a listing; links and devices are left out."""

    name: str
    is_folder: bool
    modified: datetime | None


class Store(ABC):
    """Objects below a root; paths are relative to it. Errors are the libraries' until `explain` words them.

    A file in `places`, or an entry point `spinney.exchanges`, offers one as `PLACE`. It is made with an address and
    options from the settings of a house, and connects when it is first used.
    """

    scheme: ClassVar[str]  # of its addresses, and what its file or entry point is called
    first_nap, longest_nap = 0.05, 5.0  # seconds between two looks while waiting
    failures: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, root: str, place: str) -> None:
        self.root, self.place = root.rstrip("/"), place
        self._seen = False

    @abstractmethod
    def write_once(self, path: str, data: bytes) -> bool:
        """Make a whole object appear at once; False, and nothing changes, if there is one already."""

    @abstractmethod
    def read(self, path: str, size: int) -> bytes:
        """At most so many bytes from the start of an object."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object; no error if somebody was faster."""

    @abstractmethod
    def _info(self, path: str) -> dict[str, Any]:
        """Type and size of what is at a full path, as fsspec says it; links are not followed."""

    @abstractmethod
    def _ls(self, folder: str) -> list[dict[str, Any]]:
        """Type, size and time of everything in a folder."""

    @abstractmethod
    def _still_there(self, error: OSError) -> None:
        """After something was not found: raise if it is the root that is gone."""

    def size(self, path: str) -> int | None:
        """Bytes of an object, if there is one."""
        try:
            info = self._info(self.full(path))
        except (FileNotFoundError, NotADirectoryError) as error:
            self._still_there(error)
            info = {"type": "nothing"}
        self._seen = True
        return int(info["size"]) if info["type"] == "file" else None

    def entries(self, folder: str) -> tuple[Listed, ...]:
        """What is in a folder; nothing if there is no such folder."""
        try:
            found = self._ls(self.full(folder))
        except (FileNotFoundError, NotADirectoryError) as error:
            self._still_there(error)
            found = []
        self._seen = True
        return tuple(
            Listed(info["name"].rpartition("/")[2], info["type"] == "directory", _modified(info))
            for info in found
            if info["type"] in ("file", "directory") and not info.get("islink")
        )

    def tidy(self, folder: str) -> None:  # noqa: B027 -- an object store has no folders to remove
        """Remove a folder, if there are folders and this one is empty."""

    def close(self) -> None:  # noqa: B027 -- most stores hold no connection
        """End the connection; the next call makes a new one."""

    def full(self, path: str) -> str:
        """The path as the filesystem wants it."""
        return f"{self.root}/{path}"

    def explain(self, error: Exception) -> ExchangeError:
        """A library's error in our words."""
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else type(error).__name__
        if isinstance(error, FileNotFoundError):
            if self._seen:  # it was there a moment ago, so it may come back
                return TransientExchangeError(f"{self.place} is gone: mount it or create it again")
            return ExchangeDenied(f"{self.place} does not exist: check the exchange's address, or create or mount it")
        if number in _FULL:
            return TransientExchangeError(f"{self.place} is full: make room there")
        if isinstance(error, PermissionError) or number in _IN_THE_WAY:
            return ExchangeDenied(
                f"{self.place} does not allow this ({reason}): give this house the right to read all senders "
                "and to create, read and delete under its own name"
            )
        return TransientExchangeError(f"{self.place} does not answer ({reason}): look at the network and that server")


def _modified(info: dict[str, Any]) -> datetime | None:
    when = info.get("LastModified") or info.get("mtime")
    return datetime.fromtimestamp(when, UTC) if isinstance(when, int | float) else when
