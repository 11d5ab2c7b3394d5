"""Secure sums of real numbers under all three modes, for any algorithm: moments, gradients, curvatures, histograms.

A site's part says what its rows add (`summands`); the coordinator's `Adding` asks, as often as an algorithm needs.
Every sum has a subject and is opened once per round. What follows from a sum need not be taken on trust: the next order
can carry how the last sum was opened, and a site that was part of a masked sum opens it again (`reopened`).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused, RoundVoid
from spinney.federation import secure_sum
from spinney.federation.filling import FillingSite
from spinney.federation.fixed_point import DIGITS, FixedPoint
from spinney.federation.gathering import ask, require
from spinney.federation.messages import (
    AddOrder,
    MaskedReals,
    OpenedSum,
    PlainReals,
    ReleaseOrder,
    RingPackets,
    RingReals,
    SignOrder,
)
from spinney.federation.seam import Federation, Message
from spinney.federation.secure_sum import Binding, Counts, Noisy, Roll
from spinney.federation.summing import (
    Subject,
    check_order,
    hide,
    masked_total,
    release_sum,
    sign_roll,
    well_formed,
)
from spinney.rows.describe import most_rows, rounded_rows

if TYPE_CHECKING:
    from spinney.study.study import Study

Floats = NDArray[np.float64]

ADD, SIGN, RELEASE, RING = "add", "add_sign", "add_release", "add_ring"
ADDING = frozenset({ADD, SIGN, RELEASE, RING})
SUBJECT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


@dataclass(frozen=True)
class Terms:
    """Of how many numbers a sum is, and between which two numbers one row's part of each lies."""

    cells: int
    low: float
    high: float
    digits: int = DIGITS

    def over(self, rows: int) -> FixedPoint:
        """How sums over so many rows are written."""
        return FixedPoint(self.low, self.high, rows, self.digits)


# ---------------------------------------------------------------------------------------------------------------
# The site


