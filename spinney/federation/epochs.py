"""Epochs: what is told about patients is told once, and used again by digest on the nights after.

    the opening     the study's algorithm, whole: describe, grow, check, score, weigh, choose
    a night after   resume   who is there, and who still has what was told
                    lend     the same trees, sealed for those who were away
                    finish   the same last order: everybody chooses on tonight's patients, with own trees of tonight

On a night after, a site answers these steps only. So nothing new about its patients can leave, whatever it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused, RoundVoid
from spinney.federation.filling import FillingSite
from spinney.federation.gathering import ask
from spinney.federation.messages import Invitation, LendOrder, Lent, Resumed, ResumeOrder, Weights
from spinney.federation.seam import Algorithm, Decline, Federation, Message, Parcel, SitePart
from spinney.rows.plane import SiteMap

if TYPE_CHECKING:
    from spinney.study.study import Study

HOLDS, LENT = "holds", "lent"


# ---------------------------------------------------------------------------------------------------------------
# The site


class EpochSite(FillingSite):
    """Come back on a night of an epoch that is open, and lend again what was lent when it opened."""

    later_steps = frozenset({"resume", "lend"})
    kept: ClassVar[tuple[str, ...]] = (HOLDS, LENT, "means", "told-", "finished", "verdict-", "parcel-", "attacked")
    """Beginnings of the names in a round's memory that stay until the epoch ends."""

    def answer(self, step: str, order: Message) -> Message:
        """Do one step; after the last one this site has all that it needs for the nights of the epoch."""
        house = self.house
        if house.resumes and step in (self.steps | self.first_steps) - {self.last_step}:
            raise Refused(
                f"{step} tells something new, and what the epoch of round {house.epoch} tells was told before"
            )
        if step in self.later_steps and not house.resumes:
            raise Refused(f"{step} is not a step of a night on which an epoch opens")
        reply = super().answer(step, order)
        if step == self.last_step and not self.lacking:
            self.house.memory[HOLDS] = "yes"
        return reply

    @property
    def lacking(self) -> frozenset[str]:
        """Sites whose trees have not come to this one tonight."""
        return frozenset()

    def resume(self, order: ResumeOrder) -> Message:
        """Say that this site is there, and whether it needs to be lent what it has missed."""
        house = self.house
        if order.epoch != house.epoch:
            raise Refused(f"the epoch of round {order.epoch} was asked for, this night is of that of {house.epoch}")
        privacy = house.study.privacy
        if self.training.patient_count < privacy.smallest_cohort:
            return Decline(f"fewer patients than the smallest cohort of {privacy.smallest_cohort}")
        if house.study.imputation == "federated-means":
            self.fill_with(order.means)
        public, signature = self.introduced()
        return Resumed(HOLDS in house.memory, house.cohort.present, public, signature)

    def lend(self, order: LendOrder) -> Message:
        """Seal what was lent when the epoch opened, to the last byte, for those who were away then."""
        return Lent(self.house.mail.post(self.house.recall(LENT), order.peers))


# ---------------------------------------------------------------------------------------------------------------
# The coordinator


@dataclass(frozen=True)
class Release:
    """What an epoch's opening came to: what the common model is called, and what every site was told last."""

    model: str
    orders: Mapping[str, Message]
    means: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def order_of(self, site: str) -> Message:
        """What a site is told again. A guest learns with the largest group, and stands on nobody's map."""
        if site in self.orders:
            return self.orders[site]
        trees = {member: frozenset(parcels_in(order)) for member, order in sorted(self.orders.items())}
        order = self.orders[max(trees, key=lambda member: [*trees.values()].count(trees[member]))]
        return replace(order, map=SiteMap()) if isinstance(order, Weights) else order

    @property
    def lenders(self) -> frozenset[str]:
        """Whose trees there are to lend."""
        return frozenset(parcel.sender for order in self.orders.values() for parcel in parcels_in(order))


def open_epoch(federation: Federation, study: Study, algorithm: Algorithm) -> Release:
    """The study's algorithm, and what came of it."""
    noting = Noting(federation, algorithm.site_part.last_step)
    model = algorithm.coordinate(noting, study)
    return Release(model, noting.last, noting.means)


def resume_epoch(federation: Federation, algorithm: Algorithm, epoch: int, release: Release) -> str:
    """A night of an epoch that is open: everybody who comes is told what the epoch's opening came to."""
    order = ResumeOrder(epoch, release.means)
    back = ask(federation, "resume", dict.fromkeys(federation.sites, order), Resumed)
    if not back:
        raise RoundVoid(f"no site has come; the epoch of round {epoch} goes on the next night")
    guests = tuple(sorted(site for site, reply in back.items() if not reply.holds))
    lenders = [site for site, reply in back.items() if reply.holds and site in release.lenders]
    if guests and lenders:
        ask(federation, "lend", dict.fromkeys(lenders, LendOrder(guests)), Lent)
    there = [site for site in federation.sites if site in back]
    federation.ask(algorithm.site_part.last_step, {site: release.order_of(site) for site in there})
    return release.model


class Noting:
    """A federation, and what its sites are told last."""

    def __init__(self, federation: Federation, last_step: str) -> None:
        self._federation, self._last_step = federation, last_step
        self.last: dict[str, Message] = {}
        self.means: NDArray[np.float64] = np.empty(0)

    @property
    def round(self) -> int:
        """Number of this round."""
        return self._federation.round

    @property
    def sites(self) -> Sequence[str]:
        """Who is still there."""
        return self._federation.sites

    @property
    def left_out(self) -> Mapping[str, str]:
        """Who is not, and why."""
        return self._federation.left_out

    def ask(self, step: str, orders: Mapping[str, Message], attempt: int = 1) -> dict[str, Message]:
        """Ask, and note the last order."""
        for order in orders.values():
            if isinstance(order, Invitation):
                self.means = order.means
        if step == self._last_step:
            self.last.update(orders)
        return self._federation.ask(step, orders, attempt)

    def leave_out(self, site: str, reason: str) -> None:
        """Go on without a site."""
        self._federation.leave_out(site, reason)

    def verify(self, site: str, words: bytes, signature: bytes) -> bool:
        """Whether a site has signed these words."""
        return self._federation.verify(site, words, signature)


def kept_of(part: type[SitePart], memory: Mapping[str, Any]) -> dict[str, Any]:
    """What a site keeps of a round's memory for the nights of the epoch."""
    beginnings = part.kept if issubclass(part, EpochSite) else ()
    return {name: memory[name] for name in memory if name.startswith(beginnings)}


def parcels_in(value: object) -> Iterator[Parcel]:
    """All parcels that an order speaks of."""
    if isinstance(value, Parcel):
        yield value
    elif is_dataclass(value):
        for one in fields(value):
            yield from parcels_in(getattr(value, one.name))
    elif isinstance(value, Mapping):
        for content in value.values():
            yield from parcels_in(content)
    elif isinstance(value, tuple):
        for content in value:
            yield from parcels_in(content)
