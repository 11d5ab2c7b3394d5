"""Reads everything that a house keeps, and names what is not what was written: what that costs, and what mends it.

Nothing is changed, and nothing of a patient is told. A house may be at work meanwhile: what it is writing has no name.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spinney.cohort.encoded import SUFFIX
from spinney.cohort.vault import Vault, read_note
from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import Registry
from spinney.connectors.mlflow.owed import OwedModel, owed_rounds
from spinney.errors import SpinneyError
from spinney.house.approvals import Approvals, known_in
from spinney.house.audit import Audit
from spinney.house.keys import KeyRing
from spinney.storage.files import RoundState
from spinney.study.study import Study

UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    zipfile.BadZipFile,
    pa.ArrowException,
    sqlite3.Error,
    SpinneyError,
)
NOTHING = "nothing: nights compare with one fewer"
BACKUP = "restore it from the house's backup"


@dataclass(frozen=True)
class Damage:
    """One thing that is not what was written."""

    path: Path
    what: str
    costs: str
    mend: str


@dataclass
class Verified:
    """What was read, in counts by kind, and what is damaged."""

    read: dict[str, int] = field(default_factory=dict)
    damaged: list[Damage] = field(default_factory=list)

    def look(
        self, kind: str, path: Path, read: Callable[..., object], *arguments: object, costs: str, mend: str
    ) -> None:
        """Read one thing."""
        self.read[kind] = self.read.get(kind, 0) + 1
        try:
            read(*arguments)
        except UNREADABLE as error:
            words = str(error).splitlines()[0] if isinstance(error, SpinneyError) else "can't be read"
            self.damaged.append(Damage(path, words, costs, mend))


def verify_home(home: Path, registry: RegistrySettings) -> Verified:
    """Everything, one after the other."""
    done, ring, audit = Verified(), KeyRing(home), Audit(home / "audit.jsonl")
    costs = "the house can't sign, and takes part in nothing"
    done.look("keys", ring.current, ring.identity, costs=costs, mend=f"{BACKUP}, or join again")
    costs = "nobody can say what left the house; where its end is damaged, nothing is sent any more"
    mend = "keep it and audit.head as evidence and move both away: a new log begins"
    done.look("audit log", audit.path, audit.verify, costs=costs, mend=mend)
    _look_at_papers(home, done)
    _look_at_nights(home, audit, done)
    if (home / "vault").exists():
        _look_at_vault(Vault(home), done)
    if (home / "registry").exists():
        _look_at_models(home, Registry(home, registry), done)
    return done


def _look_at_papers(home: Path, done: Verified) -> None:
    for name in known_in(home):
        papers = Approvals(home, name)
        if papers.approval is not None:
            path, mend = papers.folder / "study.yaml", "look at it and approve it again: spinney site approve STUDY"
            done.look("studies", path, _study_of, papers, costs="no night of this study", mend=mend)
        for version in papers.approved_versions:
            path, mend = papers.folder / "rosters" / f"{version}.json", f"{BACKUP}, or: spinney site approve-roster"
            done.look("rosters", path, papers.approved, version, costs="no round that runs with it", mend=mend)


def _look_at_nights(home: Path, audit: Audit, done: Verified) -> None:
    for path in _files(home, "nights/*/*.json"):
        done.look("nights", path, _json, path, costs="what came of that round", mend=BACKUP)
    for path in _files(home, "scored/*"):
        mend = "tell the coordinator before the next round"
        done.look("scored trees", path, _lines, path, costs="a tree could be scored twice", mend=mend)
    for folder in sorted((home / "rounds").glob("*/*/")):
        mend = "delete it: the next night begins anew"
        done.look("rounds", folder, _state, folder, costs="the round that runs", mend=mend)
    for folder in sorted((home / "epochs").glob("*/*/")):
        mend = "delete it: the next epoch begins anew"
        done.look("epochs", folder, _state, folder, costs="a guest until the next epoch", mend=mend)
    sent = {line.entry.digest for line in audit.lines() if line.entry.direction == "sent"}
    for path in _files(home, "outbox/*/*/*"):
        costs, mend = "this round, should the house be started again", "delete the folder of the round"
        done.look("outbox", path, _sent, path, sent, costs=costs, mend=mend)


def _look_at_vault(vault: Vault, done: Verified) -> None:
    costs = "pseudonyms change: own trees have no say on patients they knew"
    done.look("vault's key", vault.folder / "key", getattr, vault, "key", costs=costs, mend=BACKUP)
    for note in _files(vault.folder, "cohorts/*/*.json") + _files(vault.folder, "unripe/*/*.json"):
        mend, ref = f"delete it: rm {note.with_suffix('')}.*", read_note(note)
        if ref is None:
            done.look("cohorts", note, _refuse, "is no note of a cohort", costs=NOTHING, mend=mend)
            continue
        done.look("cohorts", ref.path, vault.read, ref, costs=NOTHING, mend=mend)
        arrays = ref.path.with_suffix(SUFFIX)
        if arrays.exists():
            costs = "the round that runs with them; else nothing"
            done.look("arrays", arrays, _arrays, arrays, costs=costs, mend=mend)
    for path in _files(vault.folder, "grown/*/*.npz"):
        costs = "own trees of that round have no say when their model is judged"
        done.look("who grew which tree", path, _arrays, path, costs=costs, mend=f"delete it: rm {path}")
    for path in _files(vault.folder.parent, "predictions/*/*.parquet"):
        costs = "what was said then is not held against what happened"
        done.look("predictions", path, pq.read_table, path, costs=costs, mend=f"delete it: rm {path}")


def _look_at_models(home: Path, registry: Registry, done: Verified) -> None:
    database, unusable = home / "registry" / "mlflow.db", "no model can be used"
    if database.exists():
        done.look("registry", database, _sound, database, costs=unusable, mend=BACKUP)
    for name in known_in(home):
        try:
            versions = registry.versions(name)
        except SpinneyError as error:
            done.look("registry", database, _refuse, str(error), costs=unusable, mend=BACKUP)
            continue
        for version in versions:
            mend = f"{BACKUP}, or: spinney model rollback" if version.aliases else BACKUP
            costs = f"{' and '.join(version.aliases)} can't be used" if version.aliases else "nothing that is in use"
            for read in (registry.model, registry.card):
                done.look("models", Path(str(version)), read, version, costs=costs, mend=mend)
        for number in owed_rounds(folder := home / "registry" / "owed" / name):
            path, costs = folder / str(number), "the model of that round"
            done.look("models put by", path, OwedModel.read, path, costs=costs, mend=f"delete it: rm -r {path}")


def _files(home: Path, pattern: str) -> list[Path]:
    return sorted(path for path in home.glob(pattern) if path.is_file() and not path.name.startswith("."))


def _study_of(papers: Approvals) -> Study:
    return papers.study


def _state(folder: Path) -> dict[str, Any]:
    return dict(RoundState(folder))


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _arrays(path: Path) -> None:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
        for name in kept.files:
            _ = kept[name]


def _lines(path: Path) -> None:
    whole = path.read_bytes().rpartition(b"\n")[0]
    for line in filter(None, whole.splitlines()):
        digest, number = json.loads(line)
        _ = str(digest), int(number)


def _sent(path: Path, sent: set[str]) -> None:
    if path.suffix != ".sealed" and hashlib.sha256(path.read_bytes()).hexdigest() not in sent:
        _refuse("is not what the audit log says was sent")


def _sound(database: Path) -> None:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as reader:
        (said,) = reader.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        _refuse("is damaged")


def _refuse(words: str) -> None:
    raise SpinneyError(words)
