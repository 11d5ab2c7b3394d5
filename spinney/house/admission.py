"""A steward's yes or no to the use of a federated model at this site, signed with the steward's own key.

The orchestrator knows no users, so what counts is the signature: it names the study, the round and the model, and goes
into the audit log. The round itself never waits for a steward, so later rounds may end before the answer comes: a yes
to an older model is written down, and the newer one stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spinney.connectors.mlflow import KEPT, LATE, PROMOTED, Registry, Version
from spinney.errors import Refused
from spinney.house.audit import Audit, AuditEntry
from spinney.house.keys import Identity, verify
from spinney.house.site_night import SiteNights
from spinney.study.study import Study

WAITING, APPROVED, REFUSED, NOT_NEEDED = "waiting", "approved", "refused", "not needed"
FATES = {PROMOTED: APPROVED, KEPT: REFUSED, LATE: LATE}


class SignatureRefused(Refused):
    """A decision that no steward of this site has signed."""


@dataclass(frozen=True)
class Admission:
    """What is decided about: one model, of one round."""

    study: str
    digest: str  # of the study
    round: int
    model: str

    def words(self, approve: bool) -> bytes:
        """What a steward signs."""
        answer = "yes" if approve else "no"
        return f"spinney admission 1\0{self.study} {self.digest} {self.round} {self.model} {answer}".encode()

    def sign(self, steward: Identity, approve: bool) -> str:
        return steward.sign(self.words(approve)).hex()

    def check(self, stewards: Mapping[str, str], steward: str, approve: bool, signature: str) -> None:
        """SignatureRefused unless this steward has signed this answer."""
        if not stewards:
            raise SignatureRefused(
                "site.yaml lists no steward; add stewards: {NAME: KEY}, with the KEY that spinney keys show prints"
            )
        if steward not in stewards:
            raise SignatureRefused(f"{steward or 'nobody'} is no steward of this site; it has {', '.join(stewards)}")
        try:
            signed = verify(bytes.fromhex(stewards[steward]), self.words(approve), bytes.fromhex(signature.strip()))
        except ValueError:
            signed = False
        if not signed:
            answer = "--yes" if approve else "--no"
            raise SignatureRefused(
                f"this is not the signature of {steward} under this answer; it is what this prints: "
                f"spinney admission sign {self.study} {self.round} {answer}"
            )

    def record(self, audit: Audit, steward: str, approve: bool, signature: str, now: datetime) -> None:
        """A line in the audit log that anybody can verify later."""
        may = "may" if approve else "may not"
        entry = AuditEntry(
            direction="decided",
            kind="Admission",
            peer=steward,
            study=self.study,
            round=self.round,
            digest=self.model,
            words=f"Decided by {steward}: the model of round {self.round} {may} be used here.",
            signature=signature.strip(),
        )
        audit.append(entry, now)


def admission_of(study: Study, result: Mapping[str, Any]) -> Admission:
    """What there is to decide after a round."""
    return Admission(study.name, study.digest, result["round"], result["choice"]["model"])


def settle(
    nights: SiteNights, result: Mapping[str, Any], steward: str, approve: bool, signature: str
) -> dict[str, Any]:
    """Take a steward's answer: checked, written down, and followed in the registry unless it comes too late."""
    asked, registry = admission_of(nights.study, result), Registry(nights.home, nights.site.registry)
    asked.check(nights.site.stewards, steward, approve, signature)
    asked.record(nights.audit, steward, approve, signature, nights.clock.now())
    version = registry.settle(asked.study, result["version"], promote=approve)
    settled = {**result, "admission": FATES[version.said("settled")], "note": ""}
    if settled["admission"] != (APPROVED if approve else REFUSED):
        settled["note"] = _left(asked, version, registry.newer(asked.study, version))
        entry = AuditEntry(
            direction="noted", kind="Admission", study=asked.study, round=asked.round, words=settled["note"]
        )
        nights.audit.append(entry, nights.clock.now())
    nights.keep(asked.round, settled)
    return settled


def _left(asked: Admission, version: Version, newer: Version | None) -> str:
    """Why an answer changed nothing, and what a person can do who wants it all the same."""
    use = f"use it all the same with: spinney model promote {version.number}"
    if version.said("settled") == LATE:
        since = f"the model of round {newer.round}" if newer else "the model of a later round"
        return f"The answer about round {asked.round} changed nothing: {since} has been put forward since; {use}."
    before = FATES[version.said("settled")]
    undo = "see: spinney model rollback" if before == APPROVED else "the next round asks again"
    return f"The answer about round {asked.round} changed nothing: it was {before} before; {undo}."
