"""The model that serves this site best, and the evidence for it.

Choices are made on rows that are not test rows: cross-validated over the site's training rows (own trees vote only on
patients that they were not grown on, and a fold's counts are taken off the site's own counts) or on its validation
part. What is reported is measured on test rows that no choice has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney import metrics
from spinney.cohort import Cohort
from spinney.curves import Curve, curve
from spinney.metrics import Figure
from spinney.model import FederatedForest
from spinney.parts import Part, folds
from spinney.score import Counts
from spinney.traverse import Walker
from spinney.tree import Forest
from spinney.votes import scores

if TYPE_CHECKING:
    from spinney.study import Study

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Weighing = Callable[[Floats], Floats]  # S of every tree -> weight of every tree

NORMAL_95 = 1.959964
DEFAULT_REASON = "federated is the default"


@dataclass(frozen=True)
class Pool:
    """All trees that a site may vote with, and what it knows about them."""

    forest: Forest
    owners: tuple[str, ...]
    home: str
    unseen: Flags  # training rows x own trees: the tree was not grown on this patient
    counts: Counts  # folds x trees x (tp, tn, fp, fn) on training rows
    silent: Flags  # trees that ask a column which this site doesn't have

    @property
    def ours(self) -> Flags:
        """Which trees are the site's own."""
        return np.asarray(np.asarray(self.owners) == self.home)

    @property
    def own(self) -> NDArray[np.int64]:
        """Places of the site's own trees."""
        return np.flatnonzero(self.ours)

    def voting(self, common: int) -> tuple[Flags, str]:
        """Which of the first `common` trees have a say here; the site's own where none has, and a note of it."""
        shared = (np.arange(len(self.owners)) < common) & ~self.silent
        return (shared, "") if shared.any() else (self.ours, "no tree of the round has a say here: own trees vote")


@dataclass(frozen=True)
class Candidate:
    """A way to weigh the pool's trees."""

    name: str
    weigh: Weighing
    note: str = ""  # what a reader of the outcome must know about it


@dataclass(frozen=True)
class Decision:
    """What was chosen, from what, and why, in words and numbers."""

    name: str
    reason: str
    threshold: float
    calibration: tuple[float, float] | None
    cross_validated: Mapping[str, float]
    question: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """A site's result: its model, the decision behind it, and figures on test rows."""

    site: str
    rows: int
    patients: int
    positives: int
    auroc: Mapping[str, Figure | None]
    figures: Mapping[str, Figure]
    prevalence: float
    calibration: metrics.Calibration | None
    gain: Mapping[str, Figure]
    decision: Decision
    credit: Mapping[str, Mapping[str, float]]
    model: FederatedForest = field(repr=False)
    compared: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)  # candidate -> metric, test rows
    curves: Mapping[str, Curve] = field(default_factory=dict)  # local, the default and the chosen, test rows


@dataclass(frozen=True)
class Rules:
    """What an algorithm asks of the choice."""

    shown: tuple[str, ...]  # candidates whose test figures are reported
    default: str
    personal: tuple[str, ...] = ()  # candidates of the personalised selection
    choose_among: tuple[str, ...] = ()  # empty: the default stands unless the guard fires
    guard: bool = True
    judged: bool = True  # False: own votes are in-sample, so nothing can be chosen or calibrated on them


