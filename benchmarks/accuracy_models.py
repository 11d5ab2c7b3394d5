"""One federation, all models: the votes of each on every site's test rows.

`spinney.trial.simulate` reports what a site would; a benchmark also wants the models that were not chosen, and votes
instead of figures, so that it can pool folds and compute AUROC where the product keeps silent for want of
test patients.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.algorithms.bofrf import BofrfSite
from spinney.choice import metrics
from spinney.choice.model import FederatedForest
from spinney.choice.personalise import Chooser, Decision
from spinney.federation.messages import Done, Weights
from spinney.federation.seam import Message
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort
from spinney.rows.parts import Part, Parts, folds
from spinney.study.study import Study
from spinney.trial.simulate import pooled_forest, simulate

Floats = NDArray[np.float64]

LOCAL = "local forest"
CALIBRATED = ("local, calibrated", "chosen, own base rate", "chosen, calibrated", "chosen with companion, calibrated")
GROWN = ("forest", "unseen", "home-forest", "home-unseen", "attacked")
HELD_OUT = "personalised by hold-out"
ACCOMPANIED = "chosen with companion"
LINEAR = ("local linear", "local blend", "federated linear", "blend", ACCOMPANIED)
"""Where no common regression may be fitted, the forest stands for it: what a site would have."""
Choice = Literal["federated", "guard", "question", "too few"]


@dataclass(frozen=True)
class Watched:
    """What a site chose, together with everything that was there to choose from."""

    decision: Decision
    chooser: Chooser

    def test_votes(self) -> dict[str, Floats]:
        """Votes of every candidate on the test rows."""
        chooser = self.chooser
        return chooser.votes(chooser.cohort.rows(Part.TEST), [*chooser.candidates, *chooser.linear])

    def personalised_votes(self) -> Floats:
        """Votes of what the personalised selection takes."""
        return self.test_votes()[self.chooser.personalised()]


class WatchedSite(BofrfSite):
    """BOFRF's site, looked at from inside."""

    grown_here: ClassVar[dict[str, tuple[bytes, dict[str, Any]]]] = {}

    def grown(self) -> bytes:
        """The same rows and the same seed give the same trees, whichever rule weighs them: they are grown once."""
        memory, rows = self.house.memory, self.training
        study = self.house.study
        words = f"{self.house.name} {study.split.seed} {study.forest} {study.privacy}".encode()
        key = hashlib.sha256(words + rows.X.tobytes() + rows.y.tobytes()).hexdigest()
        if key not in self.grown_here:
            lent = super().grown()
            self.grown_here[key] = lent, {name: memory[name] for name in GROWN if name in memory}
        lent, left = self.grown_here[key]
        memory.update(left)
        return lent

    def finish(self, order: Weights) -> Message:
        """Choose as ever, and keep what there was to choose from."""
        house, lent = self.house, order.manifest
        if "home-forest" in house.memory:
            order = self._with_trees_of_home(order)
        pool = self.pool(order.manifest, lent)
        chooser = Chooser(house.study, house.cohort, pool, *self.candidates(pool, order))
        house.outcome = Watched(chooser.decide(), chooser)  # no figures of a single night: they come from votes
        return Done({})


WATCHED = replace(ALGORITHMS["bofrf"], site_part=WatchedSite)


@dataclass(frozen=True)
class Voted:
    """One site's test rows: truth, votes of every model, and what the site chose."""

    y: NDArray[np.int8]
    votes: Mapping[str, Floats]
    choice: Choice


METRICS = {"AUROC": metrics.auroc, "AUPRC": metrics.auprc, "Brier score": metrics.brier}
BETTER: Mapping[str, Literal["less", "more"]] = {"AUROC": "more", "AUPRC": "more", "Brier score": "less"}


@dataclass(frozen=True)
class Seen:
    """One federation: metric -> model -> a figure per site, and the sites' choices."""

    reached: Mapping[str, Mapping[str, Sequence[float]]]
    choices: Sequence[str]

    @classmethod
    def of(cls, voted: Collection[Voted], models: Sequence[str]) -> Seen:
        """All figures of some models."""
        reached = {
            name: {model: [metric(one.y, one.votes[model]) for one in voted] for model in models}
            for name, metric in METRICS.items()
        }
        return cls(reached, [one.choice for one in voted])


def forests(study: Study, cohorts: Mapping[str, Cohort]) -> dict[str, Voted]:
    """Local, FedRF, BOFRF as published, ours without and with its companion, and pooled."""
    WatchedSite.grown_here.clear()
    ours = simulate(study.with_settings(algorithm={"companion": "none"}), cohorts, algorithm=WATCHED).outcomes
    both = simulate(study.with_settings(algorithm={"companion": "linear"}), cohorts, algorithm=WATCHED).outcomes
    theirs = simulate(study.with_settings(algorithm={"preset": "published"}), cohorts, algorithm=WATCHED).outcomes
    trees = study.forest.trees * len(cohorts)  # as many as the federation has
    pooled = pooled_forest(study.with_settings(forest={"trees": trees}), cohorts)
    return {
        site: _voted(_watched(ours[site]), _watched(theirs[site]), _watched(both[site]), cohort, pooled)
        for site, cohort in cohorts.items()
    }


