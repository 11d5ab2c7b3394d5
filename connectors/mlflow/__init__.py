"""The models of a site, in MLflow: SQLite in the site's folder, or the hospital's server.

A version is a `mlflow.pyfunc` model with a loader of ours and the forest as checked arrays; beside it the evidence for
it and its lineage. Three aliases: `champion` is in use, `candidate` waits, `previous` was champion before.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.choice.evidence import evidence_of, headline
from spinney.choice.outcome import Outcome
from spinney.choice.saved import ModelDescription
from spinney.connectors.mlflow.card import card
from spinney.connectors.mlflow.fair import fair
from spinney.connectors.mlflow.lineage import FULL, Lineage, lineage_of, silenced, without_house
from spinney.connectors.mlflow.loader import WORDS, read_model, read_saved_words, write_model
from spinney.connectors.mlflow.owed import OwedModel, owed_rounds
from spinney.connectors.mlflow.store import MODEL, ModelStore, RegistryFailed, Version, ensure_database, quiet_mlflow
from spinney.errors import CohortRejected
from spinney.storage.files import room_in
from spinney.storage.private import locked, private_folder
from spinney.study.settings import Feature
from spinney.study.study import Study

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest
    from spinney.forest.tree import Forest

    Regrow = Callable[[FederatedForest, int, int], Forest | None]

__all__ = [
    "CANDIDATE",
    "CHAMPION",
    "KEPT",
    "LATE",
    "PREVIOUS",
    "PROMOTED",
    "Lineage",
    "Registry",
    "RegistryFailed",
    "Version",
    "lineage_of",
]

CHAMPION, CANDIDATE, PREVIOUS = "champion", "candidate", "previous"
PROMOTED, KEPT, LATE = "promoted", "kept as candidate", "approved, but a later round's model came before it"
DATA, LOADER = "data", "spinney.connectors.mlflow.loader"
EVIDENCE, LINEAGE = "evidence.json", "lineage.json"
REMAINS = (
    "The trees of {site} are gone from this model and the other weights are renormalised. What the counts of {site} "
    "did to the other trees' weights remains until the next round: summing again without it would reveal it."
)
BESIDE = (
    " What {site} has added to the common logistic regression ends with the next epoch, which is fitted without it."
)
SILENCED = (
    "{trees} own trees vote no more, because a patient who grew them has objected; the other weights are renormalised. "
    "The next round chooses anew."
)
REGROWN = " {trees} others were grown in their place on the patients of now; they stay here, and were never measured."


class RegistryPlace(Protocol):
    """Where the registry is: the `registry` section of site.yaml."""

    @property
    def tracking(self) -> str:
        """Address of an MLflow server; empty: SQLite in the home folder."""

    @property
    def prefix(self) -> str:
        """Put before every model's name."""


