"""Where MLflow's database says that files are: absolute addresses, which a home that was moved leaves behind.

MLflow makes every address absolute, also one that it was given as a relative one. So a database that speaks of
`registry/artifacts` of another home is told where it is now, before anything is read: a home can be moved, renamed, or
restored beside the one that it is a copy of, and the copy never touches the other's files.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

OURS = "/registry/artifacts"
COLUMNS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
    ("logged_models", "artifact_location"),
)
PATIENCE = 20.0  # seconds, with a database that somebody else writes


def moved_from(database: Path, artifacts: Path) -> list[str]:
    """Where else experiments of ours keep their files, as the database says."""
    if not database.exists():
        return []
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)) as reader:
        found = [str(one) for (one,) in reader.execute("SELECT DISTINCT artifact_location FROM experiments") if one]
    return [one for one in found if one.endswith(OURS) and one != artifacts.as_uri()]


def readdress(database: Path, artifacts: Path) -> None:
    """Let every address lie in this folder, all in one transaction."""
    with closing(sqlite3.connect(database, timeout=PATIENCE)) as writer, writer:
        there = {(table, column) for table, column in COLUMNS if column in _columns(writer, table)}
        for before in moved_from(database, artifacts):
            for table, column in sorted(there):
                # Both names are constants of ours; SQLite takes no parameters in their place.
                change = f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?"  # noqa: S608
                writer.execute(change, (artifacts.as_uri(), len(before) + 1, len(before), before))


def _columns(reader: sqlite3.Connection, table: str) -> set[str]:
    return {str(name) for _, name, *_ in reader.execute(f"PRAGMA table_info({table})")}
