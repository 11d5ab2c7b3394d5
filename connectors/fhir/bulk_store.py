"""Last night's resources, so that tonight's export only has to bring what has changed.

A folder per night and `store.json` that names the one that counts: a pull that dies half-way leaves the old one valid.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from spinney.connectors.fhir.search import instant
from spinney.connectors.fhir.shelf import Shelf, from_line, lines_of, parse_instant
from spinney.connectors.sources import Wanted


@dataclass(frozen=True)
class Night:
    """What is in the store."""

    folder: str
    server: str
    """Whose resources these are: address and kind of export."""
    taken: str | None
    """The server's time of the newest export; null: it did not say, so nothing can be built on it."""
    rebuilt: str
    """When everything was last read anew."""
    holds: Mapping[str, Mapping[str, object]]
    """By kind: the codes ([]: all) and the earliest time (null: all) that were asked for."""


class BulkStore:
    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(mode=0o700, parents=True, exist_ok=True)

    def last_night(self) -> Night | None:
        try:
            return Night(**json.loads((self.home / "store.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def begin(self) -> Path:
        """A folder for tonight."""
        last = self.last_night()
        folder = self.home / ("b" if last is not None and last.folder == "a" else "a")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder

    def carry_over(self, night: Night, shelf: Shelf, kinds: Sequence[str]) -> None:
        """Add what last night had and tonight's export neither brings nor deletes."""
        for kind in kinds:
            path = self.home / night.folder / f"{kind}.ndjson"
            for line in lines_of(path) if path.exists() else ():
                shelf.add_older(from_line(line, kind))

    def commit(self, night: Night) -> None:
        """From here on tonight's folder is the one that counts."""
        draft = self.home / "store.new"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(night)), encoding="utf-8")
        draft.replace(self.home / "store.json")
        for old in self.home.iterdir():
            if old.is_dir() and old.name != night.folder:
                shutil.rmtree(old)


def usable_since(night: Night | None, server: str, wanted: Sequence[Wanted], rebuild_days: float) -> str | None:
    """From when on an export completes the store; None: everything must be read anew."""
    if night is None or night.taken is None or night.server != server:
        return None
    rebuilt = parse_instant(night.rebuilt)
    if rebuilt is None or (datetime.now(UTC) - rebuilt).total_seconds() > rebuild_days * 86_400:
        return None
    return night.taken if all(_covers(night.holds.get(one.kind), one) for one in wanted) else None


def described(wanted: Sequence[Wanted]) -> dict[str, dict[str, object]]:
    """What is asked for, by kind, as the store remembers it."""
    holds: dict[str, dict[str, object]] = {}
    for kind in dict.fromkeys(one.kind for one in wanted):
        same = [one for one in wanted if one.kind == kind]
        codes = sorted({code for one in same for code in one.codes}) if all(one.codes for one in same) else []
        starts = [one.since for one in same if one.since is not None]
        since = instant(min(starts)) if len(starts) == len(same) else None
        holds[kind] = {"codes": codes, "since": since}
    return holds


def _covers(held: Mapping[str, object] | None, wanted: Wanted) -> bool:
    if held is None:
        return False
    codes, since = held["codes"], held["since"]
    enough_codes = not codes or (bool(wanted.codes) and isinstance(codes, list) and set(wanted.codes) <= set(codes))
    return enough_codes and (since is None or (wanted.since is not None and str(since) <= instant(wanted.since)))
