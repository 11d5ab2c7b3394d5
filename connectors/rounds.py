"""A round between houses over the exchange: the coordinator's federation, and a site's answering of it.

The same two halves of an algorithm as in `spinney.simulate`, and the same model bit for bit. A coordinator or a site
that was killed runs its half again from the top: what was sent is sent again verbatim, and what was decided stays so.

    coordinator   opening.1 (signed)   ask001-join.1   ask002-grow.1 ...   over.1
    site          join.1               grow.1   parcel-<digest>.1 ...
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from connectors import wire
from connectors.desk import PARCEL, Desk
from connectors.errands import title
from connectors.exchange import Address
from connectors.keys import check_round_key, verify
from spinney import disclosure
from spinney.algorithms import ALGORITHMS
from spinney.cohort import Cohort
from spinney.errors import Refused, RoundVoid
from spinney.federation import Decline, House, Message, Parcel, content_digest
from spinney.messages import Description, Done, Enrolment
from spinney.personalise import Outcome
from spinney.study import Study
from spinney.summing import key_words

INTRODUCTIONS = (Description, Enrolment)  # they bring a site's round key
FIRST_NAP = 0.05
OVER, DECLINED = "over", "declined"

Through = Callable[[str, Callable[[], Any]], Any]
"""Does a piece of work under a name that people read; a flow makes a task run of it."""


def directly(_name: str, work: Callable[[], Any]) -> Any:
    """Just do it."""
    return work()


class Superseded(RoundVoid):
    """The coordinator has opened a newer round and will not come back to this one."""


@dataclass(frozen=True)
class Opening:
    """A round begins. Signed by the coordinator and readable by all."""

    round: int
    study: str
    roster: str  # the digest of the roster that this round runs with
    key: bytes


@dataclass(frozen=True)
class KeyNote:
    """A site's round key, signed by the site."""

    key: bytes
    present: NDArray[np.bool_]
    signature: bytes


@dataclass(frozen=True)
class Ask:
    """One step, asked of some sites; and the keys of all that have joined."""

    step: str
    attempt: int
    orders: Mapping[str, bytes]
    keys: Mapping[str, KeyNote]


@dataclass(frozen=True)
class Over:
    """The round has ended: the common model's digest, or why it is void."""

    model: str
    void: str


