"""BOPPID, a comparator: every site boosts stumps, keeps the models of sites like itself, and weighs them by size.

As printed in its source, q's model is kept where err_p(H^p) - err_p(H^q) <= theta, which keeps models that do worse at
p as well; theta itself was not published. A stump travels as a tree whose leaves say 0 or 1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from spinney.base import Settings
from spinney.choice.choose import outcome_of
from spinney.choice.personalise import Candidate, Chooser, Pool, Rules
from spinney.errors import Refused, TreeRefused
from spinney.federation.epochs import LENT
from spinney.federation.forest_site import ForestSite, forest_digest, present_only, seed_of
from spinney.federation.gathering import ask, require
from spinney.federation.messages import Done, GrownForest, GrowOrder
from spinney.federation.seam import Algorithm, Federation, Message, MessageKind, Parcel
from spinney.federation.welcome import welcome
from spinney.forest import codec
from spinney.forest.export import Rounding, on_grid
from spinney.forest.score import abstains
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join_forests
from spinney.rows.cohort import Cohort

if TYPE_CHECKING:
    from spinney.study.study import Study

Floats = NDArray[np.float64]
ALPHA_STEP = 0.001
SMALLEST_ERROR = 1e-6


class Boppid(Settings):
    """Boosting-based privacy-preserving integration of distributed data."""

    name: Literal["boppid"] = Field("boppid", description="AdaBoost on stumps, merged by similarity and size.")
    theta: float = Field(0.1, ge=0, le=1, description="Largest lead in error of the own model over one that is kept.")


@dataclass(frozen=True)
class CombineOrder(Message):
    """To a site: everybody's boosted stumps, and how many rows they come from."""

    models: Mapping[str, Parcel]
    rows: Mapping[str, int]


