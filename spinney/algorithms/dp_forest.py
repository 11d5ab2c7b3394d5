"""A differentially private forest: trees drawn without any data, and the counts in their leaves under noise.

The trees of an epoch come from a seed that everybody knows. Every house counts its training patients in their leaves
and adds a share of two-sided geometric noise; only the masked sum of all houses is opened, once per epoch. So the noise
is that of one trusted centre, and pure epsilon holds against everybody, as long as `honest_sites` of the houses keep
their own noise to themselves. Each house keeps account over all epochs, and stays out when the budget is spent.

By one patient more or less in one house, one count of every tree differs by one: a patient with several rows counts
with one of them in each tree, with another in the next. Nothing else about patients leaves, not even which features
are there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from spinney.base import Settings
from spinney.choice.choose import outcome_of
from spinney.choice.personalise import Candidate, Chooser, Pool, Rules
from spinney.errors import Refused
from spinney.federation import noise, secure_sum
from spinney.federation.epochs import HOLDS
from spinney.federation.forest_site import ForestSite, forest_digest
from spinney.federation.gathering import ask, require
from spinney.federation.messages import (
    Done,
    FillOrder,
    Invitation,
    MaskedCounts,
    ReleaseOrder,
    Resumed,
    ResumeOrder,
    SignOrder,
)
from spinney.federation.noise import Source
from spinney.federation.seam import Algorithm, Decline, Federation, Message, MessageKind, key_words
from spinney.federation.secure_sum import Binding, Counts
from spinney.federation.summing import Subject, check_order, hide, masked_total, release_sum, sign_roll
from spinney.forest.score import abstains
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join_forests
from spinney.rows.encode import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.rows.cohort import Cohort
    from spinney.rows.encode import Column
    from spinney.study.study import Study

Floats = NDArray[np.float64]
STEP, SIGN, RELEASE = "count", "count_sign", "count_release"
TOGETHER = "all-houses.noisy"  # whose the trees are: no house's in particular
SPENT = "epsilon"


class DpForest(Settings):
    """One noisy release per epoch, of all houses together."""

    name: Literal["dp-forest"] = Field("dp-forest", description="Random trees, and noisy counts in their leaves.")
    epsilon: float = Field(1.0, ge=0.01, le=20, description="What one epoch's release may tell of a patient, at most.")
    total_epsilon: float = Field(10.0, ge=0.01, le=100, description="The same of all epochs together; then it is over.")
    honest_sites: int = Field(
        2, ge=1, description="So many houses' noise is enough; whoever colludes takes off their own and no other."
    )
    trees: int = Field(64, ge=1, le=1000, description="Trees of all houses together; the noise in each grows with it.")
    depth: int = Field(4, ge=1, le=12, description="Most splits on the way to a leaf; 7 pays from 10,000 patients on.")

    @property
    def rate(self) -> Fraction:
        """Of the noise in a count: a patient is counted once in every tree."""
        return Fraction(str(self.epsilon)) / self.trees

    def unsuited(self, study: Study) -> str:
        """Why epsilon would be false in a study; empty where it holds."""
        privacy, split = study.privacy, study.split
        wanted = {
            "privacy.secure_sum: masked, for a share of the noise hides nothing": privacy.secure_sum == "masked",
            "privacy.share_metrics: false, for figures have no noise": not privacy.share_metrics,
            "imputation: none, for means and medians have no noise": study.imputation == "none",
            "split: {validation: 0, newest: 0}, so that who trains does not depend on other patients": (
                split.validation == 0 and split.newest == 0
            ),
            f"privacy.fewest_scoring_sites of at least {self.honest_sites}, as honest_sites says": (
                privacy.fewest_scorers >= self.honest_sites
            ),
        }
        missing = [words for words, holds in wanted.items() if not holds]
        return f"dp-forest needs {'; '.join(missing)}" if missing else ""


@dataclass(frozen=True)
class Entered(Resumed):
    """From a site: it takes part. It says of no feature that it is missing, because that depends on patients."""


@dataclass(frozen=True)
class CountOrder(FillOrder):
    """To a site: count your patients in the leaves of the epoch's trees, and hide the counts among these sites."""


