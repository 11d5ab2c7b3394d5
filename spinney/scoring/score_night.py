"""A night of scoring at a site: who is to be scored, what the champion says, and where it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from spinney.cohort.handover import Handover
from spinney.cohort.pull import OpenRows, pull_open
from spinney.configuration.scores import ScoresSettings
from spinney.configuration.site import SiteSettings
from spinney.connectors.mlflow import Registry
from spinney.errors import SourceFailed, SpinneyError, StudyInvalid
from spinney.house.approvals import Approvals, the_study
from spinney.house.audit import Audit, AuditEntry
from spinney.scoring.monitor import Watch, promised, watched
from spinney.scoring.predictions import Predictions
from spinney.scoring.scores import ScoredBy, apply_model, to_write
from spinney.scoring.write_fhir import write_fhir
from spinney.scoring.write_table import write_table
from spinney.storage import locks
from spinney.storage.files import private_folder
from spinney.study.study import Study


class NoChampion(SpinneyError):
    """There is no model to apply; the message says how to get one."""


@dataclass(frozen=True)
class Said:
    """What the champion said tonight, in counts; the scores themselves are in the handover."""

    source: ScoredBy
    scored: int
    called: int
    new: int  # rows that this version had not seen before


class ScoreNight:
    """One site's scores for one study."""

    def __init__(self, site: SiteSettings, study: str | None = None, now: datetime | None = None) -> None:
        self.site = site
        self.study: Study = Approvals(site.home, study or the_study(site.home)).study
        self.now = now or datetime.now(UTC)
        self.handover = Handover(site.vault, self.study.name)
        self.predictions = Predictions(site.home, self.study.name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One run at a time; who the patients are is forgotten at its end, however it ends."""
        folder = private_folder(self.site.vault.folder / "handover")
        busy = SourceFailed(f"another run scores for {self.study.name}; wait until it has ended")
        with locks.alone(folder / f"{self.study.name}.lock", busy):
            try:
                yield
            finally:
                self.handover.forget()

    @property
    def places(self) -> ScoresSettings:
        """Where scores go."""
        if self.site.scores is None:
            raise StudyInvalid(["site.yaml has no `scores`; write where they go: scores: {table: {url: ...}}"])
        return self.site.scores

    def pull(self) -> OpenRows:
        """Tonight's open rows; not before it is clear that there is a model, and a place for what it says."""
        if self.places and self._registry.find(self.study.name, "champion") is None:
            raise NoChampion(
                f"{self.site.name} has no champion of {self.study.name} yet; take part in a round, "
                "or promote a candidate: spinney model promote"
            )
        return pull_open(self.study, self.site, now=self.now)

    def apply_model(self, rows: OpenRows) -> Said:
        """Let the champion speak about every open row, and keep what it says until the outcomes are known."""
        found = self._registry.champion(self.study.name)
        if found is None:
            raise NoChampion(f"the champion of {self.study.name} is gone; promote a version: spinney model promote")
        version, model = found
        scores = apply_model(self.site.vault, rows.unripe, self.study, model)
        self.handover.keep_scores(scores)
        new = self.predictions.add(scores, version.number, self.now)
        called = int(sum(scores["decision"].to_pylist()))
        return Said(ScoredBy(version.name, version.number, version.model_digest), scores.num_rows, called, new)

    def write_table(self, said: Said) -> int:
        """Scores into the hospital's table; says how many."""
        table = self.places.table
        if table is None:
            return 0
        scores = to_write(self.handover, said.source, self.study.name)
        count = write_table(table, scores, self.study.name, said.source, self.now)
        self._note(
            f"{count:,} scores of {said.source.model} version {said.source.version} are in the table {table.table}."
        )
        return count

    def write_fhir(self, said: Said) -> int:
        """Scores into the FHIR server; says how many are new there."""
        fhir = self.places.fhir
        if fhir is None:
            return 0
        scores = to_write(self.handover, said.source, self.study.name)
        count = write_fhir(fhir, scores, self.study, said.source, self.now)
        self._note(f"{count:,} new scores of {said.source.model} version {said.source.version} are in the FHIR server.")
        return count

    @property
    def _registry(self) -> Registry:
        return Registry(self.site.home, self.site.registry)

    def _note(self, words: str) -> None:
        entry = AuditEntry(direction="noted", kind="Scores", study=self.study.name, words=words)
        Audit(self.site.home / "audit.jsonl").append(entry, self.now)


def watch(site: SiteSettings, study: Study) -> Watch | None:
    """How the model in use does: the champion, or while it has said nothing yet, the last one that has."""
    predictions = Predictions(site.home, study.name)
    spoken = predictions.versions()
    if not spoken:
        return None
    registry = Registry(site.home, site.registry)
    champion = registry.find(study.name, "champion")
    number = champion.number if champion is not None and champion.number in spoken else spoken[-1]
    version = registry.find(study.name, number)
    promise = promised(registry.evidence(version)) if version is not None else None
    return watched(site.vault, study, predictions.of(number), number, promise)
