"""A round between houses over the exchange: the coordinator's federation, and a site's answering of it.

The same two halves of an algorithm as in `spinney.trial.simulate`, and the same model bit for bit. A coordinator or a
site that was killed runs its half again from the top: what was sent is sent again verbatim, and what was decided
stays so.

    coordinator   opening.1 (signed)   ask001.1   ask002.1 ...               over.1 (signed)
    site                               join.1     grow.1 parcel-<digest>.1
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

import msgpack

from spinney.choice.incumbent import Incumbent
from spinney.choice.personalise import Outcome
from spinney.errors import Refused, RoundVoid, in_short
from spinney.federation import disclosure
from spinney.federation.epochs import Release, kept_of, open_epoch, resume_epoch
from spinney.federation.messages import INTRODUCTIONS, Description, Done, Enrolment, Resumed
from spinney.federation.seam import Card, Decline, Message, Parcel, SiteContext, SitePart, content_digest, key_words
from spinney.forest.grow import Spread
from spinney.house import encoding as wire
from spinney.house.channel import PARCEL, RoundChannel
from spinney.house.encoding import Plain
from spinney.house.envelopes import LARGEST, NotForUs
from spinney.house.keys import check_round_key, verify
from spinney.house.round_messages import Ask, Opening, Over, ask_name, orders_of
from spinney.house.step_titles import title
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort
from spinney.study.study import Study

OVER, DECLINED = "over", "declined"
LARGEST_LETTER = wire.LARGEST + 64 * 1024
LARGEST_NOTE = 64 * 1024  # of what all may read: an opening or an end
LOOKS_BETWEEN_LISTINGS = 20

Through = Callable[[str, Callable[[], Any]], Any]
"""Does a piece of work under a name that people read; a flow makes a task run of it."""


def directly(_name: str, work: Callable[[], Any]) -> Any:
    """Just do it."""
    return work()


class Superseded(RoundVoid):
    """The coordinator has opened a newer round and will not come back to this one."""


class CoordinatorSession:
    """A `Federation` of houses that answer through the exchange."""

    def __init__(
        self,
        study: Study,
        channel: RoundChannel,
        sites: Sequence[str],
        memory: MutableMapping[str, Any],
        patience: timedelta,
        *,
        roster: str = "",
        through: Through = directly,
        epoch: int = 0,
        release: Release | None = None,
    ) -> None:
        self.study, self.channel, self.round, self.patience = study, channel, channel.round, patience
        self.epoch, self.release = epoch or channel.round, release
        self._roster, self._through = roster, through
        self.left_out: dict[str, str] = {}
        self._memory, self._all, self._asked = memory, sorted(sites), 0
        self._cards: dict[str, Card] = {}
        self._untold: dict[str, Card] = {}
        self.described: dict[str, Description] = {}  # for the report: what sites told about themselves
        self.figures: dict[str, Mapping[str, float]] = {}  # and about their models, where they agreed to share it

    @property
    def sites(self) -> Sequence[str]:
        """Who is still there."""
        return [site for site in self._all if site not in self.left_out]

    def leave_out(self, site: str, reason: str) -> None:
        """Go on without a site."""
        self.left_out[site] = in_short(reason)

    def verify(self, site: str, words: bytes, signature: bytes) -> bool:
        """Whether a site has signed these words."""
        return site in self.channel.roster and verify(self.channel.roster[site], words, signature)

    def run(self) -> Over:
        """Open the round, run the study's algorithm or use again what its epoch has told, say that it is over."""
        opening = Opening(self.round, self.study.digest, self._roster, self.channel.key.public, self.epoch)
        self.channel.publish("opening", 1, "Opening", lambda: wire.pack(opening), {})
        algorithm = ALGORITHMS[self.study.algorithm.name]
        try:
            if self.release is None:
                self.release = open_epoch(self, self.study, algorithm)
            else:
                resume_epoch(self, algorithm, self.epoch, self.release)
            over = Over(self.release.model, "")
        except RoundVoid as void:
            over = Over("", in_short(void))
        self.channel.publish(OVER, 1, "Over", lambda: wire.pack(over), {})
        return over

    def ask(self, step: str, orders: Mapping[str, Message], attempt: int = 1) -> dict[str, Message]:
        """Publish the orders and wait for the answers; who has not answered by the deadline is out."""
        self._asked += 1
        answers: dict[str, Message] = self._through(
            f"ask {len(orders)} sites to {step}", lambda: self._ask(step, orders, attempt)
        )
        return answers

    def _ask(self, step: str, orders: Mapping[str, Message], attempt: int) -> dict[str, Message]:
        asked = Ask(step, attempt, orders_of(orders), self._untold)
        keys = {site: card.key for site, card in self._cards.items()}
        name = ask_name(self._asked)
        self.channel.publish(name, 1, "Ask", lambda: wire.squeeze(wire.pack(asked)), keys, f"{name}-{step}")
        replies = self._replies(step, attempt, sorted(orders))
        self._untold = {
            site: Card(reply.key, reply.present, reply.signature)
            for site, reply in replies.items()
            if isinstance(reply, INTRODUCTIONS) and site not in self._cards
        }
        self._cards |= self._untold
        for site, reply in replies.items():
            if isinstance(reply, Description):
                self.described[site] = reply
            elif isinstance(reply, Done) and reply.figures:
                self.figures[site] = reply.figures
        return replies

    def _replies(self, step: str, attempt: int, sites: list[str]) -> dict[str, Message]:
        """The answers that count. Which do is decided once, and remembered through restarts."""
        name = f"answers-{self._asked:03d}"
        if name not in self._memory:
            heard = self._hear(step, attempt, sites)
            fates = {site: _fate(step, heard.get(site)) for site in sites}
            # Kept here: by a restart a sender may have taken its answer back, or put another one in its place.
            counted = {
                site: reply for site in sites if isinstance(reply := heard.get(site), Message) and not fates[site]
            }
            self._memory[f"{name}-letters"] = msgpack.packb(
                {site: wire.encode_message(one) for site, one in counted.items()}
            )
            self._memory[name] = json.dumps(fates)
        else:
            fates = json.loads(self._memory[name])
            letters = msgpack.unpackb(self._memory[f"{name}-letters"])
            counted = {site: wire.decode_message(letter) for site, letter in letters.items()}
        for site, fate in fates.items():
            if fate:
                self.leave_out(site, fate)
        return counted

    def _hear(self, step: str, attempt: int, sites: list[str]) -> dict[str, Message | Refused]:
        """What came in time, be it right or wrong."""
        heard: dict[str, Message | Refused] = {}

        def look() -> int:
            for site in sites:
                if site not in heard:
                    try:
                        reply = self._reply(site, step, attempt)
                    except Refused as reason:
                        heard[site] = reason
                    else:
                        heard.update({} if reply is None else {site: reply})
            return len(sites) - len(heard)

        self.channel.exchange.poll(look, self.patience, self.channel.clock)
        return heard

    def _reply(self, site: str, step: str, attempt: int) -> Message | None:
        content = self.channel.look(site, step, attempt, wire.kind_of, LARGEST_LETTER)
        if content is None:
            return None
        try:
            reply = wire.decode_message(wire.unsqueeze(content))
            disclosure.check_message(reply, self.study)
            if isinstance(reply, INTRODUCTIONS):
                self._check_key(site, reply)
        except Refused as reason:
            self.channel.refused(site, step, reason)
            raise
        return reply

    def _check_key(self, site: str, reply: Description | Enrolment | Resumed) -> None:
        """A key that is none would make every peer that seals for it fail, instead of its owner."""
        check_round_key(reply.key, site)
        words = key_words(self.study, self.round, site, reply.key, reply.present)
        if not self.verify(site, words, reply.signature):
            raise Refused("its round key is not signed by itself")


