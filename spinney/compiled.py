"""Functions that are compiled for this processor, once per installation.

Compiled code is kept in a folder of mode 0700 that belongs to whoever runs Spinney: it is run unread, so nobody else
may write there. `SPINNEY_COMPILED` names another one. A changed source, another release of numba and another processor
compile anew. Where there is no such folder every process compiles for itself, which takes some seconds; `spinney
doctor` says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
FOLDER = "SPINNEY_COMPILED"


def compiled(*signatures: str) -> Callable[[Function], Function]:
    """For these types of arguments, at the import of its module; runs without the interpreter's lock."""

    def now(function: Function) -> Function:
        numba, folder = import_module("numba"), cache_folder()
        if folder is None:
            return cast(Function, numba.njit(list(signatures), nogil=True)(function))
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            return cast(Function, numba.njit(list(signatures), nogil=True, cache=True)(function))
        except OSError:  # a full disk
            return cast(Function, numba.njit(list(signatures), nogil=True)(function))
        finally:
            numba.config.CACHE_DIR = before

    return now


def inlined(function: Function) -> Function:
    """A part of compiled functions of the same file."""
    return cast(Function, import_module("numba").njit(nogil=True)(function))


def cache_folder() -> Path | None:
    """Where compiled code is kept; None where that is nowhere."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(os.environ.get(FOLDER) or Path(base) / "spinney" / "compiled")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_private(folder) else None
    except OSError:
        return None


def _is_private(folder: Path) -> bool:
    """Nobody else may write there, or have somebody else's code run here."""
    if not hasattr(os, "getuid"):  # Windows has no modes, and no house runs there
        return True
    told = folder.stat()
    return told.st_uid == os.getuid() and not told.st_mode & 0o077 and os.access(folder, os.W_OK)