class CoordinatorRound:
    """A `Federation` of houses that answer through the exchange."""

    def __init__(
        self,
        study: Study,
        desk: Desk,
        sites: Sequence[str],
        memory: MutableMapping[str, Any],
        patience: timedelta,
        *,
        roster: str = "",
        through: Through = directly,
    ) -> None:
        self.study, self.desk, self.round, self.patience = study, desk, desk.round, patience
        self._roster, self._through = roster, through
        self.left_out: dict[str, str] = {}
        self._memory, self._all, self._asked = memory, sorted(sites), 0
        self._keys: dict[str, KeyNote] = {}
        self.described: dict[str, Description] = {}  # for the report: what sites told about themselves
        self.figures: dict[str, Mapping[str, float]] = {}  # and about their models, where they agreed to share it

    @property
    def sites(self) -> Sequence[str]:
        """Who is still there."""
        return [site for site in self._all if site not in self.left_out]

    def leave_out(self, site: str, reason: str) -> None:
        """Go on without a site."""
        self.left_out[site] = reason

    def verify(self, site: str, words: bytes, signature: bytes) -> bool:
        """Whether a site has signed these words."""
        return site in self.desk.roster and verify(self.desk.roster[site], words, signature)

    def run(self) -> Over:
        """Open the round, run the study's algorithm, say that it is over."""
        opening = Opening(self.round, self.study.digest, self._roster, self.desk.key.public)
        self.desk.publish("opening", 1, "Opening", lambda: wire.pack(opening), {})
        try:
            over = Over(ALGORITHMS[self.study.algorithm.name].coordinate(self, self.study), "")
        except RoundVoid as void:
            over = Over("", str(void))
        self.desk.publish(OVER, 1, "Over", lambda: wire.pack(over), {})
        return over

    def ask(self, step: str, orders: Mapping[str, Message], attempt: int = 1) -> dict[str, Message]:
        """Publish the orders and wait for the answers; who has not answered by the deadline is out."""
        self._asked += 1
        answers: dict[str, Message] = self._through(
            f"ask {len(orders)} sites to {step}", lambda: self._ask(step, orders, attempt)
        )
        return answers

    def _ask(self, step: str, orders: Mapping[str, Message], attempt: int) -> dict[str, Message]:
        packed = {site: wire.encode(order) for site, order in sorted(orders.items())}
        asked = Ask(step, attempt, packed, self._keys)
        self.desk.publish(f"ask{self._asked:03d}-{step}", 1, "Ask", lambda: wire.pack(asked), self._public())
        fates = self._fates(step, attempt, list(packed))
        replies: dict[str, Message] = {}
        for site, fate in fates.items():
            if fate:
                self.leave_out(site, fate)
                continue
            reply = self._reply(site, step, attempt)
            replies[site] = reply
            if isinstance(reply, INTRODUCTIONS):
                self._keys[site] = KeyNote(reply.key, reply.present, reply.signature)
            if isinstance(reply, Description):
                self.described[site] = reply
            elif isinstance(reply, Done) and reply.figures:
                self.figures[site] = reply.figures
        return replies

    def _fates(self, step: str, attempt: int, sites: list[str]) -> dict[str, str]:
        """Why each site's answer does not count, or nothing. Decided once, and remembered through restarts."""
        name = f"answers-{self._asked:03d}"
        if name not in self._memory:
            addresses = {site: Address(self.study.name, site, self.round, step, attempt) for site in sites}
            deadline = self.desk.clock.now() + self.patience
            absent = set(self.desk.exchange.wait(addresses.values(), deadline, self.desk.clock).absent)
            fates = {}
            for site in sites:
                fates[site] = f"no answer to {step} in time" if site in absent else self._fault(site, step, attempt)
            self._memory[name] = json.dumps(fates)
        decided: dict[str, str] = json.loads(self._memory[name])
        return decided

    def _fault(self, site: str, step: str, attempt: int) -> str:
        try:
            reply = self._reply(site, step, attempt)
            disclosure.check(reply, self.study)
            if isinstance(reply, INTRODUCTIONS):
                self._check_key(site, reply)
        except Refused as reason:
            self.desk.refused(site, step, reason)
            return f"{step} refused: {reason}"
        return reply.reason if isinstance(reply, Decline) else ""

    def _check_key(self, site: str, reply: Description | Enrolment) -> None:
        """A key that is none would make every peer that seals for it fail, instead of its owner."""
        check_round_key(reply.key, site)
        words = key_words(self.study, self.round, site, reply.key, reply.present)
        if not self.verify(site, words, reply.signature):
            raise Refused("its round key is not signed by itself")

    def _reply(self, site: str, step: str, attempt: int) -> Message:
        content = self.desk.collect(site, step, attempt, f"answer to {step}")
        if content is None:
            raise Refused(f"the answer of {site} to {step} is gone from the exchange")
        return wire.decode(content)

    def _public(self) -> dict[str, bytes]:
        return {site: note.key for site, note in self._keys.items()}


