"""A site's night: find the round that is open, pin the cohort to it, take part, and keep what came of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from spinney.choice.incumbent import Incumbent
from spinney.choice.personalise import Outcome
from spinney.configuration.house import Admission, ExchangeAccess, RegistrySettings
from spinney.connectors.exchange import Address, Clock, ExchangeError
from spinney.connectors.mlflow import Registry, RegistryFailed
from spinney.errors import Declined, Refused, RoundVoid, SpinneyError, StudyInvalid, in_short
from spinney.house import encoding as wire
from spinney.house import envelopes as security
from spinney.house.addresses import addresses
from spinney.house.approvals import Approvals, NotApproved, the_study
from spinney.house.audit import AuditEntry
from spinney.house.champion import after_the_round, incumbent_of
from spinney.house.channel import RoundChannel
from spinney.house.declining import say_no, word_for
from spinney.house.envelopes import EnvelopeRefused, MessageId, Replayed, WrongSignature, is_of_another_study
from spinney.house.nights import HouseNights, stopwatch
from spinney.house.patients import PatientAccess
from spinney.house.renewal import renew_roster
from spinney.house.roster import Roster
from spinney.house.round_messages import Opening, Over
from spinney.house.rounds import LARGEST_NOTE, OVER, SiteSession, Superseded, Through, directly
from spinney.house.withdrawal import obey_withdrawals, withdrawn_by
from spinney.rows.cohort_ref import CohortRef
from spinney.storage.files import RoundState, ScoredTrees

TRIES = 3


class NotOpened(RoundVoid):
    """The coordinator has opened no round in time."""


class AnotherStudy(Declined):
    """A round runs with a study that nobody here has approved."""


@dataclass(frozen=True)
class OpenedRound:
    """A round that is open."""

    number: int
    roster: str
    digest: str  # of the opening's bytes: the same round opened in other words is an attack
    epoch: int  # the round that opened it


@dataclass(frozen=True)
class RoundResult:
    """How a round ended at this site."""

    number: int
    over: Over
    outcome: Outcome | None
    cohort: CohortRef
    epoch: int = 0  # the round that opened it
    champion_away: bool = False  # the registry did not say who is champion, so nobody knows what would be replaced

    def require(self) -> Outcome:
        """This site's result, or RoundVoid with the reason why there is none."""
        if self.outcome is None:
            void, without = f"is void: {self.over.void}", "went on without this site: its answers were late or refused"
            raise RoundVoid(f"round {self.number} {void if self.over.void else without}; this site keeps what it has")
        return self.outcome

    @property
    def takes_over(self) -> bool:
        """Whether tonight's model is to be used: the champion is not better, and no question is open."""
        return self.outcome is not None and self.outcome.takes_over and not self.champion_away


class House(Protocol):
    """What a night has to know of its site: settings without source and vault, which it has no business with."""

    @property
    def name(self) -> str: ...

    @property
    def home(self) -> Path: ...

    @property
    def exchange(self) -> ExchangeAccess | None: ...

    @property
    def registry(self) -> RegistrySettings: ...

    @property
    def admission(self) -> Admission: ...

    @property
    def stewards(self) -> Mapping[str, str]: ...

    @property
    def lent_leaf(self) -> int | None: ...


