"""The model that serves this site best, and the evidence for it.

Choices are made on rows that are not test rows: cross-validated over the site's training rows (own trees vote only on
patients that they were not grown on, and a fold's counts are taken off the site's own counts) or on its validation
part, by size (`spinney.choice.validate`). What is reported is measured on test rows that no choice has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.choice import metrics
from spinney.choice.blend import ROWS_TO_WEIGH, Labels, Line, blended, line_of, ridge_shares
from spinney.choice.incumbent import Challenge, Incumbent
from spinney.choice.judge import Judge
from spinney.choice.outcome import Decision as Decision
from spinney.choice.outcome import Outcome as Outcome
from spinney.choice.question import correlation
from spinney.choice.validate import folds_of, way_of
from spinney.forest.score import YES, Counts
from spinney.forest.traverse import Walker
from spinney.forest.tree import Forest, leaves_only
from spinney.forest.votes import DECIMALS, Beside, scores
from spinney.linear.part import LinearPart
from spinney.linear.votes import LinearFit
from spinney.rows.cohort import Cohort
from spinney.rows.parts import Part

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest
    from spinney.study.study import Study

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Weighing = Callable[[Floats], Floats]  # S of every tree -> weight of every tree

NO_TREES = leaves_only(0)
DEFAULT_REASON = "federated is the default"
MOVED = "probabilities are only moved to this house's base rate"


@dataclass(frozen=True)
class Pool:
    """All trees that a site may vote with, and what it knows about them."""

    forest: Forest
    owners: tuple[str, ...]
    home: str
    unseen: Flags  # training rows x own trees: the tree was not grown on this patient
    counts: Counts  # repeats x folds x trees x (tp, tn, fp, fn) on training rows
    silent: Flags  # trees that have no say here
    judges: Forest = NO_TREES  # own trees that are in no model: with them, out-of-bag votes are as good as all votes
    judges_unseen: Flags | None = None  # training rows x judges, as `unseen`

    @property
    def ours(self) -> Flags:
        """Which trees are the site's own."""
        return np.asarray(np.asarray(self.owners) == self.home)

    @property
    def own(self) -> NDArray[np.int64]:
        """Places of the site's own trees."""
        return np.flatnonzero(self.ours)

    @property
    def total(self) -> Counts:
        """Counts of every tree on all training rows."""
        return np.asarray(self.counts[0].sum(axis=0))

    def voting(self, common: int) -> tuple[Flags, str]:
        """Which trees have a say here, the site's own and those of the first `common` that do; a note if none does."""
        shared = (np.arange(len(self.owners)) < common) & ~self.silent
        if not shared.any():
            return self.ours, "no tree of the round has a say here: own trees vote"
        return shared | (self.ours & ~self.silent), ""


@dataclass(frozen=True)
class Candidate:
    """A way to weigh the pool's trees."""

    name: str
    weigh: Floats | Weighing  # the same whatever S is, or by S
    note: str = ""  # what a reader of the outcome must know about it


@dataclass(frozen=True)
class LinearCandidate:
    """A logistic regression, alone or beside a candidate of trees."""

    name: str
    fitted: LinearFit
    honest: Floats  # log-odds of the training rows, each of a fit that has not seen its patient
    common: bool  # fitted by all sites together
    beside: str = ""  # the candidate of trees; empty: alone
    note: str = ""


@dataclass(frozen=True)
class Rules:
    """What an algorithm asks of the choice."""

    shown: tuple[str, ...]  # candidates whose test figures are reported
    default: str
    personal: tuple[str, ...] = ()  # candidates of the personalised selection
    choose_among: tuple[str, ...] = ()  # empty: the default stands unless the guard fires
    guard: bool = True
    asks: bool = True  # whether a person is asked where other sites' trees are worse than chance
    opponents: tuple[str, ...] = ("local",)  # what this site could have alone: the guard compares with each
    calibrates: bool = True  # whether votes become probabilities at home, where the study allows it
    judged: bool = True  # False: own votes are in-sample, so nothing can be chosen or calibrated on them