class Post:
    """A site's sealed mail to its peers over the exchange."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.peers: dict[str, bytes] = {}

    def post(self, content: bytes, recipients: Sequence[str]) -> Parcel:
        """Publish for the recipients, and for nobody else."""
        digest = content_digest(content)
        keys = {name: key for name, key in self.peers.items() if name in recipients and name != self.desk.me}
        if keys:
            self.desk.publish(f"{PARCEL}{digest[:32]}", 1, "Parcel", lambda: content, keys)
        return Parcel(self.desk.me, digest, len(content))

    def fetch(self, parcel: Parcel) -> bytes:
        """What a peer has sealed for this site."""
        limit = parcel.size + 64 * 1024
        content = self.desk.collect(parcel.sender, f"{PARCEL}{parcel.digest[:32]}", 1, "Parcel", limit)
        if content is None:
            raise Refused(f"there is no parcel of {parcel.sender} for {self.desk.me}")
        return content


class SiteRound:
    """One site's part in a round: answer until the coordinator says that it is over."""

    def __init__(
        self,
        study: Study,
        desk: Desk,
        coordinator: str,
        cohort: Cohort,
        memory: MutableMapping[str, Any],
        history: MutableMapping[str, int],
        *,
        jobs: int = 1,
        budget: Callable[[float], Callable[[], bool]] | None = None,
        through: Through = directly,
        superseded: Callable[[], bool] = lambda: False,
    ) -> None:
        self.study, self.desk, self.coordinator = study, desk, coordinator
        self._through, self._superseded = through, superseded
        self._post = Post(desk)
        self._house = House(desk.me, study, desk.round, cohort, self._post, desk.identity.sign, self._verify)
        self._house.memory, self._house.history, self._house.jobs = memory, history, jobs
        self._house.budget = budget or self._house.budget
        memory["key"] = desk.key.private.private_bytes_raw()
        self._part = ALGORITHMS[study.algorithm.name].site_part(self._house)

    @property
    def outcome(self) -> Outcome | None:
        """This site's result, once the last step is done."""
        return self._house.outcome

    def run(self, patience: timedelta) -> Over:
        """Answer every ask. Raises RoundVoid when the coordinator falls silent for longer than the patience."""
        opening = wire.unpack(self._await("opening", patience), Opening)
        if (opening.round, opening.study) != (self.desk.round, self.study.digest):
            raise Refused("the opening is of another round or study")
        self._post.peers = {self.coordinator: opening.key}
        number = 1
        while True:
            step = self._next(number, patience)
            if step == OVER:
                return wire.unpack(self._await(OVER, patience), Over)
            self._answer(wire.unpack(self._await(step, patience), Ask), opening.key)
            number += 1

    def _answer(self, ask: Ask, coordinator_key: bytes) -> None:
        self._learn(ask.keys)
        if self.desk.me not in ask.orders:
            return
        order = wire.decode(ask.orders[self.desk.me])
        self._through(title(ask.step, order, self.study), lambda: self._reply(ask, order, coordinator_key))

    def _reply(self, ask: Ask, order: Message, coordinator_key: bytes) -> None:
        def reply() -> bytes:
            try:
                message = self._part.answer(ask.step, order)
                disclosure.check(message, self.study)
            except Refused as reason:
                self.desk.refused(self.coordinator, ask.step, reason)
                message = Decline(str(reason))
            if isinstance(message, Decline):
                self._house.memory[DECLINED] = ask.step
            return wire.encode(message)

        # What was sent before is published again as it was. Only the last step is done again after a restart, because
        # its result is this house's own model.
        again = self.desk.has_sent(ask.step, ask.attempt) and ask.step != "finish"
        content = b"" if again else reply()
        recipients = {self.coordinator: coordinator_key}
        self.desk.publish(ask.step, ask.attempt, f"answer to {ask.step}", lambda: content, recipients)

    def _learn(self, keys: Mapping[str, KeyNote]) -> None:
        """Seal only for keys that their owners have signed."""
        for site, note in keys.items():
            words = key_words(self.study, self.desk.round, site, note.key, note.present)
            if not self._verify(site, words, note.signature):
                raise Refused(f"the round key of {site} is not signed by {site}")
            self._post.peers[site] = note.key

    def _verify(self, site: str, words: bytes, signature: bytes) -> bool:
        return site in self.desk.roster and verify(self.desk.roster[site], words, signature)

    def _await(self, step: str, patience: timedelta) -> bytes:
        address = Address(self.study.name, self.coordinator, self.desk.round, step, 1)
        arrivals = self.desk.exchange.wait([address], self.desk.clock.now() + patience, self.desk.clock)
        if arrivals.missing:
            raise RoundVoid(f"{self.coordinator} has sent no {step} in time; this house keeps the model that it has")
        content = self.desk.collect(self.coordinator, step, 1, step)
        if content is None:
            raise Refused(f"{step} of {self.coordinator} is gone from the exchange")
        return content

    def _next(self, number: int, patience: timedelta) -> str:
        """What the coordinator says next: the ask of this number, or that it is over."""
        deadline, nap = self.desk.clock.now() + patience, FIRST_NAP
        while True:
            listed = {one.step for one in self.desk.exchange.list(self.study.name, self.desk.round, self.coordinator)}
            asks = [step for step in listed if step.startswith(f"ask{number:03d}-")]
            if asks and DECLINED not in self._house.memory:
                return min(asks)
            if OVER in listed:
                return OVER
            if self._superseded():
                raise Superseded(f"{self.coordinator} has left round {self.desk.round} and opened a newer one")
            if self.desk.clock.now() >= deadline:
                raise RoundVoid(f"{self.coordinator} has been silent for {patience}; this house keeps what it has")
            self.desk.clock.sleep(nap)
            nap = min(nap * 1.3, self.desk.exchange.longest_nap)