@dataclass(frozen=True)
class NoisyCounts(Message):
    """To a site: how many are well and sick in every leaf, over all houses and under the noise of all houses."""

    counts: NDArray[np.int64]
    houses: int

    @property
    def digest(self) -> str:
        """A site finishes an epoch's opening with one of these only."""
        return hashlib.sha256(f"{self.houses} ".encode() + self.counts.astype("<i8").tobytes()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------
# Trees and what their counts say


def blind_forest(study: Study, epoch: int) -> Forest:
    """The trees of an epoch, from what everybody knows: random splits on the study's grid, that can both be reached."""
    columns, settings = columns_of(study.features), study.algorithm
    source = noise.stream(f"spinney dp-forest {study.digest} {epoch} ".encode())
    grid = [_places(column) for column in columns]
    return join_forests([_grown(grid, columns, settings.depth, source) for _ in range(settings.trees)])


def _places(column: Column) -> tuple[int, int]:
    """First and last place of a cut; the end of the range, behind them, parts only what is known from what is not."""
    return 0, len(column.cuts) - 2


def _grown(grid: Sequence[tuple[int, int]], columns: Sequence[Column], depth: int, source: Source) -> Forest:
    feature: list[int] = []
    threshold: list[float] = []
    missing_left: list[bool] = []
    waiting = [(list(grid), depth)]
    while waiting:
        box, left = waiting.pop()
        can = [place for place, (first, last) in enumerate(box) if first <= last] if left else []
        if not can:
            feature.append(LEAF)
            threshold.append(0.0)
            missing_left.append(False)
            continue
        column = can[_one_of(len(can), source)]
        first, last = box[column]
        cut = first + _one_of(last - first + 1, source)
        feature.append(column)
        threshold.append(columns[column].cuts[cut])
        missing_left.append(bool(_one_of(2, source)))
        below, above = list(box), list(box)
        below[column], above[column] = (first, cut - 1), (cut + 1, last)
        waiting += [(above, left - 1), (below, left - 1)]  # the left one comes first in a preorder
    return Forest(np.array(feature, np.int16), np.array(threshold), np.array(missing_left), np.zeros(len(feature)))


def _one_of(count: int, source: Source) -> int:
    return int(noise.below(count, 1, source)[0])


def leaf_counts(trees: Forest, rows: Cohort) -> Counts:
    """The well and the sick in every leaf (leaves x 2): of every patient one row per tree, in turn."""
    order = np.argsort(rows.patients, kind="stable")
    _, first, many = np.unique(rows.patients[order], return_index=True, return_counts=True)
    number = np.cumsum(trees.feature == LEAF) - 1
    counts = np.zeros((int(number[-1]) + 1, 2), dtype=np.int64)
    walker = Walker(trees, len(rows.columns))
    for tree, start in enumerate(trees.starts):
        chosen = order[first + tree % many]
        leaf = number[start + walker.leaves(tree, rows.X[chosen])]
        np.add.at(counts, (leaf, (rows.y[chosen] == 1).astype(np.int64)), 1)
    return counts


def with_shares(trees: Forest, counts: Counts, spread: float) -> Forest:
    """The trees with the share of the sick in every leaf, drawn towards that of all as far as noise may have made it.

    `spread` is the noise's standard deviation: a leaf with no more patients than that says hardly anything.
    """
    there = np.maximum(counts, 0).astype(np.float64)
    well, sick = np.maximum(counts.sum(axis=0), 1)
    prior = 1 + spread
    share = (there[:, 1] + prior * sick / (well + sick)) / (there.sum(axis=1) + prior)
    probability = np.zeros(len(trees.feature))
    probability[trees.feature == LEAF] = share
    return Forest(trees.feature, trees.threshold, trees.missing_left, probability)


def common_forest(study: Study, epoch: int, order: NoisyCounts) -> Forest:
    """What everybody makes of a release."""
    trees, settings = blind_forest(study, epoch), study.algorithm
    if order.counts.shape != (np.count_nonzero(trees.feature == LEAF), 2) or order.houses < 1:
        raise Refused("two noisy counts per leaf of the epoch's trees are wanted")
    return with_shares(trees, order.counts, noise.spread_of(settings.rate, settings.honest_sites, order.houses))


# ---------------------------------------------------------------------------------------------------------------
# The site


class DpForestSite(ForestSite):
    """Take part, count under noise, and vote with what came of all."""

    steps, last_step = frozenset({"join", STEP, SIGN, RELEASE, "vote"}), "vote"
    first_steps = frozenset()

    @property
    def settings(self) -> DpForest:
        """The study's."""
        settings: DpForest = self.house.study.algorithm
        return settings

    @property
    def epoch(self) -> int:
        """The round that opened it."""
        return self.house.epoch or self.house.round

    @property
    def spent(self) -> Fraction:
        """What this house has told so far in this study, in epsilon; tonight's release, once it is out, is in it."""
        told = [name.split() for name in self.house.history if name.startswith(f"{SPENT} ")]
        return sum((Fraction(epsilon) for _, epsilon, _ in told), Fraction(0))

    def source(self) -> Source:
        """Where this house's noise comes from."""
        return noise.secret

    def join(self, order: Invitation) -> Message:
        """Say that this house takes part, and nothing of its patients: not even whether there are enough."""
        house, settings = self.house, self.settings
        if order.round != house.round:
            raise Refused(f"round {order.round} was opened, this house is in round {house.round}")
        if self._tonight() not in house.history and self.spent + Fraction(str(settings.epsilon)) > Fraction(
            str(settings.total_epsilon)
        ):
            return Decline(
                f"the privacy budget of epsilon {settings.total_epsilon:g} is spent: {float(self.spent):g} was told"
            )
        return self._entered()

    def resume(self, order: ResumeOrder) -> Message:
        """Come back on a night after the opening."""
        if order.epoch != self.house.epoch:
            raise Refused(
                f"the epoch of round {order.epoch} was asked for, this night is of that of {self.house.epoch}"
            )
        return self._entered()

    def introduced(self) -> tuple[bytes, bytes]:
        """This site's public key, signed together with a feature list that leaves none out."""
        house = self.house
        public = secure_sum.public_key(house.memory.setdefault("key", secure_sum.new_key()))
        return public, house.sign(key_words(house.study, house.round, house.name, public, self._all_features()))

    def count(self, order: CountOrder) -> Message:
        """This house's patients in the leaves, under its share of the noise and under masks."""
        house, settings = self.house, self.settings
        cards = check_order(house, order)
        if len(order.participants) < settings.honest_sites:
            raise Refused(f"the noise of {len(order.participants)} houses is less than epsilon needs")
        if "released" in house.memory:
            raise Refused("this epoch's counts are out, and they leave once")
        if "noisy" not in house.memory:
            counts = leaf_counts(blind_forest(house.study, self.epoch), self.training)
            drawn = noise.noise_share(counts.size, settings.rate, settings.honest_sites, self.source())
            house.memory["noisy"] = counts + drawn.reshape(counts.shape)
        about = Binding(house.study.digest, house.round, STEP, order.attempt, order.participants, _about(house.study))
        return MaskedCounts(hide(house, house.memory["noisy"], cards, about))

    def count_sign(self, order: SignOrder) -> Message:
        """Sign a list only if it has what this house sent."""
        return sign_roll(self.house, order)

    def count_release(self, order: ReleaseOrder) -> Message:
        """Let the sum be opened, once, and write down what it costs before it leaves."""
        reply = release_sum(self.house, order)
        self.house.history[self._tonight()] = self.house.round
        return reply

    def vote(self, order: NoisyCounts) -> Message:
        """Choose between the own forest, which stays here, and that of all houses."""
        house = self.house
        house.recall("key")
        if house.memory.setdefault("finished", order.digest) != order.digest:
            raise Refused("this epoch has ended here with other counts; its test rows are not measured twice")
        common = common_forest(house.study, self.epoch, order)
        if "forest" not in house.memory:  # the local one: nothing is lent, so the floor is that for home
            self._keep("forest", "unseen", *self._grown(house.name, house.study.privacy.smallest_leaf))
        mine = self.own_forest()
        forest, owners = join_forests([common, mine]), (TOGETHER,) * len(common) + (house.name,) * len(mine)
        unseen, silent = house.memory["unseen"], abstains(forest, self.askable)
        pool = Pool(forest, owners, house.name, unseen, self.own_counts(forest, owners, unseen), silent)
        shared, note = pool.voting(len(common))
        candidates = [
            Candidate("local", pool.ours.astype(np.float64)),
            Candidate("dp-forest", shared.astype(np.float64), note),
        ]
        rules = Rules(("local", "dp-forest"), "dp-forest")
        house.outcome = outcome_of(Chooser(house.study, house.cohort, pool, candidates, rules, house.incumbent))
        return Done({})

    def _entered(self) -> Entered:
        public, signature = self.introduced()
        return Entered(HOLDS in self.house.memory, self._all_features(), public, signature)

    def _all_features(self) -> NDArray[np.bool_]:
        return np.ones(len(self.house.cohort.columns), dtype=bool)

    def _tonight(self) -> str:
        return f"{SPENT} {self.settings.epsilon} {self.house.round}"


# ---------------------------------------------------------------------------------------------------------------
# The coordinator


def coordinate(federation: Federation, study: Study) -> str:
    """Ask who is there, open one sum, and tell it to everybody."""
    invitation = Invitation(federation.round)
    ask(federation, "join", dict.fromkeys(federation.sites, invitation), Entered)
    leaves = int(np.count_nonzero(blind_forest(study, federation.round).feature == LEAF))

    def order(attempt: int) -> CountOrder:
        require(federation, study)
        return CountOrder(study.privacy.secure_sum, attempt, tuple(federation.sites))

    steps, subject = (STEP, SIGN, RELEASE), Subject(_about(study), leaves)
    opened = masked_total(federation, study.digest, steps, MaskedCounts, order, lambda _: subject)
    told = NoisyCounts(opened.total, len(opened.order.participants))
    federation.ask("vote", dict.fromkeys(federation.sites, told))
    return forest_digest(common_forest(study, federation.round, told))


def _about(study: Study) -> str:
    return f"noisy counts of {study.algorithm.trees} trees"


MESSAGES = (
    MessageKind(Entered, "that this house takes part, and its key; nothing about patients"),
    MessageKind(CountOrder, "count patients in the leaves of trees that are made of no data, under noise"),
    MessageKind(NoisyCounts, "noisy counts over all houses, differentially private"),
)
ALGORITHM = Algorithm(DpForest, DpForestSite, coordinate, MESSAGES)
