"""A site's part in every algorithm that exchanges forests: join, grow, check, and at the end choose.

The floors are enforced here, by the site itself, whatever the coordinator says. What is lent is grown when an epoch
opens, with a floor that attacks were measured against. What votes at home is grown every night with the floor for home,
and takes the place of the own lent trees there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.attacks.own_release import SECONDS
from spinney.choice.choose import outcome_of
from spinney.choice.judge import Judge
from spinney.choice.personalise import NO_TREES, Candidate, Chooser, LinearCandidate, Pool, Rules
from spinney.choice.validate import folds_of, way_of
from spinney.errors import Declined, Refused, TreeRefused
from spinney.federation.epochs import LENT, EpochSite
from spinney.federation.lending import TOO_FEW, WITHHELD, attacked
from spinney.federation.messages import (
    CheckOrder,
    Description,
    Done,
    GrownForest,
    GrowOrder,
    Invitation,
    Manifest,
    Verdict,
    Weights,
)
from spinney.federation.refusals import UNREADABLE, held
from spinney.federation.seam import Decline, Message, Parcel, SiteContext, content_digest
from spinney.forest import codec
from spinney.forest.export import Rounding, export_forest, grid_of
from spinney.forest.fence import Reach, fenced
from spinney.forest.grow import grow, tune
from spinney.forest.score import Counts, abstains, fold_counts
from spinney.forest.traverse import Walker
from spinney.forest.tree import Forest, join_forests, leaves_only
from spinney.rows.cohort import Cohort
from spinney.rows.describe import rounded_rows
from spinney.rows.parts import Part, folds
from spinney.rows.plane import SiteMap
from spinney.study.settings import ForestSettings, fewest_to_lend

if TYPE_CHECKING:
    from spinney.study.study import Study

Floats = NDArray[np.float64]

SHARED = frozenset({"auroc", "auprc", "brier", "mcc", "sensitivity", "specificity"})  # of test figures, if any are


def rounding_of(study: Study, cohort: Cohort) -> Rounding:
    """The study's grid."""
    return grid_of(cohort.columns, study.privacy.probability_precision)


def at_home(memory: Mapping[str, object]) -> tuple[str, str]:
    """What a round's memory calls the trees that vote at home, and who was not drawn for them: maybe those lent."""
    return ("home-forest", "home-unseen") if "home-forest" in memory else ("forest", "unseen")