class RealSums(FillingSite):
    """The steps of a sum of real numbers."""

    @abstractmethod
    def summands(self, order: AddOrder) -> tuple[Floats, Terms]:
        """What this site's rows add up to, and the terms of the sum. Refused if it is none of this algorithm's."""

    @property
    def rows_told(self) -> int:
        """The most rows that there may be here by what others know."""
        privacy = self.house.study.privacy
        return most_rows(rounded_rows(len(self.training), privacy), privacy)

    def add(self, order: AddOrder) -> Message:
        """Hide what this site's rows add up to, and send it."""
        house, cards = self.house, check_order(self.house, order)
        prefix = _prefix(order.subject)
        if f"{prefix}released" in house.memory:
            raise Refused(f"the sum {order.subject} of this round was opened already")
        values, terms = self.summands(order)
        if values.shape != (terms.cells,):
            raise ValueError(f"{values.shape} numbers where the terms say {terms.cells}")
        cells = terms.over(order.most).whole(values, self.rows_told)[:, None]
        house.memory["adding"], house.memory[f"{prefix}most"] = order.subject, str(order.most)
        if order.mode == "trusted-third-party":
            return PlainReals(cells)
        binding = _binding(house.study.digest, house.round, order)
        if order.mode == "ring":
            return self._in_the_ring(order, cells, binding)
        return MaskedReals(hide(house, cells, cards, binding, prefix))

    def add_sign(self, order: SignOrder) -> Message:
        """Sign a list only if it has what this house sent."""
        return sign_roll(self.house, order, _prefix(self.house.recall("adding")))

    def add_release(self, order: ReleaseOrder) -> Message:
        """Let the sum be opened, once."""
        return release_sum(self.house, order, _prefix(self.house.recall("adding")))

    def add_ring(self, order: AddOrder) -> Message:
        """At the end of the ring its first site takes its noise off."""
        house = self.house
        check_order(house, order)
        prefix, binding = _prefix(order.subject), _binding(house.study.digest, house.round, order)
        if order.mode != "ring" or house.recall(f"{prefix}ring") != binding.digest:
            raise Refused("this is not the ring that this house has begun")
        packet = self._handed_on(order, int(house.recall(f"{prefix}cells")))
        return RingReals(secure_sum.ring_finish(packet, house.recall(f"{prefix}ring-seed"), binding, house.name))

    def reopened(self, opened: OpenedSum, terms: Terms) -> Floats:
        """The total of a sum of this round. In a masked one nothing is believed: it is opened again, and only it."""
        house, prefix = self.house, _prefix(opened.subject)
        numbers = terms.over(int(house.recall(f"{prefix}most")))
        if house.study.privacy.secure_sum != "masked":
            return self._believed(opened, terms, numbers)
        binding = Binding.read(house.recall(f"{prefix}asking"))
        if opened.hidden.shape != (len(binding.participants), terms.cells):
            raise Refused(f"the sum {opened.subject} was opened from other answers")
        answers = dict(zip(binding.participants, opened.hidden[:, :, None], strict=True))
        digests = tuple((site, secure_sum.reply_digest(masked, binding)) for site, masked in answers.items())
        if house.recall(f"{prefix}released") != Roll(binding, digests).digest:
            raise Refused(f"the sum {opened.subject} was opened from other answers than those that this house signed")
        seeds = dict(zip(binding.participants, opened.seeds, strict=False))
        try:
            return numbers.real(secure_sum.unmask(answers, seeds, binding)[:, 0])
        except RoundVoid as reason:
            raise Refused(f"the sum {opened.subject} does not open: {reason}") from None

    def _believed(self, opened: OpenedSum, terms: Terms, numbers: FixedPoint) -> Floats:
        """The total as a trusted third party, or the first site of a ring, has told it."""
        if opened.total.shape != (terms.cells,):
            raise Refused(f"a sum of {opened.total.size} numbers where {terms.cells} were asked")
        try:
            return numbers.real(opened.total)
        except RoundVoid as reason:
            raise Refused(f"the sum {opened.subject} can't be: {reason}") from None

    def _in_the_ring(self, order: AddOrder, cells: Counts, binding: Binding) -> Message:
        """Begin it, or add to the packet that comes by. Once: a second ring with fewer sites would show who is lost."""
        house, names, prefix = self.house, order.participants, _prefix(order.subject)
        if house.memory.setdefault(f"{prefix}ring", binding.digest) != binding.digest:
            raise Refused("a ring goes round once, and this is not the ring that this house has joined")
        house.memory[f"{prefix}cells"] = str(len(cells))
        if house.name == names[0]:
            seed = house.memory.setdefault(f"{prefix}ring-seed", secure_sum.new_seed())
            packet = secure_sum.ring_start(cells, seed, binding, house.name)
        else:
            packet = secure_sum.ring_add(self._handed_on(order, len(cells)), cells)
        following = names[(names.index(house.name) + 1) % len(names)]
        return RingPackets({names[0]: house.mail.post(packet.astype("<u8").tobytes(), [following])})

    def _handed_on(self, order: AddOrder, cells: int) -> Noisy:
        house, names = self.house, order.participants
        before = names[names.index(house.name) - 1]
        if len(order.packets) != 1 or order.packets[0].sender != before:
            raise Refused(f"the packet does not come from {before}")
        parcel = order.packets[0]
        if house.memory.setdefault(f"{_prefix(order.subject)}packet", parcel.digest) != parcel.digest:
            raise Refused("the packet came twice")
        content = house.open(parcel)
        if len(content) != 8 * cells:
            raise Refused(f"the packet has {len(content)} bytes for {cells} numbers")
        return np.frombuffer(content, dtype="<u8").reshape(-1, 1)


def _prefix(subject: str) -> str:
    if not SUBJECT.fullmatch(subject):
        raise Refused("the subject of a sum is a short name")
    return f"add-{subject}-"


def _binding(study_digest: str, round_: int, order: AddOrder) -> Binding:
    return Binding(study_digest, round_, ADD, order.attempt, order.participants, order.about)


# ---------------------------------------------------------------------------------------------------------------
# The coordinator