class Registry:
    """One site's models. Processes of the house take turns in changing it."""

    def __init__(self, home: Path, settings: RegistryPlace) -> None:
        self.folder, self._prefix = private_folder(home.resolve() / "registry"), settings.prefix
        self._database = None if settings.tracking else self.folder / "mlflow.db"
        artifacts = None if settings.tracking else self.folder / "artifacts"
        self.store = ModelStore(settings.tracking or f"sqlite:///{self._database}", artifacts)

    def name_of(self, study: str) -> str:
        """What a study's model is called in MLflow."""
        return f"{self._prefix}{study}"

    def versions(self, study: str) -> list[Version]:
        """All versions of a study's model, the newest first. Where there is no database yet, none is made."""
        return [] if self._database and not self._database.exists() else self.store.versions(self.name_of(study))

    def version(self, study: str, which: str | int) -> Version:
        """The version with this number or alias."""
        return self._version(study, self.versions(study), which)

    def find(self, study: str, which: str | int) -> Version | None:
        """The version with this number or alias, if there is one."""
        return _find(self.versions(study), which)

    def champion(self, study: str) -> tuple[Version, FederatedForest] | None:
        """The model in use."""
        found = self.find(study, CHAMPION)
        return None if found is None else (found, self.model(found))

    def model(self, version: Version) -> FederatedForest:
        """A version's model, checked."""
        with self.store.files(version, f"{MODEL}/{DATA}/{DATA}") as folder:
            model = read_model(folder)
        if model.digest != version.model_digest:
            raise RegistryFailed(f"{version} holds another model than its lineage says; restore it or roll back")
        return model

    def lineage(self, version: Version) -> Lineage:
        """Where a version comes from."""
        return Lineage.model_validate(self._json(version, LINEAGE))

    def evidence(self, version: Version) -> dict[str, Any]:
        """Why it was chosen, and how it did on test rows."""
        return self._json(version, EVIDENCE)

    def register(self, study: Study, outcome: Outcome, lineage: Lineage) -> Version:
        """A round's model as a new version and candidate; the same version if this round was registered before."""
        owed = _owed_by(study, outcome, lineage, None)
        with locked(self.folder):
            return self._registered(owed.model, lineage, owed.evidence, owed.precision, owed.figures)

    def owe(self, study: Study, outcome: Outcome, lineage: Lineage, promote: bool | None) -> None:
        """Put a round's model by, so that it is registered whatever happens; for `promote`: None: a steward decides."""
        folder = self._owed(study.name) / str(lineage.round)
        if not folder.exists():
            _owed_by(study, outcome, lineage, promote).put_by(folder)

    def owed(self, study: str) -> list[int]:
        """Rounds whose models are put by and not registered, the oldest first."""
        return owed_rounds(self._owed(study))

    def pay(self, study: str, round_: int) -> Version:
        """Register a model that was put by, and promote it or leave it, as was said then."""
        folder = self._owed(study) / str(round_)
        owed = OwedModel.read(folder)
        with locked(self.folder):
            version = self._registered(owed.model, owed.lineage, owed.evidence, owed.precision, owed.figures)
        if owed.promote is not None:
            version = self.settle(study, version.number, owed.promote)
        shutil.rmtree(folder)
        return version

    def _owed(self, study: str) -> Path:
        return self.folder / "owed" / study

    def promote(self, study: str, number: int) -> Version:
        """Make a version the champion; the one before it becomes `previous`."""
        return self._in_use(study, number)

    def settle(self, study: str, number: int, promote: bool) -> Version:
        """Promote or leave a round's candidate, once: a re-run doesn't undo what people did since.

        A yes that comes late leaves the model of a newer round in its place.
        """
        with locked(self.folder):
            known = self.versions(study)
            version = self._version(study, known, number)
            if version.said("settled"):
                return version
            fate = KEPT if not promote else LATE if _newer(known, version) else PROMOTED
            if fate == PROMOTED:
                self._promote(known, version)
            self.store.tag(version, "settled", fate)
        return self.version(study, number)

    def newer(self, study: str, version: Version) -> Version | None:
        """What a version must not take the place of: a later round's model in use, or one that waits for a decision."""
        return _newer(self.versions(study), version)

    def rollback(self, study: str) -> Version:
        """The previous champion is champion again; a second rollback takes the first one back."""
        return self._in_use(study, PREVIOUS)

    def withdraw(self, study: str, site: str, until: int | None = None) -> list[Version]:
        """Take a house's trees out of every model up to a round, and delete the versions that held them.

        Says which versions are new. An alias whose model has no other trees means nothing afterwards.
        """
        with locked(self.folder):
            holding = [one for one in self.versions(study) if self._holds(one, site, until)]
            made = [kept for one in reversed(holding) if one.aliases and (kept := self._without(one, site))]
            for version in holding:
                self._delete(study, version)
        numbers = {version.number for version in made}
        return [version for version in self.versions(study) if version.number in numbers]

    def silence(self, study: str, trees: Collection[str], regrow: Regrow | None = None) -> list[Version]:
        """Take single own trees (by digest) out of every model, and delete the versions that held them.

        Where fewer than half of a model's own trees are left, `regrow` may grow others in the place of all that are
        gone: for a model of a round, so many. Says which versions are new. An alias whose model has no other trees
        means nothing afterwards.
        """
        asked = hashlib.sha256("\n".join(sorted(trees)).encode()).hexdigest()[:16]
        made: list[Version] = []
        with locked(self.folder):
            for version in reversed([one for one in self.versions(study) if one.said("heard") != asked]):
                model = self.model(version)
                kept = np.flatnonzero([tree not in trees for tree in model.forest_.digests])
                if len(kept) == len(model.forest_):
                    self.store.tag(version, "heard", asked)
                    continue
                if version.aliases and (left := self._silenced(version, model, kept, regrow)):
                    made.append(left)
                self._delete(study, version)
        numbers = {version.number for version in made}
        return [version for version in self.versions(study) if version.number in numbers]

    def card(self, version: Version) -> str:
        """What people should know about a version, in Markdown."""
        return card(version, self.lineage(version), self.evidence(version), self.features(version))

    def fair(self, version: Version) -> dict[str, Any]:
        """What catalogues should know about it, as JSON-LD."""
        return fair(version, self.lineage(version), self.evidence(version), self.features(version))

    def features(self, version: Version) -> tuple[Feature, ...]:
        """What a version asks about a patient."""
        return self._words(version).features

    def _registered(
        self,
        model: FederatedForest,
        lineage: Lineage,
        evidence: Mapping[str, Any],
        precision: float,
        figures: Mapping[str, float],
    ) -> Version:
        name = self.name_of(lineage.study)
        if self._database:
            ensure_database(self._database)
        known = self.store.versions(name)
        version = next((one for one in known if one.said("key") == lineage.key), None)
        if version is None:
            with room_in(self.folder):
                files = _written(_emptied(self.folder / "work"), model, lineage, evidence, precision)
                called = f"{lineage.study}, round {lineage.round}, {lineage.site}"
                said, done = "\n\n".join(evidence.get("answers", ())), {one.run for one in known}
                self.store.create(name, files, lineage.tags(), figures, done, called, said)
            shutil.rmtree(files.parent)
            known = self.store.versions(name)
            version = next(one for one in known if one.said("key") == lineage.key)
        newest = all(version.number >= one.number for one in known)
        if newest and not version.aliases and not version.said("settled"):
            self.store.point(CANDIDATE, name, version.number)
        return self.version(lineage.study, version.number)

    def _version(self, study: str, known: Sequence[Version], which: str | int) -> Version:
        found = _find(known, which)
        if found is None:
            raise RegistryFailed(f"there is no {self.name_of(study)} {which} in the registry; see: spinney model list")
        return found

    def _in_use(self, study: str, which: str | int) -> Version:
        """Let a version be the champion, whatever was decided before."""
        with locked(self.folder):
            known = self.versions(study)
            version = self._version(study, known, which)
            self._promote(known, version)
            return self.version(study, version.number)

    def _promote(self, known: Sequence[Version], version: Version) -> None:
        champion = _find(known, CHAMPION)
        if champion is None or champion.number != version.number:
            moves = [(PREVIOUS, champion)] if champion is not None else []
            # A kill between the two must not lose which version is wanted: a rollback names it by `previous` alone.
            moves.insert(0 if PREVIOUS in version.aliases else len(moves), (CHAMPION, version))
            for alias, one in moves:
                self.store.point(alias, one.name, one.number)
        if CANDIDATE in version.aliases:
            self.store.unpoint(CANDIDATE, version.name)

    def _holds(self, version: Version, site: str, until: int | None) -> bool:
        if until is not None and version.round > until:
            return False
        told = version.said("trees")
        return site in (self.lineage(version).trees if told == FULL else json.loads(told))

    def _without(self, version: Version, site: str) -> Version | None:
        """The same version without a house's trees, under the same aliases."""
        try:
            model = self.model(version).without(site)
        except CohortRejected:  # all of its trees are that house's
            return None
        told = {"withdrawn": what_remains(site, model)}
        return self._instead(version, model, without_house(self.lineage(version), site, model), told)

    def _silenced(
        self, version: Version, model: FederatedForest, kept: NDArray[np.int64], regrow: Regrow | None
    ) -> Version | None:
        """The same version without some trees, under the same aliases."""
        gone, lineage = len(model.forest_) - len(kept), self.lineage(version)
        left = [model.owners_[place] for place in kept].count(lineage.site)
        once = lineage.trees.get(lineage.site, 0) + lineage.silenced - lineage.regrown
        grown = regrow(model, version.round, once - left) if regrow is not None and 2 * left < once else None
        try:
            made = model.of_trees(kept) if grown is None else model.with_others(kept, grown, lineage.site)
        except CohortRejected:
            return None
        told = SILENCED.format(trees=gone) + (REGROWN.format(trees=len(grown)) if grown is not None else "")
        regrown = 0 if grown is None else len(grown)
        return self._instead(version, made, silenced(lineage, gone, regrown, made), {"silenced": told})

    def _instead(self, version: Version, model: FederatedForest, lineage: Lineage, told: dict[str, str]) -> Version:
        """A version that takes the place of another, under the same aliases."""
        evidence = {**self.evidence(version), **told}
        precision = self._words(version).probability_precision
        made = self._registered(model, lineage, evidence, precision, {})
        for alias in version.aliases:
            self.store.point(alias, version.name, made.number)
        if version.said("settled"):
            self.store.tag(made, "settled", version.said("settled"))
        if CANDIDATE in made.aliases and CANDIDATE not in version.aliases:
            self.store.unpoint(CANDIDATE, version.name)
        return made

    def _delete(self, study: str, version: Version) -> None:
        still = self.version(study, version.number)
        for alias in still.aliases:
            self.store.unpoint(alias, version.name)
        self.store.delete(still)

    def _words(self, version: Version) -> ModelDescription:
        with self.store.files(version, f"{MODEL}/{DATA}/{DATA}/{WORDS}") as file:
            return read_saved_words(file.parent)

    def _json(self, version: Version, path: str) -> dict[str, Any]:
        with self.store.files(version, path) as file:
            try:
                found: dict[str, Any] = json.loads(file.read_bytes())
            except ValueError:
                raise RegistryFailed(f"{path} of {version} is damaged; restore its backup, or roll back") from None
        return found


