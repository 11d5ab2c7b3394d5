"""Federated means: what is missing is filled with the mean over all sites, or with the most frequent category.

Every site tells, hidden in a secure sum, what its characteristic vector would tell (the mean of each scaled column over
its training rows, rounded, nothing below the smallest cohort) times the number of rows behind it, rounded. The means
come before the characteristic vectors, and every model carries what it was filled with. The sums are whole numbers, so
all three secure sums give the same means bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Declined, Refused, RoundVoid
from spinney.federation import secure_sum
from spinney.federation.gathering import ask, require
from spinney.federation.messages import (
    Enrolment,
    EnrolOrder,
    FillOrder,
    MaskedMeans,
    PlainMeans,
    ReleaseOrder,
    RingMeans,
    RingOrder,
    RingPackets,
    SignOrder,
)
from spinney.federation.seam import Decline, Federation, Message, SiteContext, SitePart, key_words
from spinney.federation.secure_sum import Binding, Counts, Noisy
from spinney.federation.summing import (
    Subject,
    check_order,
    check_participants,
    hide,
    masked_total,
    release_sum,
    sign_roll,
    well_formed,
)
from spinney.rows.describe import (
    MEAN_STEPS,
    VECTOR_DECIMALS,
    characteristic_vector,
    known_rows,
    most_rows,
    rounded_rows,
)
from spinney.rows.encode import columns_of
from spinney.rows.parts import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spinney.rows.cohort import Cohort
    from spinney.rows.encode import Column
    from spinney.study.settings import Privacy
    from spinney.study.study import Study

Floats = NDArray[np.float64]
Reply = TypeVar("Reply", bound=Message)
STEP, PREFIX, ABOUT = "fill", "fill-", "means of all columns"


# ---------------------------------------------------------------------------------------------------------------
# Arithmetic


def told_sums(training: Cohort, privacy: Privacy) -> Counts:
    """Known rows and their sum in thousandths per column: nothing that the characteristic vector would not tell."""
    told = characteristic_vector(training, privacy)[: len(training.columns)]
    rows = np.where(np.isnan(told), 0, known_rows(training, privacy))
    return np.stack([rows, np.rint(np.nan_to_num(told) * MEAN_STEPS).astype(np.int64) * rows], axis=1)


def means_of(total: Counts, most: int) -> Floats:
    """The mean of every column; NaN where nobody said anything, or where a sum can't be: that costs its column only."""
    rows, sums = total.T
    possible = (rows > 0) & (rows <= most)
    rows = np.where(possible, rows, 1)
    possible &= (sums >= 0) & (sums <= MEAN_STEPS * rows)
    mean: Floats = np.where(possible, sums, 0) / (MEAN_STEPS * rows)
    return np.asarray(np.round(np.where(possible, mean, np.nan), VECTOR_DECIMALS), dtype=np.float64)


def fill_of(means: Floats, columns: Sequence[Column]) -> NDArray[np.float32]:
    """What stands for a missing value: a mean, the more frequent of yes and no, the most frequent category."""
    fill = np.where((means >= 0) & (means <= 1), means, np.nan)
    places: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        places.setdefault(column.feature.name, []).append(place)
    for group in places.values():
        kind, shares = columns[group[0]].feature.kind, fill[group]
        if np.isnan(shares).any():
            fill[group] = np.nan
        elif kind == "binary":
            fill[group] = shares > 0.5
        elif kind == "categorical":
            fill[group] = np.arange(len(group)) == shares.argmax()
    return fill.astype(np.float32)


def filled_means(told: Floats, known: Floats, fill: NDArray[np.float32], present: NDArray[np.bool_]) -> Floats:
    """A site's means after filling, from what may be told of it: no more can be worked out than before."""
    filled = np.where(np.isnan(told), fill, known * told + (1 - known) * fill)
    return np.asarray(np.round(np.where(present & ~np.isnan(fill), filled, told), VECTOR_DECIMALS))


# ---------------------------------------------------------------------------------------------------------------
# The site