@dataclass(frozen=True)
class Sum:
    """What came out, and how: the evidence goes with the next order."""

    values: Floats
    participants: tuple[str, ...]
    opened: OpenedSum


class Adding:
    """All sums of real numbers of one round, asked one after the other."""

    def __init__(self, federation: Federation, study: Study, rows: Mapping[str, int]) -> None:
        self._federation, self._study, self._rows = federation, study, rows
        self._attempts = count(1)
        self.numbers = 0
        """How many were opened so far."""

    def total(self, subject: str, terms: Terms, order: Callable[..., AddOrder] = AddOrder, **more: Any) -> Sum:
        """Ask all sites that are still there. RoundVoid if the sum can't be opened, or can't be."""
        mode = self._study.privacy.secure_sum
        way = {"masked": self._masked, "ring": self._ring}.get(mode, self._plain)
        found = way(terms, lambda attempt: self._order(order, subject, attempt, more))
        self.numbers += terms.cells
        return found

    def _order(self, kind: Callable[..., AddOrder], subject: str, attempt: int, more: Mapping[str, Any]) -> AddOrder:
        require(self._federation, self._study)
        members = tuple(site for site in self._federation.sites if site in self._rows)
        most = sum(most_rows(self._rows[site], self._study.privacy) for site in members)
        mode = self._study.privacy.secure_sum
        return kind(subject=subject, mode=mode, attempt=attempt, participants=members, most=most, packets=(), **more)

    def _masked(self, terms: Terms, next_order: Callable[[int], AddOrder]) -> Sum:
        opened = masked_total(
            self._federation,
            self._study.digest,
            (ADD, SIGN, RELEASE),
            MaskedReals,
            next_order,
            lambda order: Subject(order.about, terms.cells, across=1),
            self._attempts,
        )
        order, names = opened.order, opened.order.participants
        values = terms.over(order.most).real(opened.total[:, 0])
        hidden = np.stack([opened.answers[site][:, 0] for site in names])
        evidence = OpenedSum(order.subject, hidden, tuple(opened.seeds[site] for site in names), NO_TOTAL)
        return Sum(values, names, evidence)

    def _plain(self, terms: Terms, next_order: Callable[[int], AddOrder]) -> Sum:
        order = next_order(next(self._attempts))
        asked = dict.fromkeys(order.participants, order)
        replies = ask(self._federation, ADD, asked, PlainReals, order.attempt)
        parts = well_formed(self._federation, lambda _: (terms.cells, 1), replies)
        require(self._federation, self._study)
        total = secure_sum.plain_sum(parts)[:, 0]
        return self._in_clear(terms, order, tuple(sorted(parts)), total)

    def _ring(self, terms: Terms, next_order: Callable[[int], AddOrder]) -> Sum:
        """One packet goes once round; a lost site voids the sum, because asking again would reveal it."""
        order = next_order(next(self._attempts))
        names, asked = order.participants, order
        for site in names:
            replies = ask(self._federation, ADD, {site: asked}, RingPackets, order.attempt)
            if site not in replies or {*replies[site].packets} != {names[0]}:
                raise RoundVoid(f"{site} was lost while the ring went round")
            asked = replace(order, packets=tuple(replies[site].packets.values()))
        last = ask(self._federation, RING, {names[0]: asked}, RingReals, order.attempt)
        if names[0] not in last or last[names[0]].counts.shape != (terms.cells, 1):
            raise RoundVoid(f"{names[0]} was lost at the end of the ring")
        return self._in_clear(terms, order, names, last[names[0]].counts[:, 0])

    def _in_clear(self, terms: Terms, order: AddOrder, names: tuple[str, ...], total: Counts) -> Sum:
        evidence = OpenedSum(order.subject, NO_ANSWERS, (), total)
        return Sum(terms.over(order.most).real(total), names, evidence)


NO_ANSWERS: Noisy = np.zeros((0, 0), dtype=np.uint64)
NO_TOTAL: Counts = np.zeros(0, dtype=np.int64)