class ForestSite(EpochSite):
    """Join, grow, check and choose."""

    steps = frozenset({"join", "grow", "check", "finish"})

    def __init__(self, house: SiteContext) -> None:
        super().__init__(house)
        self._read: dict[tuple[str, str], Forest] = {}  # by owner and content: fetched and checked once for all steps
        self._lacking: set[str] = set()

    @property
    def rounding(self) -> Rounding:
        """The study's grid."""
        return rounding_of(self.house.study, self.house.cohort)

    @property
    def limits(self) -> codec.TreeLimits:
        """What a forest of this study may be at most."""
        return codec.TreeLimits.of(self.house.study.forest)

    def join(self, order: Invitation) -> Message:
        """Describe this site, or decline with the reason."""
        house, training = self.house, self.training
        if order.round != house.round:
            raise Refused(f"round {order.round} was opened, this house is in round {house.round}")
        try:
            vector = self.filled_vector(order.means)
        except Declined:  # how many patients there are is nobody's business but this site's
            return Decline(f"fewer training patients than the smallest cohort of {house.study.privacy.smallest_cohort}")
        public, signature = self.introduced()
        return Description(
            rounded_rows(len(training), house.study.privacy), vector, training.present, public, signature
        )

    def grow(self, order: GrowOrder) -> Message:
        """Grow a forest and seal what may leave for the peers."""
        self.house.memory[LENT] = grown = self.grown()
        return GrownForest(self.house.mail.post(grown, order.peers), forest_digest(self.own_forest()))

    @property
    def lent_leaf(self) -> int:
        """Fewest distinct patients in a leaf that is lent: as the study says, or more where this house is stricter."""
        return max(self.house.study.lent_leaf, self.house.lent_leaf)

    @property
    def may_lend(self) -> bool:
        """Whether a bootstrap of the patients here can be expected to fill two leaves."""
        return self.training.patient_count >= fewest_to_lend(self.lent_leaf)

    def grown(self) -> bytes:
        """A forest that may leave, if one may; beside it one for home where that has another floor."""
        house = self.house
        house.recall("key")
        nothing = leaves_only(0), np.zeros((len(self.training), 0), dtype=bool)
        lent = mine = self._grown(house.name, house.study.privacy.smallest_leaf)
        if not house.resumes:
            if self.lent_leaf > house.study.privacy.smallest_leaf:
                lent = self._grown(f"{house.name}/lent", self.lent_leaf) if self.may_lend else nothing
            if self._tells_too_much(lent[0]):
                lent = nothing
        if lent is not mine:
            self._keep("home-forest", "home-unseen", *mine)
        return self._keep("forest", "unseen", *lent)

    def _tells_too_much(self, lent: Forest) -> bool:
        """Attack it, where the study asks for that: once in an epoch, before anything is sealed."""
        house, largest = self.house, self.house.study.privacy.largest_advantage
        if largest is None or not len(lent):
            return False
        found = attacked(
            house.study,
            house.cohort,
            self.lent_leaf,
            lent,
            jobs=house.jobs,
            spread=house.spread,
            go_on=house.budget(SECONDS),
        )
        too_much = found is not None and found.above(largest)
        said = TOO_FEW if found is None else found.words
        house.memory["attacked"] = WITHHELD.format(said, largest) if too_much else said
        return too_much

    def _keep(self, forest: str, unseen: str, trees: Forest, left_out: NDArray[np.bool_]) -> bytes:
        self.house.memory[forest] = packed = codec.pack_forest(trees, self.rounding)
        self.house.memory[unseen] = left_out
        return packed

    def _grown(self, name: str, floor: int, trees: int | None = None) -> tuple[Forest, NDArray[np.bool_]]:
        """Trees with so many patients in a leaf, and training rows x trees whose patient was not drawn for them."""
        house, training = self.house, self.training
        _, patients = np.unique(training.patients, return_inverse=True)
        seed = seed_of(house.study, house.round, name, training.salt)
        settings = ForestSettings.model_validate_json(
            house.memory.get("settings") or self._tuned(training, patients, seed).model_dump_json()
        )
        house.memory["settings"] = settings.model_dump_json()  # searched for once, for all trees of a night
        settings = settings.model_copy(update={"trees": trees or settings.trees})
        if floor > house.study.privacy.smallest_leaf:
            settings = settings.model_copy(update={"min_samples_leaf": max(settings.min_samples_leaf, floor)})
        X, rounding = self.rounding.snapped(present_only(training)), self.rounding
        grown = grow(X, training.y, patients, settings, seed, house.jobs, house.spread, rounding=rounding, floor=floor)
        forest = export_forest(
            grown.trees, grown.drawn, X, training.y, patients, floor=floor, rounding=rounding, jobs=house.jobs
        )
        return forest, (grown.drawn[:, patients] == 0).T

    def judges(self) -> tuple[Forest, NDArray[np.bool_] | None]:
        """Trees that are grown after everything has left, and only judge: none where there is a validation part.

        A patient is out of the bag of 37 in 100 trees. With so many more, as many own trees judge each patient as the
        model in use has, and candidates are compared as good as they are.
        """
        house = self.house
        more = house.study.choice.judges_for(house.study.forest.trees)
        if not more or way_of(house.cohort, house.study).part != Part.TRAINING:
            return NO_TREES, None
        return self._grown(f"{house.name}/judges", house.study.privacy.smallest_leaf, more)

    def check(self, order: CheckOrder) -> Message:
        """Look at every forest before anything is done with it; a bad one costs its sender, not the round."""
        senders = [grown.forest.sender for grown in order.forests]
        if len({*senders}) != len(senders):
            raise Refused("two forests of one site")
        forests: dict[str, Forest] = {}
        refused: dict[str, str] = {}
        for grown in order.forests:
            try:
                forests[grown.forest.sender] = self._as_announced(grown)
            except TreeRefused as reason:
                refused[grown.forest.sender] = reason.rule
            except Refused:
                refused[grown.forest.sender] = UNREADABLE
        scorable = self._scorable(forests)
        for grown in order.forests:
            told = scorable.get(grown.forest.sender, np.zeros(0, dtype=bool))
            if not np.array_equal(self.house.memory.setdefault(_verdict_on(grown.forest), told), told):
                raise Refused("these trees were looked at before, and the verdict was another")
        return Verdict(scorable, refused)

    def _as_announced(self, grown: GrownForest) -> Forest:
        forest = self.opened(grown.forest)
        if grown.forest.sender != self.house.name and forest_digest(forest) != grown.trees:
            raise TreeRefused("these are other trees than announced", "announced")
        return forest

    def _scorable(self, forests: Mapping[str, Forest]) -> dict[str, NDArray[np.bool_]]:
        """Which trees ask only what may be asked here, were scored on no earlier night, and are no copies.

        A copy of an own tree that counts as another's is not scored: here it knows the patients that it was grown on.
        """
        own = {*self.own_forest().digests, *self.home_forest().digests}
        found = held({owner: forest.digests for owner, forest in forests.items()})
        for owner, forest in forests.items():
            new = [
                self._unscored(digest) and (owner == self.house.name or digest not in own) for digest in forest.digests
            ]
            found[owner] &= np.array(new, dtype=bool) & ~abstains(forest, self.askable)
        return found

    def scorable(self, manifest: Manifest) -> NDArray[np.bool_]:
        """Which of the manifest's trees this site has said that it can score."""
        told = []
        for parcel, taken in zip(manifest.forests, manifest.taken, strict=True):
            here = self._verdict(parcel)
            told.append(here[taken] if len(here) == len(taken) else np.zeros(np.count_nonzero(taken), dtype=bool))
        return np.concatenate([np.zeros(0, dtype=bool), *told])

    def _verdict(self, parcel: Parcel) -> NDArray[np.bool_]:
        """Which of an owner's trees this site has said that it can score; none at all if it has refused them."""
        told: NDArray[np.bool_] | None = self.house.memory.get(_verdict_on(parcel))
        if told is None:
            raise Refused(f"asked too early: these trees of {parcel.sender} were not looked at in this round")
        return told

    def finish(self, order: Weights) -> Message:
        """Choose the model that serves this site best."""
        house = self.house
        if order.weights.shape != (len(order.manifest),) or not np.all(np.abs(order.weights) <= 1):
            raise Refused("one weight in -1..1 per tree of the manifest is wanted")
        self._check_map(order.map)
        if house.resumes:
            self._look_at_what_was_lent(order.manifest)
        self.check_weighed(order)
        if house.memory.setdefault("finished", order.digest) != order.digest:
            raise Refused("this round has ended here with other weights; its test rows are not measured twice")
        lent = order.manifest
        if house.resumes or "home-forest" in house.memory:
            order = self._with_trees_of_home(order)
        pool = self.pool(order.manifest, lent)
        candidates, rules = self.candidates(pool, order)
        outcome = outcome_of(Chooser(house.study, house.cohort, pool, candidates, rules, house.incumbent))
        told = tuple(filter(None, [house.memory.get("attacked")]))
        decision = replace(outcome.decision, notes=(*outcome.decision.notes, *told))
        house.outcome = replace(outcome, map=order.map, decision=decision)
        if not house.study.privacy.share_metrics or house.resumes:
            return Done({})
        figures = {name: round(figure.value, 2) for name, figure in outcome.figures.items() if name in SHARED}
        return Done({name: value for name, value in figures.items() if np.isfinite(value)})

    def check_weighed(self, order: Weights) -> None:
        """Refused if a weight is of a tree that an algorithm's site knows nothing of; here all trees may vote."""

    def _check_map(self, drawn: SiteMap) -> None:
        """Only of sites that have joined, this one among them, and only where the study has it told."""
        if not drawn.sites:
            return
        if not self.house.study.privacy.share_map:
            raise Refused("the study keeps the map of the sites with the coordinator")
        if self.house.resumes:  # of those who joined when the epoch opened; not all of them have come tonight
            return
        if strangers := {*drawn.sites} - {*self.house.cards}:
            raise Refused(f"the map shows {len(strangers)} sites that have not joined")
        if self.house.name not in drawn.sites:
            raise Refused("the map does not show this site")

    def candidates(self, pool: Pool, order: Weights) -> tuple[Sequence[Candidate | LinearCandidate], Rules]:
        """The ways to weigh the trees that this algorithm offers: here, the local forest or equal votes of all."""
        local, fedrf = equal_votes(pool, len(order.manifest))
        return [local, fedrf], Rules(shown=("local", "fedrf"), default="fedrf")

    def opened(self, parcel: Parcel) -> Forest:
        """A checked forest; the own one is the one that was grown here, whatever the reference says."""
        if parcel.sender == self.house.name and not self.house.resumes:
            return self.own_forest()
        if parcel.size > self.limits.message_bytes:
            limit = self.limits.message_bytes
            raise TreeRefused(f"{parcel.size} bytes are more than the limit of {limit}", "size")
        place = parcel.sender, parcel.digest
        if place not in self._read:
            self._read[place] = codec.unpack_forest(self.house.open(parcel, keep=True), self.rounding, self.limits)
        return self._read[place]

    @property
    def lacking(self) -> frozenset[str]:
        """Whose trees were lent before this site came, and are not lent tonight."""
        return frozenset(self._lacking)

    def _look_at_what_was_lent(self, manifest: Manifest) -> None:
        """On a night after the opening: the own trees of tonight first, then those that a guest has not met before."""
        house = self.house
        if "forest" not in house.memory:
            self.grown()
        foreign = [parcel for parcel in manifest.forests if parcel.sender != house.name]
        forests: dict[str, Forest] = {}
        refused: set[str] = set()
        for parcel in foreign:
            if parcel.sender in house.withdrawn:
                self._lacking.add(parcel.sender)
                continue
            try:
                forests[parcel.sender] = self.opened(parcel)
            except TreeRefused:
                refused.add(parcel.sender)
            except Refused:  # whoever lends them is away tonight, too
                self._lacking.add(parcel.sender)
        scorable = self._scorable(forests)
        for parcel in foreign:
            if parcel.sender not in self._lacking:
                told = np.zeros(0, dtype=bool) if parcel.sender in refused else scorable[parcel.sender]
                house.memory.setdefault(_verdict_on(parcel), told)

    def _with_trees_of_home(self, order: Weights) -> Weights:
        """The same order with the own trees that stay at home in place of those that were lent.

        Nobody else has scored them: each counts in common as much as the lent ones did on average, or as all trees do
        where this site has lent none.
        """
        house, manifest = self.house, order.manifest
        owners, mine = np.asarray(manifest.owners, dtype=str), self.home_forest()
        lent = order.weights[owners == house.name]
        mean = float(np.mean(lent if len(lent) else order.weights)) if len(order.weights) else 1.0
        packed = house.recall(at_home(house.memory)[0])
        own = Parcel(house.name, content_digest(packed), len(packed))
        house.memory[_verdict_on(own)] = np.ones(len(mine), dtype=bool)
        parts = {
            parcel.sender: (parcel, taken, order.weights[owners == parcel.sender])
            for parcel, taken in zip(manifest.forests, manifest.taken, strict=True)
            if parcel.sender not in self._lacking
        }
        parts[house.name] = own, np.ones(len(mine), dtype=bool), np.full(len(mine), mean)
        forests, taken, weights = zip(*(parts[site] for site in sorted(parts)), strict=True)
        return replace(order, manifest=Manifest(forests, taken), weights=np.concatenate(weights))

    def own_forest(self) -> Forest:
        """What this site lends in this round, or has grown on a night on which nothing is lent."""
        return self._packed_here("forest")

    def home_forest(self) -> Forest:
        """What votes here."""
        return self._packed_here(at_home(self.house.memory)[0])

    def _packed_here(self, called: str) -> Forest:
        packed = self.house.recall(called)
        place = self.house.name, content_digest(packed)
        if place not in self._read:
            self._read[place] = codec.unpack_forest(packed, self.rounding, self.limits)
        return self._read[place]

    def manifest_forest(self, manifest: Manifest) -> Forest:
        """The manifest's trees in its order; a manifest that names a tree which nobody sent is refused."""
        place = "", manifest.digest
        if place not in self._read:
            self._read[place] = self._joined(manifest)
        return self._read[place]

    def _joined(self, manifest: Manifest) -> Forest:
        parts = []
        for parcel, taken in zip(manifest.forests, manifest.taken, strict=True):
            if not len(self._verdict(parcel)):  # refused here, and enough others score them
                parts.append(leaves_only(int(taken.sum())))
                continue
            forest = self.opened(parcel) if parcel.sender != self.house.name else self._own(parcel)
            if len(taken) != len(forest):
                raise Refused(f"the manifest speaks of {len(taken)} trees of {parcel.sender}, who sent {len(forest)}")
            parts.append(forest.take(np.flatnonzero(taken)))
        return join_forests(parts)

    def _own(self, parcel: Parcel) -> Forest:
        """The own forest that a manifest speaks of: the one for home, where that was put in place of the lent one."""
        home = self.house.recall(at_home(self.house.memory)[0])
        return self.home_forest() if parcel.digest == content_digest(home) else self.own_forest()

    def pool(self, manifest: Manifest, lent: Manifest | None = None) -> Pool:
        """The round's trees, and the site's own that didn't make it into the round.

        `lent`: the manifest before own trees of home came into it; what was counted of the others' trees still holds.
        """
        house = self.house
        mine = self.home_forest()
        common, taken = self.manifest_forest(manifest), manifest.of(house.name)
        voting = np.flatnonzero(taken)
        left = np.setdiff1d(np.arange(len(mine)), voting).tolist()
        forest = join_forests([common, mine.take(left)]) if left else common
        owners = (*manifest.owners, *[house.name] * len(left))
        unseen = house.memory[at_home(house.memory)[1]][:, [*voting, *left]]
        scored = house.memory.get("scored", "")
        if scored == manifest.digest and not left:
            counts: Counts = house.memory["fold-counts"]
        elif lent is not None and scored == lent.digest and not left:
            counts = self._counts_with_home(lent.owners, owners, mine, unseen)
        else:
            counts = self.own_counts(forest, owners, unseen)
        silent = abstains(forest, self.askable)
        silent[: len(common)] |= ~self.scorable(manifest)
        if self.fences:
            forest = fenced(forest, Reach.of(self.training.X), np.asarray(owners) == house.name)
        return Pool(forest, owners, house.name, unseen, counts, silent, *self.judges())

    def _counts_with_home(
        self, lent: Sequence[str], owners: Sequence[str], mine: Forest, unseen: NDArray[np.bool_]
    ) -> Counts:
        """The round's counts of the others' trees, and beside them those of the own trees of home."""
        home, told = self.house.name, self.house.memory["fold-counts"]
        counts = np.empty((*told.shape[:2], len(owners), told.shape[3]), dtype=told.dtype)
        ours = np.asarray(owners) == home
        counts[:, :, ~ours] = told[:, :, np.asarray(lent) != home]
        counts[:, :, ours] = self.own_counts(mine, [home] * len(mine), unseen)
        return counts

    def own_counts(self, forest: Forest, owners: Sequence[str], unseen: NDArray[np.bool_]) -> Counts:
        """Counts of every tree on this site's training rows: repeats x folds x trees x 4."""
        house, training = self.house, self.training
        return fold_counts(
            forest,
            training.X,
            training.y,
            self.askable,
            folds_of(training, house.study),
            house.study.choice.folds,
            counted=self.counted_rows(owners, unseen),
            jobs=house.jobs,
        )

    @property
    def fences(self) -> bool:
        """Whether foreign trees vote on nothing beyond what this site has trained on."""
        return True

    @property
    def askable(self) -> NDArray[np.bool_]:
        """Columns that trees may ask here."""
        return askable(self.house.study, self.house.cohort.present)

    def counted_rows(self, owners: Sequence[str], unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows count for which tree: own trees out of bag."""
        counted = np.ones((len(unseen), len(owners)), dtype=bool)
        counted[:, np.asarray(owners) == self.house.name] = unseen
        return counted

    def _unscored(self, digest: str) -> bool:
        """A site never scores one tree on two nights: two answers about almost the same rows tell too much.

        Where an epoch goes on nobody is told how trees do tonight.
        """
        return self.house.resumes or self.house.history.get(digest, self.house.round) == self.house.round

    def _tuned(self, training: Cohort, patients: NDArray[np.int64], seed: int) -> ForestSettings:
        settings = self.house.study.forest
        if not settings.tuning.seconds:
            return settings

        fold = folds(training.y, patients, settings.tuning.folds, seed)
        X, y = self.rounding.snapped(present_only(training)), training.y

        judge = Judge.of(self.house.study)

        def quality(candidate: ForestSettings) -> float:
            votes = np.empty(len(y))
            for number in range(settings.tuning.folds):
                out = fold == number
                _, codes = np.unique(patients[~out], return_inverse=True)
                rows, labels, floor = X[~out], y[~out], self.house.study.privacy.smallest_leaf
                grown = grow(
                    rows,
                    labels,
                    codes,
                    candidate,
                    seed,
                    self.house.jobs,
                    self.house.spread,
                    rounding=self.rounding,
                    floor=floor,
                )
                forest = export_forest(grown.trees, grown.drawn, rows, labels, codes, floor=1, rounding=None)
                votes[out] = Walker(forest, X.shape[1]).votes(X[out]).mean(axis=1)
            return judge.quality(training, votes)

        return tune(settings, seed, quality, self.house.budget(settings.tuning.seconds))


def present_only(cohort: Cohort) -> NDArray[np.float32]:
    """Columns that the site doesn't have are constant, so that no tree can split on them."""
    return np.where(cohort.present, cohort.X, np.float32(0.0))


def askable(study: Study, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Columns that trees may ask at a site which has these: all of them, where an absent one counts as missing."""
    return present if study.absent == "abstain" else np.ones_like(present)


def _verdict_on(parcel: Parcel) -> str:
    return f"verdict-{parcel.sender}-{parcel.digest}"


def forest_digest(forest: Forest) -> str:
    """What some trees are called together: the same on every machine, however it packs them."""
    return hashlib.sha256("\n".join(forest.digests).encode()).hexdigest()


def seed_of(study: Study, round_: int, name: str, salt: str) -> int:
    """Where a site's draws begin. With a salt, too many ways to try out which patients a tree was grown on.

    And in every study elsewhere: the same draws under two labels would tell how many patients have both.
    """
    words = f"{study.split.seed}/{round_}/{name}" + (f"/{study.digest}/{salt}" if salt else "")
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[: 16 if salt else 4], "big")


def equal_votes(pool: Pool, common: int) -> tuple[Candidate, Candidate]:
    """The local forest, and the union of the first `common` trees, one vote each."""
    shared, note = pool.voting(common)
    return (
        Candidate("local", pool.ours.astype(np.float64)),
        Candidate("fedrf", shared.astype(np.float64), note),
    )