class FillingSite(SitePart):
    """Tell sums before the round, and fill what is missing with what came of all of them."""

    first_steps = frozenset({"enrol", "fill", "fill_sign", "fill_release", "fill_ring"})

    def __init__(self, house: SiteContext) -> None:
        super().__init__(house)
        if "means" in house.memory:  # a house that was started again in the middle of a round
            self._fill(house.memory["means"])

    @property
    def training(self) -> Cohort:
        """The rows to grow and to score on."""
        return self.house.cohort.rows(Part.TRAINING)

    def introduced(self) -> tuple[bytes, bytes]:
        """This site's public key for the round, signed together with the features that it has."""
        house = self.house
        public = secure_sum.public_key(house.memory.setdefault("key", secure_sum.new_key()))
        words = key_words(house.study, house.round, house.name, public, house.cohort.present)
        return public, house.sign(words)

    def enrol(self, order: EnrolOrder) -> Message:
        """Take part in the means, or decline with the reason."""
        house, training = self.house, self.training
        privacy = house.study.privacy
        if order.round != house.round or house.study.imputation != "federated-means":
            raise Refused("means were asked for another round, or the study doesn't fill with them")
        try:
            sums = told_sums(training, privacy)
            vector = characteristic_vector(training, privacy)
        except Declined:
            return Decline(f"fewer training patients than the smallest cohort of {privacy.smallest_cohort}")
        # What was told stays what it was: after filling, a column of few known values would look well known.
        house.memory.setdefault("told-sums", sums)
        house.memory.setdefault("told-vector", vector)
        public, signature = self.introduced()
        return Enrolment(rounded_rows(len(training), privacy), house.cohort.present, public, signature)

    def fill(self, order: FillOrder) -> Message:
        """Hide this site's sums, and send them."""
        house, sums = self.house, self._sums()
        cards = check_order(house, order)
        if order.mode == "trusted-third-party":
            return PlainMeans(sums)
        binding = binding_of(house.study.digest, house.round, order.attempt, order.participants)
        if order.mode == "ring":
            if house.name != order.participants[0]:
                raise Refused("another house begins the ring")
            self._enter_ring(binding)
            seed = house.memory.setdefault("fill-ring-seed", secure_sum.new_seed())
            return self._means_passed_on(secure_sum.ring_start(sums, seed, binding, house.name), binding)
        if "fill-released" in house.memory:
            raise Refused("the sum of this round's means was opened already")
        return MaskedMeans(hide(house, sums, cards, binding, PREFIX))

    def fill_sign(self, order: SignOrder) -> Message:
        """Sign a list only if it has what this house sent."""
        return sign_roll(self.house, order, PREFIX)

    def fill_release(self, order: ReleaseOrder) -> Message:
        """Let the sum be opened, once."""
        return release_sum(self.house, order, PREFIX)

    def fill_ring(self, order: RingOrder) -> Message:
        """Add to the packet that comes by; at the end the first site takes its noise off."""
        house, binding, sums = self.house, order.binding, self._sums()
        self._enter_ring(binding)
        first, names = binding.participants[0], binding.participants
        packet = self._means_packet(order, names[names.index(house.name) - 1])
        if house.name != first:
            return self._means_passed_on(secure_sum.ring_add(packet, sums), binding)
        total = secure_sum.ring_finish(packet, house.recall("fill-ring-seed"), binding, first)
        return RingMeans(means_of(total, order.most))

    def filled_vector(self, means: Floats) -> Floats:
        """The characteristic vector, after filling where the study says so; from here on the cohort is filled."""
        house = self.house
        privacy, present = house.study.privacy, house.cohort.present
        if house.study.imputation != "federated-means":
            if means.size:
                raise Refused("the study doesn't fill with the means of all sites")
            return characteristic_vector(self.training, privacy)
        if means.shape != present.shape:
            raise Refused(f"{len(means)} means for {len(present)} columns")
        told, sums = house.recall("told-vector"), house.recall("told-sums")
        self.fill_with(means)
        known = np.minimum(sums[:, 0] / max(rounded_rows(len(self.training), privacy), 1), 1.0)
        columns = len(present)
        fill = fill_of(means, house.cohort.columns)
        return np.concatenate([filled_means(told[:columns], known, fill, present), told[columns:]])

    def fill_with(self, means: Floats) -> None:
        """Fill what is missing with these means and no others, as long as they are told."""
        house = self.house
        if means.shape != house.cohort.present.shape:
            raise Refused(f"{len(means)} means for {len(house.cohort.present)} columns")
        if "means" in house.memory and not np.array_equal(house.memory["means"], means, equal_nan=True):
            raise Refused("this house has been filled with other means in this round")
        house.memory["means"] = means
        self._fill(means)

    def _fill(self, means: Floats) -> None:
        self.house.cohort = self.house.cohort.filled(fill_of(means, self.house.cohort.columns))

    def _sums(self) -> Counts:
        sums: Counts = self.house.recall("told-sums")
        return sums

    def _enter_ring(self, binding: Binding) -> None:
        house = self.house
        check_participants(house, binding.participants)
        own = binding_of(house.study.digest, house.round, 1, binding.participants)
        if binding != own or house.memory.setdefault("fill-ring", binding.digest) != binding.digest:
            raise Refused("a ring goes round once, and this is not the ring that this house has joined")

    def _means_packet(self, order: RingOrder, before: str) -> Noisy:
        parcel = order.packets.get(order.binding.participants[0])
        if parcel is None or parcel.sender != before:
            raise Refused(f"the packet does not come from {before}")
        if self.house.memory.setdefault("fill-ring-packet", parcel.digest) != parcel.digest:
            raise Refused("the packet came twice")
        content, cells = self.house.open(parcel), self._sums().size
        if len(content) != 8 * cells:
            raise Refused(f"the packet has {len(content)} bytes for {cells} numbers")
        return np.frombuffer(content, dtype="<u8").reshape(-1, 2)

    def _means_passed_on(self, packet: Noisy, binding: Binding) -> Message:
        names = binding.participants
        following = names[(names.index(self.house.name) + 1) % len(names)]
        return RingPackets({names[0]: self.house.mail.post(packet.astype("<u8").tobytes(), [following])})


