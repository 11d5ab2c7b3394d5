"""One federation, all models: the votes of each on every site's test rows.

`spinney.simulate` reports what a site would; a benchmark also wants the models that were not chosen, and votes instead
of figures, so that it can pool folds and compute AUROC where the product keeps silent for want of test patients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spinney import metrics
from spinney.algorithms import ALGORITHMS
from spinney.algorithms.bofrf import BofrfSite
from spinney.cohort import Cohort
from spinney.federation import Message
from spinney.messages import Done, Weights
from spinney.model import FederatedForest
from spinney.parts import Part
from spinney.personalise import Chooser, Decision, Outcome
from spinney.simulate import pooled_forest, simulate
from spinney.study import Study
from spinney.votes import scores

Floats = NDArray[np.float64]

LOCAL = "local forest"
Choice = Literal["federated", "guard", "question", "too few"]
ANY_TEST_PART = {"bootstrap": 100, "fewest_test_patients": 1_000_000}  # no figures from spinney: they come from votes


@dataclass(frozen=True, kw_only=True)
class Watched(Outcome):
    """An outcome together with everything that was there to choose from."""

    chooser: Chooser = field(repr=False)

    def test_votes(self) -> dict[str, Floats]:
        """Votes of every candidate on the test rows."""
        chooser = self.chooser
        names = list(chooser.candidates)
        votes = scores(chooser.walker, chooser.cohort.rows(Part.TEST).X, chooser.matrix(names))
        return {name: np.nan_to_num(votes[:, place], nan=0.5) for place, name in enumerate(names)}


class WatchedSite(BofrfSite):
    """BOFRF's site, looked at from inside."""

    def finish(self, order: Weights) -> Message:
        """Choose as ever, and keep what there was to choose from."""
        house = self.house
        pool = self.pool(order.manifest)
        chooser = Chooser(house.study, house.cohort, pool, *self.candidates(pool, order))
        house.outcome = Watched(**vars(chooser.outcome()), chooser=chooser)
        return Done({})


ALGORITHMS["bofrf"] = replace(ALGORITHMS["bofrf"], site_part=WatchedSite)  # in this process only


@dataclass(frozen=True)
class Voted:
    """One site's test rows: truth, votes of every model, and what the site chose."""

    y: NDArray[np.int8]
    votes: Mapping[str, Floats]
    choice: Choice


def forests(study: Study, cohorts: Mapping[str, Cohort]) -> dict[str, Voted]:
    """Local, FedRF, BOFRF as published, ours, chosen and pooled."""
    study = study.with_settings(choice=ANY_TEST_PART)
    ours = simulate(study, cohorts).outcomes
    theirs = simulate(study.with_settings(algorithm={"preset": "published"}), cohorts).outcomes
    trees = study.forest.trees * len(cohorts)  # as many as the federation has
    pooled = pooled_forest(study.with_settings(forest={"trees": trees}), cohorts)
    return {site: _voted(ours[site], theirs[site], cohort, pooled) for site, cohort in cohorts.items()}


def boosted(study: Study, cohorts: Mapping[str, Cohort]) -> dict[str, dict[str, Floats]]:
    """Votes of local AdaBoost and of BOPPID. Own stumps are always kept, so the former is the latter without others."""
    settings = {**study.with_settings(choice=ANY_TEST_PART).model_dump(mode="json"), "algorithm": {"name": "boppid"}}
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


def _voted(ours: Outcome, theirs: Outcome, cohort: Cohort, pooled: FederatedForest) -> Voted:
    assert isinstance(ours, Watched)
    assert isinstance(theirs, Watched)
    test = cohort.rows(Part.TEST)
    mine, published = ours.test_votes(), theirs.test_votes()
    votes = {
        LOCAL: mine["local"],
        "FedRF": mine["fedrf"],
        "BOFRF as published": published[theirs.decision.name],
        "our weighting": mine["bofrf"],
        "chosen": mine[ours.decision.name],
        "personalised": published[theirs.chooser.personalised()],
        "pooled": pooled.votes(test.X, np.ones_like(test.present)),
        "local, calibrated": _calibrated(ours, "local", mine),
        "chosen, calibrated": _calibrated(ours, ours.decision.name, mine),
    }
    by_tau = {name: metrics.auroc(test.y, published[name]) for name in theirs.chooser.rules.personal}
    votes["personalised on test rows"] = published[max(by_tau, key=lambda name: by_tau[name])]
    return Voted(test.y, votes, _choice(ours.decision))


def _calibrated(outcome: Watched, name: str, votes: Mapping[str, Floats]) -> Floats:
    """Platt scaling as the site does it; with too few patients to choose on it doesn't."""
    if outcome.decision.calibration is None:
        return votes[name]
    chooser = outcome.chooser
    slope, intercept = metrics.platt(chooser.judged[name], chooser.judged_rows.y)
    return metrics.calibrated(votes[name], slope, intercept) if slope > 0 else votes[name]


def _choice(decision: Decision) -> Choice:
    if decision.question:
        return "question"
    if decision.name == "local":
        return "guard"
    return "federated" if decision.cross_validated else "too few"
