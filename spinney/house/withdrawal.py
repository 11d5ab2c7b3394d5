"""A house takes its trees back: it says so in a signed document, and every other house obeys.

    <study>/<site>/0/withdrawal.<n>        "my trees of rounds up to this one", signed by the site
    studies/<study>/withdrawals/           those that this house has obeyed, so that they hold after they have expired

Every model here goes on without these trees, under a new version, and the versions that held them are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar

from pydantic import Field

from spinney.base import Name
from spinney.connectors.exchange import Address, Exchange, ExchangeError
from spinney.connectors.mlflow import Registry
from spinney.errors import Refused
from spinney.house.approvals import Approvals
from spinney.house.audit import AuditEntry
from spinney.house.keys import Identity
from spinney.house.roster import RosterRefused, SignedDocument, parse_document, read_document, write_document
from spinney.storage.private import private_folder

STEP = "withdrawal"
LARGEST_NOTE = 10_000
MOST = 1000


class Withdrawal(SignedDocument):
    """A house's trees shall be used no longer."""

    purpose: ClassVar[str] = "withdrawal"
    study: Name
    site: Name
    number: int = Field(ge=1, le=MOST)
    round: int = Field(ge=0, description="Trees of rounds up to this one; later ones are given anew.")


def publish_withdrawal(
    approvals: Approvals, exchange: Exchange, site: str, round_: int, identity: Identity
) -> Withdrawal:
    """Tell all other houses. Said again about the same rounds, it is the same document; what others planted is none."""
    number, document = 1, None
    while exchange.holds(_address(approvals.name, site, number)):
        with suppress(Refused):
            raw = exchange.get(_address(approvals.name, site, number), LARGEST_NOTE)
            document = _checked(raw or b"", approvals.name, site, number, identity.public.hex())
        number += 1
    if document is None or document.round < round_:
        document = Withdrawal(study=approvals.name, site=site, number=number, round=round_).signed(identity)
        raw = document.model_dump_json().encode()
        exchange.put(_address(approvals.name, site, number), raw)
        words = f"Sent to everybody: {site} takes back its trees of rounds up to {round_}."
        _note(approvals, "sent", site, document, len(raw), words)
    return document


def obey_withdrawals(approvals: Approvals, exchange: Exchange, registry: Registry, me: str) -> list[str]:
    """Take withdrawn trees out of every model of this house; what people should know about it."""
    told: list[str] = []
    for document in sorted(_known(approvals) + list(_new(approvals, exchange, me, told)), key=lambda one: one.site):
        made = registry.withdraw(approvals.name, document.site, until=document.round)
        if made:
            versions = ", ".join(str(one.number) for one in made)
            told.append(f"{document.site} took its trees back: version {versions} goes on without them")
    return told


def withdrawn_by(approvals: Approvals, epoch: int) -> frozenset[str]:
    """Houses that have taken back what they lent when the epoch of this round opened."""
    return frozenset(document.site for document in _known(approvals) if document.round >= epoch)


def _new(approvals: Approvals, exchange: Exchange, me: str, told: list[str]) -> Iterator[Withdrawal]:
    """Withdrawals that this house has not obeyed yet; what is forged is noted and left alone."""
    keys, done = _keys(approvals), {(one.site, one.number) for one in _known(approvals)}
    for site in sorted(set(keys) - {me}):
        for number in range(1, MOST + 1):
            if (site, number) in done:
                continue
            try:
                raw = exchange.get(_address(approvals.name, site, number), LARGEST_NOTE)
                if raw is None:
                    break
                document = _checked(raw, approvals.name, site, number, keys[site])
            except (Refused, ExchangeError) as reason:  # behind what others have planted may be the house's own word
                told.append(f"the withdrawal {number} of {site} is refused: {reason}")
                if isinstance(reason, Refused):
                    approvals.note("refused", type(reason).__name__, told[-1], peer=site)
                    continue
                break
            write_document(document, private_folder(approvals.folder / "withdrawals") / f"{site}.{number}.json")
            words = f"Received from {site}: it takes back its trees of rounds up to {document.round}."
            _note(approvals, "received", site, document, len(raw), words)
            yield document


def _checked(raw: bytes, study: str, site: str, number: int, key: str) -> Withdrawal:
    document = parse_document(raw, Withdrawal, "it")
    if (document.study, document.site, document.number) != (study, site, number):
        raise RosterRefused("it was made for another place")
    if not document.is_signed_by(key):
        raise RosterRefused(f"it is not signed by {site}")
    return document


def _known(approvals: Approvals) -> list[Withdrawal]:
    return [read_document(path, Withdrawal) for path in sorted((approvals.folder / "withdrawals").glob("*.json"))]


def _keys(approvals: Approvals) -> dict[str, str]:
    """The last key of everybody who ever was a site here: a house may leave first and withdraw then."""
    rosters = [approvals.approved(version) for version in approvals.approved_versions]
    return {site: roster.members[site] for roster in rosters for site in roster.sites}


def _address(study: str, site: str, number: int) -> Address:
    return Address(study, site, 0, STEP, number)


def _note(approvals: Approvals, direction: str, site: str, document: Withdrawal, size: int, words: str) -> None:
    entry = {"direction": direction, "kind": "Withdrawal", "peer": "" if direction == "sent" else site, "bytes": size}
    entry |= {"study": approvals.name, "step": STEP, "digest": document.digest, "words": words}
    approvals.audit.append(AuditEntry.model_validate(entry), approvals.clock.now())