def _fate(step: str, heard: Message | Refused | None) -> str:
    """Why an answer does not count, or nothing."""
    if heard is None:
        return f"no answer to {step} in time"
    if isinstance(heard, Refused):
        return f"{step} refused: {heard}"
    return heard.reason if isinstance(heard, Decline) else ""


class SealedMail:
    """A site's sealed mail to its peers over the exchange."""

    def __init__(self, channel: RoundChannel) -> None:
        self.channel = channel
        self.peers: Mapping[str, Card] = {}

    def post(self, content: bytes, recipients: Sequence[str]) -> Parcel:
        """Publish for the recipients, and for nobody else."""
        digest = content_digest(content)
        keys = {name: card.key for name, card in self.peers.items() if name in recipients and name != self.channel.me}
        if keys:
            self.channel.publish(f"{PARCEL}{digest[:32]}", 1, "Parcel", lambda: content, keys)
        return Parcel(self.channel.me, digest, len(content))

    def fetch(self, parcel: Parcel) -> bytes:
        """What a peer has sealed for this site."""
        limit, step = min(parcel.size, LARGEST) + 64 * 1024, f"{PARCEL}{parcel.digest[:32]}"
        content = self.channel.insist(lambda: self.channel.look(parcel.sender, step, 1, "Parcel", limit))
        if content is None:
            raise Refused(f"there is no parcel of {parcel.sender} for {self.channel.me}")
        return content


