"""Who has objected as of now: all lists of a site together, and what the vault remembers of them from night to night.

vault/objections/STUDY.json    how long each list was, and keyed hashes of those whom a kept store has lost
"""

from __future__ import annotations

import hmac
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from spinney.cohort.as_of import moment_of
from spinney.cohort.vault import Vault
from spinney.connectors.opt_out.identifiers import Named, names_of, plain_id
from spinney.connectors.opt_out.lists import ListContent, ListSettings, Place
from spinney.connectors.sources import Source, Surroundings
from spinney.errors import SourceFailed
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder
from spinney.study.study import Study

TAG_BYTES = 12
UNKNOWN = "somebody whom the source says too little of"


@dataclass(frozen=True)
class OptOut:
    """The lists of a site, and where they are read."""

    lists: tuple[ListSettings, ...] = ()
    around: Surroundings = field(default_factory=Surroundings)
    source: Callable[[], Source] | None = None
    """The site's own source, as one that keeps nothing from night to night."""
    as_of: str | None = None
    """What counts as now in that source, where its dates are shifted."""


@dataclass(frozen=True)
class ObjectionCounts:
    """What may be said of the lists: how many, never who."""

    listed: int = 0
    """Identifiers that object."""
    unmatched: int = 0
    """Of these, such as belong to nobody whom the source has."""
    objecting: int = 0
    """Patients of the source who are left out because they object."""
    agreed: int = 0
    """Identifiers that agree, where the study takes only those who do."""
    unasked: int = 0
    """Patients left out because the study takes only those who agree."""
    unknown: int = 0
    """Patients left out because the source says too little of them to look them up."""
    unclear: int = 0
    """Consents that say neither yes nor no."""
    digest: str = ""
    """The lists' HMAC-SHA-256 under the house's key."""

    def sentence(self) -> str:
        """For people."""
        words = [f"{self.listed:,} identifiers object, {self.unmatched:,} of them of nobody whom the source has"]
        words.append(f"{self.objecting:,} patients left out because they object")
        if self.agreed or self.unasked:
            words.append(f"{self.agreed:,} identifiers agree, {self.unasked:,} patients left out because they have not")
        if self.unknown:
            words.append(f"{self.unknown:,} left out because the source does not say who they are")
        if self.unclear:
            words.append(f"{self.unclear:,} consents say neither yes nor no")
        return "; ".join(words)


@dataclass(frozen=True)
class Objections:
    """Who objects and who agrees."""

    objects: frozenset[Named] = frozenset()
    agrees: frozenset[Named] = frozenset()
    required: bool = False
    """Only those who agree take part."""
    unclear: int = 0
    digest: str = ""

    def __repr__(self) -> str:
        return f"Objections({len(self.objects)})"  # tracebacks and logs may show a repr

    @property
    def anybody(self) -> bool:
        """Whether somebody may have to be left out."""
        return self.required or bool(self.objects)

    @property
    def systems(self) -> frozenset[str]:
        """Systems of identifiers, other than the source's own ids, by which patients have to be looked up."""
        return frozenset(one.system for one in (*self.objects, *(self.agrees if self.required else ())) if one.system)


