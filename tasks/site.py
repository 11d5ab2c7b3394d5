"""A site put together: its patients beside its house. Only here, and in what uses it, can both be reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spinney.cohort.objections import ObjectionCounts
from spinney.cohort.patients import Patients
from spinney.cohort.purge import forget_study, silent_trees, studies_in
from spinney.configuration.site import SiteSettings
from spinney.connectors.exchange import SystemClock
from spinney.connectors.mlflow import CHAMPION, Registry, RegistryFailed
from spinney.errors import PermitExpired
from spinney.house.approvals import Approvals, NotApproved, the_study
from spinney.house.audit import Audit, AuditEntry
from spinney.scoring.monitor import Watch
from spinney.scoring.score_night import ScoreNight, watch
from spinney.study.study import Study

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest
    from spinney.forest.tree import Forest


def patients_of(site: SiteSettings, study: Study) -> Patients:
    """What a night may ask about the site's patients."""
    return Patients(site.vault, study, site.dask)


def keep_to_permit(site: SiteSettings, study: Study, ended: Callable[[str], None] = lambda _: None) -> None:
    """PermitExpired if the study's permit has ended; all that is kept of its patients here is deleted first.

    `ended` is told why, for what else has to end.
    """
    now = SystemClock().now()
    try:
        study.require_permit(now)
    except PermitExpired as reason:
        if gone := forget_study(site.vault, study.name):
            words = f"{reason}. {gone} files about its patients were deleted here."
            entry = AuditEntry(direction="noted", kind="Permit", study=study.name, digest=study.digest, words=words)
            Audit(site.home / "audit.jsonl").append(entry, now)
        ended(str(reason))
        raise


def score_night_of(site: SiteSettings, study: str | None = None) -> ScoreNight:
    """A night of scoring for a study (by name), or for the only one that is approved."""
    approved = Approvals(site.home, study or the_study(site.home)).study
    keep_to_permit(site, approved)

    def note(words: str) -> None:
        entry = AuditEntry(direction="noted", kind="Scores", study=approved.name, words=words)
        Audit(site.home / "audit.jsonl").append(entry, SystemClock().now())

    registry = Registry(site.home, site.registry)
    return ScoreNight(site.name, approved, site.home, site.pull_plan(approved.name), registry, site.scores, note)


def honour_objections(site: SiteSettings, study: Study, counts: ObjectionCounts | None) -> None:
    """After a pull: own trees that somebody has grown who objects vote no more, and the audit log tells how many do."""
    if counts is None:
        return
    silence_trees(site)
    note_objections(site, study, counts)


def silence_trees(site: SiteSettings) -> None:
    """In every study, also one that has no nights any more. The other houses keep what they have, and learn nothing.

    Where few of a model's own trees are left, others are grown that stay here.
    """
    registry = Registry(site.home, site.registry)
    for study in sorted(studies_in(site.vault)):
        if silent := silent_trees(site.vault, study):
            registry.silence(study, silent, _regrow(site, study))


def _regrow(site: SiteSettings, study: str) -> Callable[[FederatedForest, int, int], Forest | None] | None:
    """How own trees are grown anew for a study (by name); None where nobody here approves of it any more."""
    try:
        approved = Approvals(site.home, study).study
    except NotApproved:
        return None

    def grown(model: FederatedForest, round_: int, trees: int) -> Forest | None:
        from spinney.cohort.regrow import regrow  # brings scikit-learn, and this is rare

        return regrow(site.vault, approved, site.name, model, round_, trees)

    return grown


def note_objections(site: SiteSettings, study: Study, counts: ObjectionCounts) -> None:
    """Into the audit log: how many object, and the lists' hash."""
    words = f"{counts.sentence()}; HMAC of the lists under this house's key: {counts.digest}."
    told = {"direction": "noted", "kind": "Objections", "study": study.name, "digest": counts.digest, "words": words}
    Audit(site.home / "audit.jsonl").append(AuditEntry.model_validate(told), SystemClock().now())


def champion_cohort(site: SiteSettings, study: Study) -> str:
    """Digest of the cohort that the model in use was chosen on; nothing where the registry doesn't say."""
    try:
        champion = Registry(site.home, site.registry).find(study.name, CHAMPION)
    except RegistryFailed:
        return ""
    return champion.said("cohort_digest") if champion else ""


def watch_of(site: SiteSettings, study: Study) -> Watch | None:
    """How the model in use does at the site."""
    return watch(site.home, site.vault, study, Registry(site.home, site.registry))