def with_the_others(study: Study, cohorts: Mapping[str, Cohort]) -> dict[str, Voted]:
    """The forests, and what was published beside them: boosted stumps, and a choice on rows that are held out."""
    voted, chosen, stumps = forests(study, cohorts), held_out(study, cohorts), boosted(study, cohorts)
    return {
        site: replace(one, votes={**one.votes, HELD_OUT: chosen[site], **stumps[site]}) for site, one in voted.items()
    }


def held_out(study: Study, cohorts: Mapping[str, Cohort]) -> dict[str, Floats]:
    """Votes of the published rule with the tau and the trees that do best on a fifth of the training patients.

    Those are missing where trees are grown and scored. The publication chooses on the test rows instead.
    """
    settings = study.with_settings(algorithm={"preset": "published"}, split={"validation": 0.2})
    parts = {site: replace(cohort, part=_fifth_aside(cohort, study)) for site, cohort in cohorts.items()}
    outcomes = simulate(settings, parts, algorithm=WATCHED).outcomes
    return {site: _watched(one).personalised_votes() for site, one in outcomes.items()}


def boosted(study: Study, cohorts: Mapping[str, Cohort]) -> dict[str, dict[str, Floats]]:
    """Votes of local AdaBoost and of BOPPID. Own stumps are always kept, so the former is the latter without others."""
    no_figures = study.with_settings(choice={"fewest_test_patients": 1_000_000})  # they come from votes
    settings = {**no_figures.model_dump(mode="json"), "algorithm": {"name": "boppid"}}
    outcomes = simulate(Study.model_validate(settings), cohorts).outcomes
    votes = {}
    for site, cohort in cohorts.items():
        test, boppid = cohort.rows(Part.TEST), outcomes[site].model
        alone = boppid
        for other in sorted({*boppid.owners_} - {site}):
            alone = alone.without(other)
        votes[site] = {
            "local AdaBoost": alone.votes(test.X, test.present),
            "BOPPID": boppid.votes(test.X, test.present),
        }
    return votes


def _watched(outcome: Any) -> Watched:
    assert isinstance(outcome, Watched)
    return outcome


def _fifth_aside(cohort: Cohort, study: Study) -> Parts:
    """The same parts, with a stratified fifth of the training patients to choose on."""
    part, training = cohort.part.copy(), np.flatnonzero(cohort.part == Part.TRAINING)
    aside = folds(cohort.y[training], cohort.patients[training], 5, study.split.seed) == 0
    part[training[aside]] = Part.VALIDATION
    return part


def _voted(ours: Watched, theirs: Watched, both: Watched, cohort: Cohort, pooled: FederatedForest) -> Voted:
    test = cohort.rows(Part.TEST)
    mine, published, joint = ours.test_votes(), theirs.test_votes(), both.test_votes()
    votes = {
        LOCAL: mine["local"],
        "FedRF": mine["fedrf"],
        "BOFRF as published": published[theirs.decision.name],
        "our weighting": mine["bofrf"],
        "chosen": mine[ours.decision.name],
        "personalised": published[theirs.chooser.personalised()],
        "pooled": pooled.votes(test.X, np.ones_like(test.present)),
        "local linear": joint["local linear"],
        "local blend": joint["local blend"],
        "federated linear": joint.get("linear", joint["bofrf"]),
        "blend": joint.get("blend", joint["bofrf"]),
        ACCOMPANIED: joint[both.decision.name],
        f"{ACCOMPANIED}, calibrated": _calibrated(both, both.decision.name, joint),
        "local, calibrated": _calibrated(ours, "local", mine),
        "chosen, calibrated": _calibrated(ours, ours.decision.name, mine),
        "chosen, own base rate": _at_own_base_rate(ours, mine),
    }
    by_tau = {name: metrics.auroc(test.y, published[name]) for name in theirs.chooser.rules.personal}
    votes["personalised on test rows"] = published[max(by_tau, key=lambda name: by_tau[name])]
    return Voted(test.y, votes, _choice(ours.decision))


def _calibrated(outcome: Watched, name: str, votes: Mapping[str, Floats]) -> Floats:
    """As the site does it."""
    calibration, _ = outcome.chooser.calibration(name)
    return votes[name] if calibration is None else metrics.calibrated(votes[name], *calibration)


def _at_own_base_rate(outcome: Watched, votes: Mapping[str, Floats]) -> Floats:
    """The least that calibration can do, for everybody."""
    chooser, name = outcome.chooser, outcome.decision.name
    return metrics.calibrated(votes[name], *metrics.at_base_rate(chooser.judged[name], chooser.judged_rows.y))


def _choice(decision: Decision) -> Choice:
    if decision.question:
        return "question"
    if decision.name == "local":
        return "guard"
    return "federated" if decision.cross_validated else "too few"