def _find(known: Sequence[Version], which: str | int) -> Version | None:
    return next((one for one in known if str(which) in (*one.aliases, str(one.number))), None)


def _owed_by(study: Study, outcome: Outcome, lineage: Lineage, promote: bool | None) -> OwedModel:
    evidence = {"study": study.name, "description": study.description, **evidence_of(outcome)}
    return OwedModel(outcome.model, lineage, evidence, headline(outcome), study.privacy.probability_precision, promote)


def _newer(known: Sequence[Version], version: Version) -> Version | None:
    later = (one for one in known if one.round > version.round and PREVIOUS not in one.aliases)
    return next((one for one in later if CHAMPION in one.aliases or not one.said("settled")), None)


def _written(
    folder: Path, model: FederatedForest, lineage: Lineage, evidence: Mapping[str, Any], precision: float
) -> Path:
    """Everything of a version, as files."""
    from spinney.connectors.mlflow.signature import input_example, signature, signature_of

    write_model(model, precision, folder / DATA)
    files = folder / "files"
    quiet_mlflow().pyfunc.save_model(
        files / MODEL,
        loader_module=LOADER,
        data_path=str(folder / DATA),
        signature=signature(model.features_),
        input_example=input_example(model.features_),
        pip_requirements=[f"spinney=={installed('spinney')}"],
        metadata={"lineage": lineage.model_dump(mode="json"), "features": signature_of(model.features_)},
    )
    for name, plain in ((EVIDENCE, evidence), (LINEAGE, lineage.model_dump(mode="json"))):
        (files / name).write_text(json.dumps(plain, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return files


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)  # what a killed process left
    return private_folder(folder)


def what_remains(site: str, model: FederatedForest) -> str:
    """What a reader of a model must know from which a house has withdrawn."""
    common = model.linear_ is not None and model.linear_.common
    return REMAINS.format(site=site) + (BESIDE.format(site=site) if common else "")
