"""A PostgreSQL server from the package registry (pgserver), for as long as somebody needs it. No root, no port."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL

from spinney.demo.guard import sweeper
from spinney.demo.leftovers import end_databases, note
from spinney.errors import SpinneyError

PREFIX, HOLDER, PID_FILE = "spinney-pg-", "holder", "data/postmaster.pid"


class NoPostgres(SpinneyError):
    """pgserver is not installed."""


@contextmanager
def postgres_server() -> Iterator[URL]:
    """Starts a server on a socket of its own and deletes it afterwards; says its address.

    Its folder is short, because a socket's name is, and open to the user that PostgreSQL runs as: it refuses root.
    """
    end_databases(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"), HOLDER, PID_FILE)
    folder = tempfile.mkdtemp(prefix=PREFIX)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = folder  # pgserver asks for it when it is imported
    try:
        from pgserver.postgres_server import get_server
    except ImportError:
        shutil.rmtree(folder)
        raise NoPostgres("the demo needs PostgreSQL from the package registry: pip install 'spinney[demo]'") from None
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
    note(Path(folder) / HOLDER, os.getpid())
    guard = sweeper(Path(folder) / PID_FILE, Path(folder))
    try:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        host = server.get_uri().rpartition("host=")[2]
        try:
            yield URL.create("postgresql+psycopg", username="postgres", database="postgres", query={"host": host})
        finally:
            server.cleanup()
            atexit.unregister(server._cleanup)  # or it would run once more, and leave a lock file where the folder was
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        guard.communicate()