@dataclass(frozen=True)
class Boosted:
    """Stumps and the weight of each."""

    stumps: Forest
    alphas: Floats

    def pack(self, rounding: Rounding) -> bytes:
        """Bytes for peers."""
        codes = np.clip(np.rint(self.alphas / ALPHA_STEP), 0, 65_535).astype("<u2").tobytes()
        return struct.pack("<I", len(codes)) + codes + codec.pack_forest(self.stumps, rounding)

    @classmethod
    def unpack(cls, data: bytes, rounding: Rounding, limits: codec.TreeLimits) -> Boosted:
        """Checked before it is used."""
        if len(data) < 4 or (size := struct.unpack_from("<I", data)[0]) > len(data) - 4 or size % 2:
            raise TreeRefused("weights of stumps are damaged")
        alphas = np.frombuffer(data, dtype="<u2", count=size // 2, offset=4) * ALPHA_STEP
        stumps = codec.unpack_forest(data[4 + size :], rounding, limits)
        if len(stumps) != len(alphas):
            raise TreeRefused("there are not as many weights as stumps")
        return cls(stumps, alphas)


class BoppidSite(ForestSite):
    """Boost, then combine."""

    steps, last_step = frozenset({"join", "boost", "combine"}), "combine"

    @property
    def theta(self) -> float:
        """How alike is alike."""
        theta: float = self.house.study.algorithm.theta
        return theta

    def boost(self, order: GrowOrder) -> Message:
        """Train AdaBoost here, and seal it for the peers."""
        self.house.memory[LENT] = packed = self.boosted()
        return GrownForest(self.house.mail.post(packed, order.peers), forest_digest(self._unpacked(packed).stumps))

    def boosted(self) -> bytes:
        """Stumps that may leave; not at a site that has declined."""
        house = self.house
        house.recall("key")
        seed = seed_of(house.study, house.round, house.name, self.training.salt)
        stumps = boost(self.training, house.study, self.rounding, seed % 2**32)
        house.memory["boosted"] = packed = stumps.pack(self.rounding)
        return packed

    def combine(self, order: CombineOrder) -> Message:
        """Keep the models of sites like this one, and weigh them."""
        house = self.house
        models: dict[str, Boosted] = {}
        for site, parcel in sorted(order.models.items()):
            if site == house.name or order.rows.get(site, 0) < 1:
                continue
            if site in house.withdrawn:
                self._lacking.add(site)
                continue
            try:
                models[site] = self._unpacked(house.open(parcel, keep=True))
            except TreeRefused:  # a bad model costs its sender, not the round
                continue
            except Refused:
                self._lacking.add(site)
        if house.resumes and "boosted" not in house.memory:
            self.boosted()
        models[house.name] = self._unpacked(house.recall("boosted"))
        errors = {site: self._error(model) for site, model in models.items()}
        kept = [site for site in models if errors[house.name] - errors[site] <= self.theta]
        factors = influence(house.name, kept, {**order.rows, house.name: len(self.training)})
        return self._outcome(models, factors)

    def _unpacked(self, data: bytes) -> Boosted:
        return Boosted.unpack(data, self.rounding, codec.TreeLimits(trees=self.house.study.forest.trees, depth=1))

    def _error(self, model: Boosted) -> float:
        votes = Walker(model.stumps, len(self.training.columns)).votes(self.training.X)
        alphas = np.where(abstains(model.stumps, self.askable), 0.0, model.alphas)
        said = votes @ alphas > alphas.sum() / 2
        return float(np.mean(said != self.training.y))

    def _outcome(self, models: Mapping[str, Boosted], factors: Mapping[str, float]) -> Message:
        house, sites = self.house, sorted(models)
        forest = join_forests([models[site].stumps for site in sites])
        owners = tuple(site for site in sites for _ in range(len(models[site].stumps)))
        alphas = np.concatenate([models[site].alphas for site in sites])
        factor = np.array([factors.get(owner, 0.0) for owner in owners])
        own = (np.asarray(owners) == house.name).astype(np.float64)
        candidates = [
            Candidate("local", alphas * own),
            Candidate("boppid", alphas * factor),
        ]
        unseen = np.ones((len(self.training), int(own.sum())), dtype=bool)
        silent = abstains(forest, self.askable)
        pool = Pool(forest, owners, house.name, unseen, self.own_counts(forest, owners, unseen), silent)
        rules = Rules(("local", "boppid"), "boppid" if len(models) > 1 else "local", guard=False, judged=False)
        house.outcome = outcome_of(Chooser(house.study, house.cohort, pool, candidates, rules, house.incumbent))
        return Done({})


def boost(training: Cohort, study: Study, rounding: Rounding, seed: int) -> Boosted:
    """AdaBoost on stumps as they travel; copies of a stump become one with the sum of their weights.

    scikit-learn's AdaBoost refuses missing values, and would weigh the stumps before they are rounded.
    """
    from sklearn.tree import DecisionTreeClassifier  # late, as in grow.py

    X, y = rounding.snapped(present_only(training)), training.y == 1
    learner = DecisionTreeClassifier(max_depth=1, min_samples_leaf=study.forest.min_samples_leaf, random_state=seed)
    weight = np.full(len(y), 1 / len(y))
    stumps: list[Forest] = []
    alphas: list[float] = []
    for _ in range(study.forest.trees):
        learner.fit(X, training.y, sample_weight=weight)
        stump = _stump(learner.tree_, learner.classes_, training, X, study, rounding)
        wrong = (Walker(stump, X.shape[1]).votes(X)[:, 0] > 0.5) != y
        error = float(weight[wrong].sum())
        if error >= 0.5 and stumps:  # no better than a coin
            break
        odds = (1 - error) / max(error, SMALLEST_ERROR)
        stumps.append(stump)
        alphas.append(max(log(max(odds, 1.0)), ALPHA_STEP))
        if error < SMALLEST_ERROR:
            break
        weight = np.where(wrong, weight * odds, weight)
        weight /= weight.sum()
    forest = join_forests(stumps)
    _, first, place = np.unique(forest.digests, return_index=True, return_inverse=True)
    return Boosted(forest.take(first), np.bincount(place, weights=alphas).astype(np.float64))


def _stump(
    tree: Any, classes: NDArray[Any], training: Cohort, X: NDArray[np.float32], study: Study, rounding: Rounding
) -> Forest:
    said = [float(classes[vote]) for vote in tree.value[:, 0].argmax(axis=1)]
    if tree.node_count == 3:
        feature = np.array([tree.feature[0], LEAF, LEAF], np.int16)
        missing_left = np.array([tree.missing_go_to_left[0], False, False], bool)
        says = np.array([0, said[1], said[2]])
        stump = on_grid(Forest(feature, np.array([tree.threshold[0], 0, 0]), missing_left, says), X, rounding)
        values = X[:, feature[0]]
        left = np.where(np.isnan(values), missing_left[0], values <= stump.threshold[0])
        people = [len(np.unique(training.patients[side])) for side in (left, ~left)]
        if min(people) >= study.lent_leaf and said[1] != said[2]:
            return stump
    return Forest(np.array([LEAF], np.int16), np.zeros(1), np.zeros(1, bool), np.array([said[0]]))


def influence(home: str, kept: list[str], rows: Mapping[str, int]) -> dict[str, float]:
    """sigma * lambda of every kept site: by size, with a bounded lead of the own model."""
    total = sum(rows[site] for site in kept)
    share = {site: rows[site] / total for site in kept}
    largest, smallest = max(share.values()), min(share.values())
    lead = share[home] / largest**2 * ceil(largest**2 / smallest)
    return {site: share[site] * (lead if site == home else 1.0) for site in kept}


def coordinate(federation: Federation, study: Study) -> str:
    """Boost everywhere, then let every site combine."""
    joined = welcome(federation, study)
    order = GrowOrder(tuple(joined))
    models = ask(federation, "boost", dict.fromkeys(federation.sites, order), GrownForest)
    require(federation, study)
    parcels = {site: reply.forest for site, reply in models.items()}
    rows = {site: max(joined[site].rows, 1) for site in parcels}
    federation.ask("combine", dict.fromkeys(federation.sites, CombineOrder(parcels, rows)))
    return ""


MESSAGES = (MessageKind(CombineOrder, "where the other houses' models are, and how many rows they come from"),)
ALGORITHM = Algorithm(Boppid, BoppidSite, coordinate, MESSAGES)