class SiteSession:
    """One site's part in a round: answer until the coordinator says that it is over."""

    def __init__(
        self,
        study: Study,
        channel: RoundChannel,
        coordinator: str,
        cohort: Cohort,
        memory: MutableMapping[str, Any],
        history: MutableMapping[str, int],
        *,
        jobs: int = 1,
        spread: Spread | None = None,
        budget: Callable[[float], Callable[[], bool]] | None = None,
        through: Through = directly,
        superseded: Callable[[], bool] = lambda: False,
        incumbent: Incumbent | None = None,
        epoch: int = 0,
        lent_leaf: int | None = None,
        withdrawn: frozenset[str] = frozenset(),
    ) -> None:
        self.study, self.channel, self.coordinator = study, channel, coordinator
        self._through, self._superseded = through, superseded
        self._post = SealedMail(channel)
        self._house = SiteContext(
            channel.me, study, channel.round, cohort, self._post, channel.identity.sign, self._verify
        )
        self._house.memory, self._house.history, self._house.jobs = memory, history, jobs
        self._house.budget, self._house.incumbent = budget or self._house.budget, incumbent
        self._house.spread, self._house.epoch = spread, epoch or channel.round
        self._house.lent_leaf, self._house.withdrawn = lent_leaf or 0, withdrawn
        self._post.peers = self._house.cards
        memory.setdefault("key", channel.key.private.private_bytes_raw())
        self._part: SitePart = ALGORITHMS[study.algorithm.name].site_part(self._house)

    @property
    def outcome(self) -> Outcome | None:
        """This site's result, once the last step is done."""
        return self._house.outcome

    @property
    def kept(self) -> dict[str, Any]:
        """What this site keeps of the round for the nights of its epoch."""
        return kept_of(type(self._part), self._house.memory)

    def run(self, patience: timedelta) -> Over:
        """Answer every ask. RoundVoid when the coordinator falls silent for longer, or says what can't be read."""
        try:
            return self._run(patience)
        except NotForUs:
            raise RoundVoid(
                f"{self.coordinator} went on with round {self.channel.round} without this house, which keeps the model "
                "that it has"
            ) from None
        except Refused as reason:
            raise RoundVoid(f"{reason}; this house keeps the model that it has") from None

    def _run(self, patience: timedelta) -> Over:
        opening = self._await_opening(patience)
        number = 1
        while True:
            said = self._next(number, patience)
            if isinstance(said, Over):
                return said
            self._answer(said, opening.key)
            number += 1

    def _await_opening(self, patience: timedelta) -> Opening:
        found = self.channel.exchange.wait_until(lambda: self._look("opening"), patience, self.channel.clock)
        if found is None:
            raise RoundVoid(f"{self.coordinator} has sent no opening in time; this house keeps the model that it has")
        opening = self._unpacked("opening", found, Opening)
        if (opening.round, opening.study, opening.epoch) != (self.channel.round, self.study.digest, self._house.epoch):
            raise Refused("the opening is of another round, epoch or study")
        return opening

    def _answer(self, ask: Ask, coordinator_key: bytes) -> None:
        content = next((order.content for order in ask.orders if self.channel.me in order.sites), None)
        try:
            self._house.introduce(ask.cards)
            order = None if content is None else wire.decode_message(content)
        except Refused as reason:
            self.channel.refused(self.coordinator, ask.step, reason)
            order = Decline(in_short(reason))
        if content is None or order is None:
            return
        self._through(title(ask.step, order, self.study), lambda: self._reply(ask, order, coordinator_key))

    def _reply(self, ask: Ask, order: Message, coordinator_key: bytes) -> None:
        """Answer once. Only the last step is done again after a restart: its result is this house's own model."""
        if self.channel.has_sent(ask.step, ask.attempt) and ask.step != self._part.last_step:
            kind, content = "", b""  # what was sent is published again as it was
        else:
            message = order if isinstance(order, Decline) else self._answered(ask, order)
            kind, content = type(message).__name__, wire.squeeze(wire.encode_message(message))
            if isinstance(message, Decline):
                self._house.memory[DECLINED] = ask.step
        self.channel.publish(ask.step, ask.attempt, kind, lambda: content, {self.coordinator: coordinator_key})

    def _answered(self, ask: Ask, order: Message) -> Message:
        try:
            message = self._part.answer(ask.step, order)
            disclosure.check_message(message, self.study)
        except Refused as reason:
            self.channel.refused(self.coordinator, ask.step, reason)
            return Decline(in_short(reason))
        return message

    def _verify(self, site: str, words: bytes, signature: bytes) -> bool:
        return site in self.channel.roster and verify(self.channel.roster[site], words, signature)

    def _look(self, step: str) -> bytes | None:
        kind = {"opening": "Opening", OVER: "Over"}.get(step, "Ask")
        return self.channel.look(self.coordinator, step, 1, kind, LARGEST_LETTER if kind == "Ask" else LARGEST_NOTE)

    def _unpacked(self, step: str, content: bytes, kind: type[Plain]) -> Plain:
        """What the coordinator has signed, if it makes sense."""
        try:
            return wire.unpack(wire.unsqueeze(content) if kind is Ask else content, kind)
        except Refused as reason:
            self.channel.refused(self.coordinator, step, reason)
            raise

    def _next(self, number: int, patience: timedelta) -> Ask | Over:
        """What the coordinator says next: the ask of this number, or that it is over."""
        looks = count()

        def find() -> Ask | Over | None:
            over = self._look(OVER)  # before the ask: all asks are there when it is
            ask = None if DECLINED in self._house.memory else self._look(ask_name(number))
            if ask is not None:
                return self._unpacked(ask_name(number), ask, Ask)
            if over is not None:
                return self._unpacked(OVER, over, Over)
            if next(looks) % LOOKS_BETWEEN_LISTINGS == LOOKS_BETWEEN_LISTINGS - 1 and self._superseded():
                raise Superseded(f"{self.coordinator} has left round {self.channel.round} and opened a newer one")
            return None

        said = self.channel.exchange.wait_until(find, patience, self.channel.clock)
        if said is None:
            raise RoundVoid(f"{self.coordinator} has been silent for {patience}; this house keeps what it has")
        return said