class Chooser:
    """Everything that is computed once per site and round."""

    def __init__(
        self,
        study: Study,
        cohort: Cohort,
        pool: Pool,
        candidates: Sequence[Candidate | LinearCandidate],
        rules: Rules,
        incumbent: Incumbent | None = None,
    ) -> None:
        self.study, self.pool, self.rules, self.incumbent = study, pool, rules, incumbent
        self.judge = Judge.of(study)
        self.cohort, self.present = cohort, cohort.present
        self.candidates = {one.name: one for one in candidates if isinstance(one, Candidate)}
        self.linear = {one.name: one for one in candidates if isinstance(one, LinearCandidate)}
        self.walker = Walker(pool.forest, len(cohort.columns))
        self.way = way_of(cohort, study)
        self.judged, self.judged_places = self._honest_votes()
        self.judged_rows = cohort.at(self.judged_places)

    def weights(self, name: str, own: Floats | None = None) -> Floats:
        """Final weights of a candidate's trees, or those under another S; trees that abstain here have none."""
        name = self._trees_of(name)
        if not name:
            return np.zeros(len(self.pool.owners))
        weigh = self.candidates[name].weigh
        if callable(weigh):
            weigh = weigh(metrics.mcc(self.pool.total) if own is None else own)
        return np.where(self.pool.silent, 0.0, weigh)

    def matrix(self, names: Sequence[str]) -> Floats:
        """Weights of several candidates, one column each."""
        return np.stack([self.weights(name) for name in names], axis=1)

    def votes(self, rows: Cohort, names: Sequence[str]) -> dict[str, Floats]:
        """Votes of candidates on rows that no own tree was grown on."""
        votes = np.nan_to_num(scores(self.walker, rows.X, self.matrix(names)), nan=0.5)
        return {name: self._beside(name, votes[:, place], rows) for place, name in enumerate(names)}

    def note(self, name: str) -> str:
        """What a reader of the outcome must know about a candidate."""
        return self.linear[name].note if name in self.linear else self.candidates[name].note

    def _trees_of(self, name: str) -> str:
        """Whose trees a candidate votes with; empty: nobody's."""
        return self.linear[name].beside if name in self.linear else name

    def _beside(self, name: str, votes: Floats, rows: Cohort) -> Floats:
        """A candidate's votes from those of its trees."""
        if name not in self.linear:
            return votes
        part = self.parts[name]
        return blended(votes, part, part.log_odds(rows.X, rows.present))

    def _honest_votes(self) -> tuple[dict[str, Floats], NDArray[np.int64]]:
        """Honest votes of every candidate on the rows to choose on, and where these are in the cohort."""
        names, part = list(self.candidates), self.way.part
        rows, places = self.cohort.rows(part), np.flatnonzero(self.cohort.part == part)
        if part == Part.VALIDATION:
            votes = scores(self.walker, rows.X, self.matrix(names))
        else:
            votes = self._cross_validated(rows, names)
        local = votes[:, names.index("local")]
        votes = np.where(np.isnan(votes), local[:, None], votes)  # the few trees of a high tau may all know the patient
        known = ~np.isnan(local)
        judged = {name: votes[known, place] for place, name in enumerate(names)}
        self.parts: dict[str, LinearPart] = {}
        for name, one in self.linear.items():
            said = one.honest if part == Part.TRAINING else one.fitted.scores(rows.X, rows.present)
            own, forest = self._mixed(one, said[known], judged, rows.y[known])
            self.parts[name] = LinearPart.of(one.fitted, own, forest, common=one.common)
            beside = judged[one.beside] if one.beside else np.zeros(int(known.sum()))
            judged[name] = blended(beside, self.parts[name], own[0] * said[known] + own[1] + forest[1])
        return judged, places[known]

    def _mixed(self, one: LinearCandidate, said: Floats, judged: Mapping[str, Floats], y: Labels) -> tuple[Line, Line]:
        """Slope and intercept of the linear log-odds and of the trees', so that the sum of both is the vote's."""
        if not one.beside:
            return (1.0, 0.0), (0.0, 0.0)
        trees = judged[one.beside]
        lines = line_of(metrics.probability_of(said), y), line_of(trees, y)
        (slope, move), (other_slope, other_move) = lines
        first, second = slope * said + move, other_slope * metrics.log_odds(trees) + other_move
        shares = ridge_shares(first, second, y) if len(y) >= ROWS_TO_WEIGH else (0.5, 0.5)
        own, forest = ((share * slope, share * move) for share, (slope, move) in zip(shares, lines, strict=True))
        return own, forest

    def _cross_validated(self, rows: Cohort, names: Sequence[str]) -> Floats:
        """Votes under weights that know nothing of a row's fold; a row has one vote, the mean of all repeats."""
        fold, total = folds_of(rows, self.study), self.pool.total
        repeats, count = self.pool.counts.shape[:2]
        left = [metrics.mcc(total - counts) for repeat in self.pool.counts for counts in repeat]
        weights = np.empty((len(total), len(left), len(names)))
        for place, name in enumerate(names):
            weights[:, :, place] = self._weights_by_fold(name, left)
        groups = fold.T + count * np.arange(repeats)
        which = (groups[:, :, None] * len(names) + np.arange(len(names))).reshape(len(rows), -1)
        votes = scores(
            self.walker,
            rows.X,
            weights.reshape(len(total), -1),
            unseen=self.pool.unseen,
            own=self.pool.own,
            which=which,
            beside=self._judges(rows),
        )
        return np.asarray(np.round(votes.reshape(len(rows), repeats, -1).mean(axis=1), DECIMALS))

    def _judges(self, rows: Cohort) -> Beside | None:
        """What the trees that only judge say of the training rows."""
        unseen = self.pool.judges_unseen
        if unseen is None:
            return None
        return Beside.of(Walker(self.pool.judges, len(rows.columns)), rows.X, unseen)

    def _weights_by_fold(self, name: str, left: Sequence[Floats]) -> Floats:
        """Weights of a candidate (trees x folds), or one column for all folds where S has no say."""
        if callable(self.candidates[name].weigh):
            return np.stack([self.weights(name, own) for own in left], axis=1)
        return self.weights(name)[:, None]

    @cached_property
    def patients(self) -> int:
        """How many patients of the rarer class there are to choose on."""
        return min(self.judged_rows.patients_by_class())

    @cached_property
    def qualities(self) -> dict[str, float]:
        """The study's metric of every candidate on the rows to choose on."""
        return {name: self.judge.quality(self.judged_rows, votes) for name, votes in self.judged.items()}

    @cached_property
    def champion_votes(self) -> Floats:
        """The champion's votes on all rows of the cohort; NaN where no tree of it has a say."""
        return np.full(len(self.cohort), np.nan) if self.incumbent is None else self.incumbent.votes(self.cohort)

    def challenge(self, name: str) -> Challenge:
        """A candidate against the champion, on the same rows."""
        champion, fewest = self.champion_votes[self.judged_places], self.study.choice.fewest_patients
        return Challenge(self.judged_rows, self.judged[name], champion, self.judge, fewest)

    def decide(self) -> Decision:
        """The candidate that serves this site best, and why."""
        rules, choice = self.rules, self.study.choice
        if not rules.judged:
            return Decision(rules.default, "this algorithm leaves nothing to choose", 0.5, None, {})
        if self.patients < choice.fewest_patients:
            reason = (
                f"{self.patients} patients of one class are too few to choose on "
                f"(the study wants {choice.fewest_patients}): the default stands"
            )
            calibration, notes = self.calibration(rules.default)
            half = 0.5 if calibration is None else float(metrics.calibrated(0.5, *calibration))
            return Decision(rules.default, reason, half, calibration, {}, notes=notes)
        reached = self.qualities
        name, reason = rules.default, DEFAULT_REASON if rules.default != "local" else "there is nothing else to choose"
        if rules.choose_among:
            name = max(rules.choose_among, key=lambda one: reached[one])
            where = "in cross-validation" if self.way.part == Part.TRAINING else "on the validation part"
            reason = f"best of {', '.join(rules.choose_among)} {where}"
        question = self._question() if rules.asks else None
        if question:
            name, reason = (
                "local",
                "foreign trees are worse than chance here: the local forest stands until someone has looked",
            )
        elif rules.guard and name not in rules.opponents:
            name, reason = self._guarded(name, reason)
        return self._with_calibration(name, reason, reached, question or self._doubt(name))

    def _guarded(self, name: str, reason: str) -> tuple[str, str]:
        """The candidate, or what this site could have alone where that is better beyond noise."""
        for alone in sorted(self.rules.opponents, key=lambda one: -self.qualities[one]):
            lead, error = self._lead_of_local(name, alone)
            if lead > error:
                called = "local forest" if alone == "local" else alone
                return alone, f"the {called} is better beyond noise (by {lead:.3f}, standard error {error:.3f})"
        return name, reason

    def _lead_of_local(self, name: str, alone: str = "local") -> tuple[float, float]:
        """By how much what this site could have alone leads, and the standard error of that."""
        return self.judge.lead(self.judged_rows, self.judged[alone], self.judged[name])

    @cached_property
    def strongest_alone(self) -> str:
        """The best that this site could have alone, by the rows to choose on."""
        if self.patients < self.study.choice.fewest_patients:
            return "local"
        return max(self.rules.opponents, key=lambda one: self.qualities[one])

    def _question(self) -> str | None:
        """What a person is asked where other sites' trees go against this site's labels beyond noise."""
        foreign = np.flatnonzero(~self.pool.silent & ~self.pool.ours)
        if not len(foreign) or metrics.mcc(self.pool.total)[foreign].mean() >= 0:
            return None
        training = self.cohort.rows(Part.TRAINING)
        return correlation(self.walker, training, foreign, YES).question(len({*self.pool.owners, self.pool.home}))

    def _doubt(self, name: str) -> str | None:
        """What a person should look at before the champion goes, or nothing."""
        return None if self.incumbent is None else self.challenge(name).doubt(self.incumbent)

    def _with_calibration(self, name: str, reason: str, reached: dict[str, float], question: str | None) -> Decision:
        y, votes = self.judged_rows.y, self.judged[name]
        calibration, notes = self.calibration(name)
        if calibration is not None:
            votes = metrics.calibrated(votes, *calibration)
        threshold = metrics.best_threshold(y, votes, self.study.choice.threshold, self.study.choice.sensitivity)
        return Decision(name, reason, threshold, calibration, reached, question, notes, self.way.words)

    def calibration(self, name: str) -> tuple[tuple[float, float] | None, tuple[str, ...]]:
        """Slope and intercept of a candidate here, and what a reader must know about them.

        Two numbers can't be told from a handful of patients, but one can: without it the votes carry the base rates of
        the sites whose trees they are.
        """
        y, votes = self.judged_rows.y, self.judged[name]
        if not self.study.choice.calibrate or not self.rules.calibrates:
            return None, ()
        if self.patients < self.study.choice.fewest_patients:
            return metrics.at_base_rate(votes, y), (f"{MOVED}: too few patients of one class to calibrate on",)
        slope, intercept = metrics.platt(votes, y)
        if slope > 0:
            return (slope, intercept), ()
        return metrics.at_base_rate(votes, y), (f"{MOVED}: votes and outcomes don't rise together",)

    def personalised(self) -> str:
        """The candidate that the personalised selection takes."""
        if not self.rules.personal or self.patients < self.study.choice.fewest_patients:
            return self.rules.default
        return max(self.rules.personal, key=lambda name: self.qualities[name])

    def model(self, decision: Decision) -> FederatedForest:
        """What was decided, as the classifier that the site keeps."""
        from spinney.choice.model import FederatedForest  # late, as in grow.py

        weights = self.weights(decision.name)
        voting = np.flatnonzero(weights > 0)
        trees, owners = self.pool.forest.take(voting), [self.pool.owners[place] for place in voting]
        if not self._trees_of(decision.name):  # a model is saved with a tree at least: one that says nothing
            trees, owners, weights, voting = leaves_only(1), [self.pool.home], np.ones(1), np.zeros(1, dtype=np.int64)
        return FederatedForest.from_trees(
            trees,
            owners,
            weights[voting],
            self.study.features,
            calibration=decision.calibration,
            threshold=decision.threshold,
            fill=self.cohort.fill,
            absent=self.study.absent,
            linear=self.parts.get(decision.name),
        )

    def credit(self, decision: Decision) -> dict[str, dict[str, float]]:
        """Per site: share of the trees' weight, and what their vote loses on the chooser's rows without its trees."""
        if not self._trees_of(decision.name):
            return {}
        weights, owners = self.weights(decision.name), np.asarray(self.pool.owners)
        sites = sorted({*self.pool.owners})
        without = np.stack([np.where(owners == site, 0.0, weights) for site in sites] + [weights], axis=1)
        rows = self.cohort.rows(self.way.part)
        unseen = None if self.way.part == Part.VALIDATION else self.pool.unseen
        votes = scores(self.walker, rows.X, without, unseen=unseen, own=self.pool.own)
        known = ~np.isnan(votes[:, -1])
        full = metrics.auroc(rows.y[known], votes[known, -1])
        result = {}
        for place, site in enumerate(sites):
            alone = np.nan_to_num(votes[known, place], nan=0.5)
            share = float(weights[owners == site].sum() / weights.sum())
            result[site] = {"weight": share, "gain": full - metrics.auroc(rows.y[known], alone)}
        return result
