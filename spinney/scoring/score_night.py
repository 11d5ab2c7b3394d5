"""A night of scoring at a site: who is to be scored, what the champion says, and where it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from spinney.cohort.handover import Handover
from spinney.cohort.pull import PullPlan, pull_open
from spinney.cohort.pull_report import OpenRows
from spinney.cohort.vault import Vault
from spinney.errors import SourceFailed, SpinneyError, StudyInvalid
from spinney.scoring.monitor import Watch, promised, watched
from spinney.scoring.predictions import Predictions
from spinney.scoring.scores import ScoredBy, apply_model, to_write
from spinney.scoring.settings import ScoresSettings
from spinney.scoring.write_fhir import write_fhir
from spinney.scoring.write_table import write_table
from spinney.storage import locks
from spinney.storage.private import private_folder
from spinney.study.study import Study

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest


class NoChampion(SpinneyError):
    """There is no model to apply; the message says how to get one."""


class NamedVersion(Protocol):
    """A model in the registry, as far as scores have to name it."""

    @property
    def name(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def model_digest(self) -> str: ...


class Champions(Protocol):
    """The registry of the site, as far as scoring needs it."""

    def find(self, study: str, which: str | int) -> NamedVersion | None:
        """The version with this number or alias, if there is one."""

    def champion(self, study: str) -> tuple[NamedVersion, FederatedForest] | None:
        """The model in use."""

    def evidence(self, version: Any) -> dict[str, Any]:
        """Why a version was chosen, and how it did on test rows."""


@dataclass(frozen=True)
class ScoringResult:
    """What the champion said tonight, in counts; the scores themselves are in the handover."""

    source: ScoredBy
    scored: int
    called: int
    new: int  # rows that this version had not seen before


@dataclass(frozen=True)
class ScoreNight:
    """One site's scores for one study."""

    site: str
    study: Study
    home: Path
    plan: PullPlan
    champions: Champions
    scores: ScoresSettings | None
    note: Callable[[str], None]  # into the audit log
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def handover(self) -> Handover:
        """Who the patients are, until their scores are written back."""
        return Handover(self.plan.vault, self.study.name)

    @property
    def predictions(self) -> Predictions:
        """What was said, until the outcomes are known."""
        return Predictions(self.home, self.study.name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One run at a time; who the patients are is forgotten at its end, however it ends."""
        folder = private_folder(self.plan.vault.folder / "handover")
        busy = SourceFailed(f"another run scores for {self.study.name}; wait until it has ended")
        with locks.alone(folder / f"{self.study.name}.lock", busy):
            try:
                yield
            finally:
                self.handover.forget()

    @property
    def places(self) -> ScoresSettings:
        """Where scores go."""
        if self.scores is None:
            raise StudyInvalid(["site.yaml has no `scores`; write where they go: scores: {table: {url: ...}}"])
        return self.scores

    def pull(self) -> OpenRows:
        """Tonight's open rows; not before it is clear that there is a model, and a place for what it says."""
        if self.places and self.champions.find(self.study.name, "champion") is None:
            raise NoChampion(
                f"{self.site} has no champion of {self.study.name} yet; take part in a round, "
                "or promote a candidate: spinney model promote"
            )
        return pull_open(self.study, self.plan, now=self.now)

    def apply_model(self, rows: OpenRows) -> ScoringResult:
        """Let the champion speak about every open row, and keep what it says until the outcomes are known."""
        found = self.champions.champion(self.study.name)
        if found is None:
            raise NoChampion(f"the champion of {self.study.name} is gone; promote a version: spinney model promote")
        version, model = found
        scores = apply_model(self.plan.vault, rows.unripe, self.study, model)
        self.handover.keep_scores(scores)
        new = self.predictions.add(scores, version.number, self.now)
        called = int(sum(scores["decision"].to_pylist()))
        return ScoringResult(ScoredBy(version.name, version.number, version.model_digest), scores.num_rows, called, new)

    def write_table(self, said: ScoringResult) -> int:
        """Scores into the hospital's table; says how many."""
        table = self.places.table
        if table is None:
            return 0
        scores = to_write(self.handover, said.source, self.study.name)
        count = write_table(table, scores, self.study.name, said.source, self.now)
        self.note(
            f"{count:,} scores of {said.source.model} version {said.source.version} are in the table {table.table}."
        )
        return count

    def write_fhir(self, said: ScoringResult) -> int:
        """Scores into the FHIR server; says how many are new there."""
        fhir = self.places.fhir
        if fhir is None:
            return 0
        scores = to_write(self.handover, said.source, self.study.name)
        count = write_fhir(fhir, scores, self.study, said.source, self.now)
        self.note(f"{count:,} new scores of {said.source.model} version {said.source.version} are in the FHIR server.")
        return count


def watch(home: Path, vault: Vault, study: Study, champions: Champions) -> Watch | None:
    """How the model in use does: the champion, or while it has said nothing yet, the last one that has."""
    predictions = Predictions(home, study.name)
    spoken = predictions.versions()
    if not spoken:
        return None
    champion = champions.find(study.name, "champion")
    number = champion.number if champion is not None and champion.number in spoken else spoken[-1]
    version = champions.find(study.name, number)
    promise = promised(champions.evidence(version)) if version is not None else None
    return watched(vault, study, predictions.of(number), number, promise)