class Chooser:
    """Everything that is computed once per site and round."""

    def __init__(self, study: Study, cohort: Cohort, pool: Pool, candidates: Sequence[Candidate], rules: Rules) -> None:
        self.study, self.pool, self.rules = study, pool, rules
        self.cohort, self.present = cohort, cohort.present
        self.candidates = {candidate.name: candidate for candidate in candidates}
        self.walker = Walker(pool.forest, len(cohort.columns))
        self.judged, self.judged_rows = self._cross_validated()

    def outcome(self) -> Outcome:
        """Choose, then measure."""
        decision = self._decide()
        said = dict.fromkeys(self.candidates[name].note for name in (self.rules.default, decision.name))
        decision = replace(decision, notes=(*decision.notes, *filter(None, said)))
        model = self._model(decision)
        return _measured(self, decision, model)

    def weights(self, name: str, own: Floats | None = None) -> Floats:
        """Final weights of a candidate; trees that abstain here have none."""
        weighed = self.candidates[name].weigh(metrics.mcc(self.pool.counts.sum(axis=0)) if own is None else own)
        return np.where(self.pool.silent, 0.0, weighed)

    def matrix(self, names: Sequence[str]) -> Floats:
        """Weights of several candidates, one column each."""
        return np.stack([self.weights(name) for name in names], axis=1)

    def _cross_validated(self) -> tuple[dict[str, Floats], Cohort]:
        """Honest votes of every candidate on the rows to choose on."""
        names = list(self.candidates)
        if self.study.split.validation:
            rows = self.cohort.rows(Part.VALIDATION)
            votes = scores(self.walker, rows.X, self.matrix(names))
        else:
            rows = self.cohort.rows(Part.TRAINING)
            fold = folds_of(rows, self.study)
            total = self.pool.counts.sum(axis=0)
            left = [metrics.mcc(total - counts) for counts in self.pool.counts]
            weights = np.stack([self.weights(name, own) for own in left for name in names], axis=1)
            which = fold[:, None] * len(names) + np.arange(len(names))
            votes = scores(self.walker, rows.X, weights, unseen=self.pool.unseen, own=self.pool.own, which=which)
        local = votes[:, names.index("local")]
        votes = np.where(np.isnan(votes), local[:, None], votes)  # the few trees of a high tau may all know the patient
        known = ~np.isnan(local)
        chosen = Cohort(
            rows.columns, rows.present, rows.X[known], rows.y[known], rows.patients[known], rows.part[known]
        )
        return {name: votes[known, place] for place, name in enumerate(names)}, chosen

    @cached_property
    def patients(self) -> int:
        """How many patients of the rarer class there are to choose on."""
        return min(self.judged_rows.patients_by_class())

    @cached_property
    def qualities(self) -> dict[str, float]:
        """The study's metric of every candidate on the rows to choose on."""
        return {name: self._quality(name) for name in self.candidates}

    def _quality(self, name: str) -> float:
        y, votes = self.judged_rows.y, self.judged[name]
        if self.study.choice.metric == "auprc":
            return metrics.auprc(y, votes)
        if self.study.choice.metric == "mcc":
            return float(metrics.mcc(metrics.confusion(y, self._called(votes))))
        return metrics.auroc(y, votes)

    def _decide(self) -> Decision:
        rules, choice = self.rules, self.study.choice
        if not rules.judged:
            return Decision(rules.default, "this algorithm leaves nothing to choose", 0.5, None, {})
        if self.patients < choice.fewest_patients:
            reason = (
                f"{self.patients} patients of one class are too few to choose on "
                f"(the study wants {choice.fewest_patients}): the default stands"
            )
            return Decision(rules.default, reason, 0.5, None, {})
        reached = self.qualities
        name, reason = rules.default, DEFAULT_REASON if rules.default != "local" else "there is nothing else to choose"
        if rules.choose_among:
            name = max(rules.choose_among, key=lambda one: reached[one])
            reason = f"best of {', '.join(rules.choose_among)} in cross-validation"
        question = self._question()
        if question:
            name, reason = (
                "local",
                "foreign trees are worse than chance here: the local forest stands until someone has looked",
            )
        elif rules.guard and name != "local":
            lead, error = self._lead_of_local(name)
            if lead > error:
                name, reason = (
                    "local",
                    f"the local forest is better beyond noise (by {lead:.3f}, standard error {error:.3f})",
                )
        return self._with_calibration(name, reason, reached, question)

    def _lead_of_local(self, name: str) -> tuple[float, float]:
        """By how much the local forest leads, and the standard error of that."""
        rows, local, other, metric = self.judged_rows, self.judged["local"], self.judged[name], self.study.choice.metric
        lead = self.qualities["local"] - self.qualities[name]
        if metric == "auroc" and rows.patient_count == len(rows):
            return lead, metrics.delong(rows.y, local, other)[2]
        measure = metrics.at_threshold(0.5, metrics.mcc)
        if metric == "mcc":  # each at its own threshold
            local, other = (self._called(votes) for votes in (local, other))
        else:
            measure = metrics.RANKING_AND_ERROR[metric]
        spread = metrics.paired(rows.y, local, other, rows.patients, {metric: measure}, 200, self.study.split.seed)
        return lead, (spread[metric].high - spread[metric].low) / (2 * NORMAL_95)

    def _called(self, votes: Floats) -> Floats:
        """Votes as yes or no at their best threshold."""
        return (votes >= metrics.best_threshold(self.judged_rows.y, votes, "mcc")).astype(np.float64)

    def _question(self) -> str | None:
        """A site with reversed labels and a site with a different concept look the same from inside: ask a person."""
        foreign = np.setdiff1d(np.flatnonzero(~self.pool.silent), self.pool.own)
        own_view = metrics.mcc(self.pool.counts.sum(axis=0))[foreign]
        if len(foreign) and own_view.mean() < 0:
            return (
                f"trees of other sites are worse than chance here (mean correlation {own_view.mean():.2f}): "
                "is the label coded the other way round?"
            )
        return None

    def _with_calibration(self, name: str, reason: str, reached: dict[str, float], question: str | None) -> Decision:
        y, votes = self.judged_rows.y, self.judged[name]
        calibration, notes = None, []
        if self.study.choice.calibrate:
            slope, intercept = metrics.platt(votes, y)
            if slope > 0:
                calibration = (slope, intercept)
                votes = metrics.calibrated(votes, slope, intercept)
            else:
                notes.append("not calibrated: votes and outcomes don't rise together")
        threshold = metrics.best_threshold(y, votes, self.study.choice.threshold, self.study.choice.sensitivity)
        return Decision(name, reason, threshold, calibration, reached, question, tuple(notes))

    def personalised(self) -> str:
        """The candidate that the personalised selection takes."""
        if not self.rules.personal or self.patients < self.study.choice.fewest_patients:
            return self.rules.default
        return max(self.rules.personal, key=lambda name: self.qualities[name])

    def _model(self, decision: Decision) -> FederatedForest:
        weights = self.weights(decision.name)
        voting = np.flatnonzero(weights > 0)
        return FederatedForest.from_trees(
            self.pool.forest.take(voting),
            [self.pool.owners[place] for place in voting],
            weights[voting],
            self.study.features,
            calibration=decision.calibration,
            threshold=decision.threshold,
            fill=self.cohort.fill,
        )

    def credit(self, decision: Decision) -> dict[str, dict[str, float]]:
        """Per site: share of the weight, and what the vote loses on the chooser's rows without its trees."""
        weights, owners = self.weights(decision.name), np.asarray(self.pool.owners)
        sites = sorted({*self.pool.owners})
        without = np.stack([np.where(owners == site, 0.0, weights) for site in sites] + [weights], axis=1)
        validation = self.study.split.validation > 0
        rows = self.cohort.rows(Part.VALIDATION if validation else Part.TRAINING)
        unseen = None if validation else self.pool.unseen
        votes = scores(self.walker, rows.X, without, unseen=unseen, own=self.pool.own)
        known = ~np.isnan(votes[:, -1])
        full = metrics.auroc(rows.y[known], votes[known, -1])
        result = {}
        for place, site in enumerate(sites):
            alone = np.nan_to_num(votes[known, place], nan=0.5)
            share = float(weights[owners == site].sum() / weights.sum())
            result[site] = {"weight": share, "gain": full - metrics.auroc(rows.y[known], alone)}
        return result