def binding_of(study_digest: str, round_: int, attempt: int, participants: tuple[str, ...]) -> Binding:
    """What the masks and the ring's noise are good for, and for nothing else."""
    return Binding(study_digest, round_, STEP, attempt, participants, ABOUT)


# ---------------------------------------------------------------------------------------------------------------
# The coordinator


def federated_means(federation: Federation, study: Study) -> Floats:
    """The mean of every column over the training rows of all sites; NaN where there is none to be had."""
    order = dict.fromkeys(federation.sites, EnrolOrder(federation.round))
    enrolled = ask(federation, "enrol", order, Enrolment)
    mode, columns = study.privacy.secure_sum, len(columns_of(study.features))
    if mode == "ring":
        return _ring(federation, study, enrolled)
    if mode == "masked":
        opened = masked_total(
            federation,
            study.digest,
            (STEP, "fill_sign", "fill_release"),
            MaskedMeans,
            lambda attempt: _order(federation, study, enrolled, attempt),
            lambda _: Subject(ABOUT, columns),
        )
        return means_of(opened.total, _most(study, opened.order.participants, enrolled))
    first = _order(federation, study, enrolled, 1)
    replies = ask(federation, STEP, dict.fromkeys(first.participants, first), PlainMeans)
    sums = well_formed(federation, lambda _: (columns, 2), replies)
    require(federation, study)
    return means_of(secure_sum.plain_sum(sums), _most(study, tuple(sums), enrolled))


def _ring(federation: Federation, study: Study, enrolled: Mapping[str, Enrolment]) -> Floats:
    """One packet goes once round; a lost site voids the round, because asking again would reveal it."""
    order = _order(federation, study, enrolled, 1)
    names = order.participants
    binding = binding_of(study.digest, federation.round, 1, names)
    most = _most(study, names, enrolled)
    packet = ask(federation, STEP, {names[0]: order}, RingPackets)
    for place, site in enumerate(names[1:], start=1):
        before = _required(packet, names[place - 1])
        packet = ask(federation, "fill_ring", {site: RingOrder(binding, most, before.packets)}, RingPackets)
    last = RingOrder(binding, most, _required(packet, names[-1]).packets)
    return _required(ask(federation, "fill_ring", {names[0]: last}, RingMeans), names[0]).means


def _required(replies: Mapping[str, Reply], site: str) -> Reply:
    if site not in replies:
        raise RoundVoid(f"{site} was lost while the ring of the means went round")
    return replies[site]


def _order(federation: Federation, study: Study, enrolled: Mapping[str, Enrolment], attempt: int) -> FillOrder:
    require(federation, study)
    members = tuple(site for site in federation.sites if site in enrolled)
    return FillOrder(study.privacy.secure_sum, attempt, members)


def _most(study: Study, sites: tuple[str, ...], enrolled: Mapping[str, Enrolment]) -> int:
    return sum(most_rows(enrolled[site].rows, study.privacy) for site in sites)
