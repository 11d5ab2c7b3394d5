"""A folder as the exchange: this machine's, or a share that is mounted."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from spinney.connectors.exchange.address import draft_name
from spinney.connectors.exchange.store import Store
from spinney.storage.files import sync_folder

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
# A pipe or a link that somebody plants must neither hang a reader nor lead it elsewhere.
_PLAINLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Folder(Store):
    """Drafts are written next to their place and then linked to it, which fails if the name is taken."""

    scheme = "folder"
    first_nap, longest_nap = 0.01, 0.15  # a message is seen within 0.2 s

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002
        root = LocalFileSystem._strip_protocol(url)
        super().__init__(root, f"the folder {root}")
        self._fs = LocalFileSystem(skip_instance_cache=True)

    def read(self, path: str, size: int) -> bytes:
        with open(os.open(self.full(path), _PLAINLY), "rb") as file:
            return file.read(size)

    def write_once(self, path: str, data: bytes) -> bool:
        target = self.full(path)
        folder, name = os.path.split(target)
        os.stat(self.root)  # never made by us: an unmounted share must not become a folder on this disk
        os.makedirs(folder, exist_ok=True)
        draft = os.path.join(folder, draft_name(name))
        try:
            with open(draft, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            written = _publish(draft, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        sync_folder(folder)
        self._seen = True
        return written

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.full(path))

    def tidy(self, folder: str) -> None:
        with suppress(OSError):  # somebody else's file is in it, or somebody else was faster
            os.rmdir(self.full(folder))

    def _still_there(self, error: OSError) -> None:  # noqa: ARG002
        os.stat(self.root)

    def _info(self, path: str) -> dict[str, Any]:
        found = os.lstat(path)
        return {"type": "file" if stat.S_ISREG(found.st_mode) else "other", "size": found.st_size}

    def _ls(self, folder: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._fs.ls(folder, detail=True)
        return found


def _publish(draft: str, target: str) -> bool:
    """Give the draft its name unless the name is taken. `os.rename` alone would overwrite, except on Windows."""
    try:
        if os.name == "nt":
            os.rename(draft, target)
        else:
            os.link(draft, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Some shares know no links. Only this house writes here, so a look before the rename is what is left to do.
        if os.path.lexists(target):
            return False
        os.rename(draft, target)
    return True


PLACE = Folder