class SiteNights(HouseNights):
    """A site's rounds of one study."""

    def __init__(self, site: House, study: str | None = None, clock: Clock | None = None) -> None:
        if site.exchange is None:
            raise StudyInvalid(
                ["site.yaml has no `exchange`; write where the houses' mailbox is: exchange: {url: ...}"]
            )
        approvals = Approvals(site.home, study or the_study(site.home))
        super().__init__(site.name, site.home, site.exchange, approvals, clock)
        self.site, self.coordinator = site, approvals.coordinator
        self._seen: dict[int, OpenedRound | None] = {}
        self._passed_over: set[Address] = set()

    @property
    def pinned(self) -> CohortRef | None:
        """The cohort of a round that this site has begun and not ended: a restart never pulls again."""
        number = self.rounds.unfinished
        kept = self.memory(number).get("cohort") if number else None
        return CohortRef.of_note(kept, self.home / "vault" / "cohorts" / self.study.name) if kept else None

    def look_at_roster(self) -> list[str]:
        """Accept what needs no person, obey withdrawals; what people should know.

        NotApproved if rounds run without this house; withdrawals are obeyed also then.
        """
        notes = renew_roster(self.approvals, self.exchange, self.name)
        registry = Registry(self.home, self.site.registry)
        try:
            notes += obey_withdrawals(self.approvals, self.exchange, registry, self.name)
        except RegistryFailed as reason:
            notes.append(f"withdrawn trees are taken out of the models by the next run: {reason}")
        _ = self.approvals.roster
        return notes

    def left_over(self) -> OpenedRound | None:
        """A round that was begun here and ended while nobody looked: what came of it can still be had."""
        number = self.rounds.unfinished
        with suppress(ExchangeError):
            found = self._opening(number) if number else None
            return found if found and self._is_over(found.number) else None
        return None

    def is_open(self) -> bool:
        """Whether there is a round to take part in right now."""
        with suppress(ExchangeError):
            return self._open_round(None) is not None
        return False

    def await_opening(self, wanted: int | None = None) -> OpenedRound:
        """The round that is open now, or NotOpened when the study's patience is over; PermitExpired is too late."""
        self.require_permit()
        patience = timedelta(minutes=self.study.schedule.opening_minutes)
        found = self.exchange.wait_until(lambda: self._open_round(wanted), patience, self.clock)
        if found is None:
            instead = "; what lies in its place was refused (spinney audit show)" if self._passed_over else ""
            raise NotOpened(
                f"{self.coordinator} has opened no round of {self.study.name} in {patience}{instead}; "
                "this site keeps the model that it has and tries again the next night"
            )
        return found

    def take_part(
        self, found: OpenedRound, cohort: CohortRef, patients: PatientAccess, through: Through = directly
    ) -> RoundResult:
        """Answer until the round is over; a newer round takes the place of one that the coordinator has left."""
        while True:
            try:
                part = self._take_part(found, cohort, patients, through)
            except Superseded:
                self.abandon(found.number)
                found = self.await_opening()
            except RoundVoid:
                self.abandon(found.number)
                raise
            else:
                if part.over.void:  # tomorrow there are other patients and another round
                    self.abandon(found.number)
                return part

    def decline(self, reason: SpinneyError) -> str:
        """Say no to tonight's round as soon as it opens; what the coordinator was told, or nothing."""
        found = self.await_opening()
        if found.number == self.rounds.unfinished:  # it is in this round, and can go on when it is started again
            return ""
        word, channel = word_for(reason), self._enter(found)
        said = say_no(channel, self.coordinator, word, self.answer_time)
        self.abandon(found.number)
        return word if said else ""

    def give_up(self, reason: str) -> None:
        """The round that was begun here came to nothing; the next night begins afresh."""
        number = self.rounds.unfinished
        if number is not None:
            self.close(
                number, {"round": number, "model": "", "void": reason, "choice": None, "admission": "", "run": ""}
            )

    def _take_part(
        self, found: OpenedRound, cohort: CohortRef, patients: PatientAccess, through: Through
    ) -> RoundResult:
        memory = self.memory(found.number)
        memory["cohort"] = cohort.note().decode()
        channel = self._enter(found)
        if found.epoch != found.number:
            for name, value in self.epochs.read(found.epoch).items():
                memory.setdefault(name, value)
        rows, registry = patients.rows(cohort), Registry(self.home, self.site.registry)
        incumbent, away = self._incumbent(found.number, registry, patients, memory, cohort)
        part = SiteSession(
            self.study,
            channel,
            self.coordinator,
            rows,
            memory,
            ScoredTrees(self.home / "scored" / self.study.name),
            jobs=os.cpu_count() or 1,
            spread=patients.spread,
            budget=stopwatch,
            through=through,
            superseded=lambda: self._newer(found.number),
            incumbent=incumbent,
            epoch=found.epoch,
            lent_leaf=self.site.lent_leaf,
            withdrawn=withdrawn_by(self.approvals, found.epoch),
        )
        over = part.run(2 * self.answer_time)
        if part.outcome is not None and not over.void:
            self.epochs.keep(found.epoch, part.kept)
        after_the_round(registry, patients, self.study, found.number, memory, cohort, rows)
        return RoundResult(found.number, over, part.outcome, cohort, found.epoch, away)

    def _incumbent(
        self, number: int, registry: Registry, patients: PatientAccess, memory: RoundState, cohort: CohortRef
    ) -> tuple[Incumbent | None, bool]:
        """The champion, if it can be read, and whether it can't for now: what is damaged takes no night away."""
        try:
            for _ in range(TRIES - 1):  # a database in use makes each of them last
                with suppress(RegistryFailed):
                    return incumbent_of(registry, patients, self.study, self.name, memory, cohort), False
            return incumbent_of(registry, patients, self.study, self.name, memory, cohort), False
        except (RegistryFailed, Refused) as reason:
            away = isinstance(reason, RegistryFailed) and reason.transient
            then = "tonight's model waits as a candidate" if away else "tonight's model takes its place if it may"
            words = f"The champion can't be read, so nothing is compared with it, and {then}: {in_short(reason)}"
            entry = AuditEntry(direction="noted", kind="Registry", study=self.study.name, round=number, words=words)
            self.audit.append(entry, self.clock.now())
            self.exchange.say(words)
            return None, away

    def _enter(self, found: OpenedRound) -> RoundChannel:
        try:
            return self.channel(found.number, self._roster(found), found.digest)
        except Replayed as reason:
            self._note_refusal(found.number, "opening", reason)
            raise

    def _roster(self, found: OpenedRound) -> Roster:
        """The roster that the round runs with, if somebody here has approved it."""
        try:
            roster = self.approvals.roster_of(found.roster)
        except NotApproved:  # the coordinator may have published it after this night began
            self.look_at_roster()
            roster = self.approvals.roster_of(found.roster)
        if roster.version < self.approvals.version_in_force and found.number != self.rounds.unfinished:
            raise Declined(
                f"round {found.number} runs with a roster that is not in force any more; ask {self.coordinator}"
            )
        if self.name not in roster.members:
            raise Declined(f"{self.name} is not in the roster of round {found.number}; ask {self.coordinator}")
        return roster

    def _open_round(self, wanted: int | None) -> OpenedRound | None:
        newest, unfinished = self.rounds.newest, self.rounds.unfinished
        numbers = self.exchange.rounds(self.study.name, self.coordinator)
        for number in sorted((one for one in numbers if one >= max(newest, 1)), reverse=True):
            if wanted not in (None, number) or (number == newest and unfinished is None):
                continue
            found = self._opening(number)
            if found is not None and (number == unfinished or not self._is_over(number)):
                return found
        return None

    def _newer(self, number: int) -> bool:
        numbers = self.exchange.rounds(self.study.name, self.coordinator)
        return any(self._opening(one) is not None for one in sorted(numbers, reverse=True) if one > number)

    def _opening(self, number: int) -> OpenedRound | None:
        """The opening of a round, if it is there and the coordinator's; looked at once."""
        if number not in self._seen:
            try:
                content = self._signed(number, "opening")
            except AnotherStudy:  # or a round from before the study was changed
                if not self._is_over(number):
                    raise
                content = None
            if content is None:
                return None
            self._seen[number] = self._checked(number, content)
        return self._seen[number]

    def _checked(self, number: int, content: bytes) -> OpenedRound | None:
        try:
            opening = wire.unpack(content, Opening)
        except Refused as reason:
            self._note_refusal(number, "opening", reason)
            return None
        if (opening.round, opening.study) != (number, self.study.digest):
            return None
        return OpenedRound(number, opening.roster, hashlib.sha256(content).hexdigest(), opening.epoch)

    def _is_over(self, number: int) -> bool:
        try:
            return bool(self._signed(number, OVER))
        except AnotherStudy:
            return True

    def _signed(self, number: int, step: str) -> bytes | None:
        """What the coordinator has signed for all to read; what others have left there is passed over."""
        message = MessageId(self.study.digest, number, step, 1, self.coordinator)
        for address in addresses(self.study.name, self.coordinator, number, step):
            if address in self._passed_over:
                continue
            try:
                sealed = self.exchange.get(address, LARGEST_NOTE)
                return None if sealed is None else self._by_coordinator(sealed, message)
            except Refused as reason:
                if isinstance(reason, EnvelopeRefused) and is_of_another_study(reason):
                    raise AnotherStudy(
                        f"{self.coordinator} runs round {number} with a study that nobody here has approved; "
                        "look at it and approve it: spinney site approve STUDY"
                    ) from None
                self._passed_over.add(address)
                self._note_refusal(number, step, reason)
        return None

    def _by_coordinator(self, sealed: bytes, message: MessageId) -> bytes:
        """What the coordinator has signed, also if it has changed its key since this night began."""
        try:
            return self._opened(sealed, message)
        except WrongSignature:
            if message.step == OVER:
                raise
            self.look_at_roster()
            return self._opened(sealed, message)

    def _opened(self, sealed: bytes, message: MessageId) -> bytes:
        """By the keys of the rosters that count; a round that was begun goes on with those that it was begun with."""
        began = message.round == self.rounds.unfinished
        oldest = 0 if began else self.approvals.roster.version
        *others, last = (self.approvals.approved(one).keys for one in self.approvals.approved_versions if one >= oldest)
        for keys in reversed(others):
            with suppress(WrongSignature):
                return security.open(sealed, message, keys, None, LARGEST_NOTE)
        return security.open(sealed, message, last, None, LARGEST_NOTE)

    def _note_refusal(self, number: int, step: str, reason: Refused) -> None:
        entry = AuditEntry(
            direction="refused",
            kind=type(reason).__name__,
            peer=self.coordinator,
            study=self.study.name,
            round=number,
            step=step,
            words=str(reason),
        )
        self.audit.append(entry, self.clock.now())


def summary_of(part: RoundResult) -> dict[str, Any]:
    """How a round ended, in digests and counts."""
    return {
        "round": part.number,
        "epoch": part.epoch,
        "model": part.over.model,
        "void": part.over.void,
        "cohort": part.cohort.digest,
        "choice": part.outcome and _choice(part.outcome),
    }


def _choice(outcome: Outcome) -> dict[str, Any]:
    decision = outcome.decision
    return {
        "name": decision.name,
        "reason": decision.reason,
        "question": decision.question or "",
        "model": outcome.model.digest,
        "trees": len(outcome.model.owners_),
        "sites": len({*outcome.model.owners_}),
        "gain": _gain(outcome),
    }


def _gain(outcome: Outcome) -> str:
    gain = outcome.gain.get("auroc")
    if gain is None:
        return "There are too few test patients to say what it gains."
    return f"AUROC on test rows: {gain.value:+.3f} over the local forest ({gain.low:+.3f} to {gain.high:+.3f})."