def folds_of(rows: Cohort, study: Study) -> NDArray[np.int64]:
    """The fold of every training row: the same for counting and for choosing."""
    return folds(rows.y, rows.patients, study.choice.folds, study.split.seed)


def _measured(chooser: Chooser, decision: Decision, model: FederatedForest) -> Outcome:
    """Figures on test rows, or a note that there are too few."""
    study, cohort = chooser.study, chooser.cohort
    test = cohort.rows(Part.TEST)
    shown = {name: name for name in chooser.rules.shown}
    if chooser.rules.personal:
        shown["personalised"] = chooser.personalised()
    shown["chosen"] = decision.name
    names = sorted({*shown.values()})
    votes = scores(chooser.walker, test.X, chooser.matrix(names))
    by_name = {name: np.nan_to_num(votes[:, place], nan=0.5) for place, name in enumerate(names)}
    credit = chooser.credit(decision)
    base = {
        "site": chooser.pool.home,
        "rows": len(cohort),
        "patients": cohort.patient_count,
        "positives": int(cohort.y.sum()),
        "prevalence": float(test.y.mean()) if len(test) else float("nan"),
        "credit": credit,
        "model": model,
    }
    fewest, wanted = min(test.patients_by_class()), study.choice.fewest_test_patients
    if fewest < wanted:
        note = f"{fewest} test patients of one class are too few for figures (the study wants {wanted})"
        return Outcome(
            auroc=dict.fromkeys(shown),
            figures={},
            calibration=None,
            gain={},
            decision=replace(decision, notes=(*decision.notes, note)),
            **base,  # type: ignore[arg-type]
        )
    seed, draws = study.split.seed, study.choice.bootstrap
    spans = metrics.intervals(test.y, by_name, test.patients, resamples=draws, seed=seed)
    final = by_name[decision.name]
    if decision.calibration is not None:
        final = metrics.calibrated(final, *decision.calibration)
    wide = {
        **metrics.RANKING_AND_ERROR,
        "mcc": metrics.at_threshold(decision.threshold, metrics.mcc),
        "sensitivity": metrics.at_threshold(decision.threshold, metrics.sensitivity),
        "specificity": metrics.at_threshold(decision.threshold, metrics.specificity),
    }
    figures = metrics.intervals(test.y, {"chosen": final}, test.patients, wide, resamples=draws, seed=seed)["chosen"]
    gain = metrics.paired(test.y, final, by_name["local"], test.patients, resamples=draws, seed=seed)
    return Outcome(
        auroc={label: spans[name]["auroc"] for label, name in shown.items()},
        figures=figures,
        calibration=metrics.calibration(test.y, final),
        gain=gain,
        decision=decision,
        compared={label: spans[name] for label, name in shown.items()} | {"chosen": figures},
        curves={
            label: curve(test.y, votes, test.patients)
            for label, votes in {**by_name, "chosen": final}.items()
            if label in ("local", chooser.rules.default, "chosen")
        },
        **base,  # type: ignore[arg-type]
    )