class ObjectionJudge:
    """Says of every patient of a source whether they are left out, and counts them once."""

    def __init__(self, objections: Objections) -> None:
        self.objections = objections
        self._aliases: dict[str, set[Named]] = {}
        self._described: set[str] | None = None
        self._verdicts: dict[str, str] = {}
        self._matched: set[Named] = set()

    def describe(self, patient: str, identifiers: Iterable[tuple[str, str]]) -> None:
        """What else a patient of the source is called: pairs of system and value."""
        if self._described is None:
            self._described = set()
        known = self.objections.systems
        names = {name for system, value in identifiers if system in known for name in names_of(value, system)}
        names &= self.objections.objects | self.objections.agrees
        self._described.add(plain_id(patient))
        if names:
            self._aliases.setdefault(plain_id(patient), set()).update(names)

    def out(self, patient: str) -> bool:
        """Whether a patient is left out."""
        verdict = self._verdicts.get(patient)
        if verdict is None:
            verdict = self._verdicts[patient] = self._verdict(patient)
        return bool(verdict)

    def _verdict(self, patient: str) -> str:
        names = {*names_of(patient), *self._aliases.get(plain_id(patient), ())}
        if objecting := names & self.objections.objects:
            self._matched |= objecting
            return "objecting"
        if self.objections.systems and plain_id(patient) not in (self._described or ()):
            return "unknown"
        if self.objections.required and not names & self.objections.agrees:
            return "unasked"
        return ""

    @property
    def matched(self) -> frozenset[Named]:
        """Who of the lists is in the source."""
        return frozenset(self._matched)

    def knows(self, system: str, value: str) -> bool:
        """Whether somebody who objects is called so; counted as found."""
        names = {*names_of(value, system)} & self.objections.objects if system else set()
        self._matched |= names
        return bool(names)

    @property
    def left_out(self) -> list[str]:
        """The source's own ids of those who are left out."""
        return [patient for patient, verdict in self._verdicts.items() if verdict]

    @property
    def staying(self) -> list[str]:
        """The source's own ids of all others."""
        return [patient for patient, verdict in self._verdicts.items() if not verdict]

    @property
    def counts(self) -> ObjectionCounts:
        """What came of it; a patient counts once, however the source writes the id."""
        people: dict[str, set[str]] = {}
        for patient, verdict in self._verdicts.items():
            people.setdefault(verdict, set()).add(plain_id(patient))
        told = self.objections
        return ObjectionCounts(
            listed=len(told.objects),
            unmatched=len(told.objects - self._matched),
            objecting=len(people.get("objecting", ())),
            agreed=len(told.agrees) if told.required else 0,
            unasked=len(people.get("unasked", ())),
            unknown=len(people.get("unknown", ())),
            unclear=told.unclear,
            digest=told.digest,
        )


def who_has_objected(opt_out: OptOut, study: Study, vault: Vault, staging: Path, now: datetime) -> Objections:
    """All lists as of now. SourceFailed if one can't be read, or is empty and was not the night before.

    `staging`: a private folder of a pull, in which nothing of it stays.
    """
    required = study.consent == "required"
    if required and not any(one.kind == "consent" or getattr(one, "means", "") == "consent" for one in opt_out.lists):
        raise SourceFailed(
            f"{study.name} takes only patients who agree; say in site.yaml under opt_out where that is written: a list "
            "of kind consent, or one with means: consent"
        )
    before = Memory.read(vault, study)
    said = [_read(one, opt_out, staging / "opt-out", now) for one in opt_out.lists]
    for one, answer in zip(opt_out.lists, said, strict=True):
        if not answer.entries and before.lengths.get(one.key) and not one.may_be_empty:
            raise SourceFailed(
                f"{one.title} is empty and had {before.lengths[one.key]:,} entries the night before; mend it, or if "
                "nobody objects any more say may_be_empty: true in opt_out of site.yaml: until then nobody is pulled"
            )
    objects = frozenset[Named]().union(*(answer.objects for answer in said))
    agrees = frozenset[Named]().union(*(answer.agrees for answer in said))
    lengths = {one.key: answer.entries for one, answer in zip(opt_out.lists, said, strict=True)}
    before.with_lengths(lengths).write(vault, study)
    unclear = sum(answer.unclear for answer in said)
    return Objections(objects, agrees, required, unclear, lists_digest(vault, objects, agrees))


def pull_objections(opt_out: OptOut, study: Study, vault: Vault, now: datetime) -> Objections:
    """Who has objected as of now, without a pull of anything else."""
    with vault.staging(f"{study.name}.objections") as staging:
        return who_has_objected(opt_out, study, vault, staging, now)


def _read(one: ListSettings, opt_out: OptOut, folder: Path, now: datetime) -> ListContent:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        shifted = None if opt_out.as_of is None else moment_of(opt_out.as_of, opt_out.around.timezone)
        return one.read(Place(folder, now, opt_out.around, opt_out.source, shifted))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Memory:
    """What is known from one night to the next, in counts and keyed hashes: no identifier and no pseudonym."""

    lengths: Mapping[str, int] = field(default_factory=dict)
    """Of every list."""
    missing: frozenset[str] = frozenset()
    """Tags of those whom a store that goes on where it stopped has lost."""
    agreed: frozenset[str] = frozenset()
    """Tags of those who agreed, where the study takes only those."""

    @classmethod
    def read(cls, vault: Vault, study: Study) -> Memory:
        """Of the night before; empty where there was none."""
        path = cls._path(vault, study)
        try:
            words = json.loads(path.read_bytes()) if path.exists() else {}
            lengths = {str(key): int(count) for key, count in words.get("lengths", {}).items()}
            return cls(lengths, frozenset(words.get("missing", ())), frozenset(words.get("agreed", ())))
        except (ValueError, AttributeError, TypeError):
            raise SourceFailed(
                f"{path} is damaged; delete it: no list is compared with the night before then"
            ) from None

    def with_lengths(self, lengths: Mapping[str, int]) -> Memory:
        """The same with lists of these lengths."""
        return replace(self, lengths=lengths)

    def write(self, vault: Vault, study: Study) -> None:
        """Keep it for the next night."""
        words = {"lengths": dict(self.lengths), "missing": sorted(self.missing), "agreed": sorted(self.agreed)}
        write_whole(self._path(vault, study), json.dumps(words).encode())

    @staticmethod
    def _path(vault: Vault, study: Study) -> Path:
        return private_folder(vault.folder / "objections") / f"{study.name}.json"


def forget_store_that_lacks_somebody(vault: Vault, study: Study, objections: Objections) -> None:
    """Where somebody may take part again whom a kept store has lost, the source has to bring everything anew."""
    store, memory = vault.folder / "stores" / study.name, Memory.read(vault, study)
    if not store.exists():
        return
    back = memory.missing - tags(vault, objections.objects)
    new = tags(vault, objections.agrees) - memory.agreed if objections.required else set[str]()
    if back or new:
        shutil.rmtree(store)
        replace(memory, missing=frozenset(), agreed=frozenset()).write(vault, study)


def remember_store(vault: Vault, study: Study, judge: ObjectionJudge) -> None:
    """Note whom tonight's store has lost, if the source keeps one."""
    if not (vault.folder / "stores" / study.name).exists():
        return
    memory, told = Memory.read(vault, study), judge.objections
    lost = tags(vault, judge.matched) | ({UNKNOWN} if judge.counts.unknown else set())
    missing = (memory.missing & tags(vault, told.objects)) | lost
    agreed = tags(vault, told.agrees) if told.required else set[str]()
    replace(memory, missing=frozenset(missing), agreed=frozenset(agreed)).write(vault, study)


def lists_digest(vault: Vault, objects: Iterable[Named], agrees: Iterable[Named]) -> str:
    """The lists' HMAC-SHA-256 under the house's key: the same for the same identifiers in any order."""
    words = json.dumps([sorted(objects), sorted(agrees)], ensure_ascii=False).encode()
    return hmac.digest(vault.key, b"opt-out/" + words, "sha256").hex()


def tags(vault: Vault, names: Iterable[Named]) -> set[str]:
    """Keyed hashes by which a later night can tell that somebody is not on a list any more; no pseudonym of anybody."""
    key = vault.key
    words = (json.dumps(one, ensure_ascii=False).encode() for one in names)
    return {hmac.digest(key, b"opt-out-tag/" + word, "sha256")[:TAG_BYTES].hex() for word in words}
