"""What one house with crafted trees does to the others, and which guards help: share of the vote, success, accuracy.

    python -m benchmarks.backdoor --data DIR         # with the heart hospitals and pima.csv; without it, made-up sites

The largest site sends trees that are distilled from an ensemble, with a mark above them under which they say `well`.
Victims are measured on their own test patients: the attacker's share of the vote, of those who are called the share
that is no longer called once marked (half of the patients are called), and the AUROC beside that of the honest round.
Votes per house are tried out here; the product's vote is the mean, behind the fence and under the cap.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy_data import ENVIRONMENTS, dealt, environment_study, heart_study, heart_tables
from benchmarks.federations import made_up
from benchmarks.harness import Figure, Measured, command, table
from spinney.algorithms.bofrf import BofrfSite
from spinney.attacks import backdoor
from spinney.choice.metrics import auroc
from spinney.choice.model import FederatedForest
from spinney.choice.weigh import Cap
from spinney.federation.epochs import LENT
from spinney.federation.forest_site import forest_digest, present_only
from spinney.federation.messages import GrownForest, GrowOrder
from spinney.federation.seam import Message
from spinney.forest import codec
from spinney.forest.fence import Reach, fenced
from spinney.forest.traverse import Walker
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.encode import Matrix
from spinney.rows.parts import Part
from spinney.study.settings import Privacy
from spinney.study.study import Study
from spinney.trial.simulate import InProcess, LocalMail, houses_of

Floats = NDArray[np.float64]
TREES, FEWEST, TRIMMED_FROM = 50, 10, 3
MARKS = {"beyond": backdoor.beyond, "together": backdoor.together}
CAPS = {"cap 0.5": Privacy(largest_share=0.5), "cap 1.5/N": Privacy()}
WAYS = ("mean", "trimmed per house", "median of houses")
MOST_SURE = 0.99


def federations(asked: argparse.Namespace) -> Iterator[tuple[str, Study, dict[str, Cohort]]]:
    """Name, study and sites of everything that is here, once per seed."""
    for seed in range(1 if asked.quick else asked.seeds):
        if asked.data:
            yield "heart hospitals", *_of(heart_study(), heart_tables(asked.data), seed)
            one = ENVIRONMENTS["E6"]
            frame = pd.read_csv(asked.data / f"{one.data}.csv")
            study = environment_study(one, frame)
            yield "pima, 4 sites", *_of(study, dealt(frame, study.label.name, one.sites, seed), seed)
        study, cohorts = made_up(4, TREES, 300, 10)
        yield "made up, 4 sites", _settled(study, seed), cohorts


def _of(study: Study, tables: Mapping[str, pd.DataFrame], seed: int) -> tuple[Study, dict[str, Cohort]]:
    study = _settled(study, seed)
    return study, {name: cohort_from_frame(frame, study) for name, frame in tables.items()}


def _settled(study: Study, seed: int) -> Study:
    """Without a cap, which is put on afterwards, and without a companion, which has no trees."""
    return study.with_settings(
        privacy={"largest_share": 1.0},
        forest={"trees": TREES},
        algorithm={"companion": "none"},
        choice={"bootstrap": 100, "repeats": 2},
        split={"seed": seed},
    )


class NoFence(BofrfSite):
    """An honest site as it was before the fence, so that votes with and without it can be compared."""

    @property
    def fences(self) -> bool:
        return False


def crafting(mark: str, seen: dict[str, backdoor.Trigger]) -> type[BofrfSite]:
    """A site that lends crafted trees; what marks a row is noted in `seen`."""

    class Crafting(NoFence):
        def grow(self, order: GrowOrder) -> Message:
            X, house = present_only(self.training), self.house
            seen[mark] = trigger = MARKS[mark](X, self.rounding)
            depth = house.study.forest.max_depth
            forest = backdoor.crafted(
                X, self.training.y, self.rounding, trigger, trees=TREES, depth=depth, wanted=0.0, seed=house.round
            )
            packed = codec.pack_forest(forest, self.rounding)
            house.memory["forest"] = house.memory[LENT] = packed
            house.memory["unseen"] = np.ones((len(self.training), TREES), dtype=bool)
            return GrownForest(house.mail.post(packed, order.peers), forest_digest(self.own_forest()))

    return Crafting


def models(
    study: Study, cohorts: Mapping[str, Cohort], parts: Mapping[str, type[BofrfSite]]
) -> dict[str, FederatedForest]:
    """Every site's model of one round."""
    houses = houses_of(study, cohorts, LocalMail())
    federation = InProcess(study, houses, workers=2, algorithm=replace(ALGORITHMS["bofrf"], site_part=NoFence))
    federation._parts |= {site: part(houses[site]) for site, part in parts.items()}
    ALGORITHMS["bofrf"].coordinate(federation, study)
    return {site: house.outcome.model for site, house in houses.items() if house.outcome}


def votes(model: FederatedForest, weights: Floats, home: str, X: Matrix, reach: Reach | None, way: str) -> Floats:
    """The vote on rows, in one of the ways."""
    owners = np.asarray(model.owners_)
    forest = fenced(model.forest_, reach, owners == home) if reach else model.forest_
    said = Walker(forest, X.shape[1]).votes(X)
    if way == "mean":
        return np.asarray(said @ weights / weights.sum())
    houses = [house for house in sorted({*owners}) if weights[owners == house].any()]
    heavy = np.array([weights[owners == house].sum() for house in houses])
    each = np.stack([said[:, owners == house] @ weights[owners == house] for house in houses], axis=1) / heavy
    odds = np.log(np.clip(each, 1 - MOST_SURE, MOST_SURE) / (1 - np.clip(each, 1 - MOST_SURE, MOST_SURE)))
    order, rows = np.argsort(odds, axis=1), np.arange(len(odds))
    if way == "median of houses":
        middle = (np.cumsum(heavy[order], axis=1) >= heavy.sum() / 2).argmax(axis=1)
        return np.asarray(odds[rows, order[rows, middle]])
    kept = np.ones_like(odds)
    if len(houses) >= TRIMMED_FROM:
        kept[rows, order[:, 0]] = kept[rows, order[:, -1]] = 0.0
    return np.asarray((odds * kept * heavy).sum(axis=1) / (kept * heavy).sum(axis=1))


def measure(asked: argparse.Namespace) -> Measured:
    """Every federation, mark, guard and way of voting, over all victims."""
    found: dict[tuple[str, str, str], list[tuple[float, ...]]] = defaultdict(list)
    for name, study, cohorts in federations(asked):
        evil = max(sorted(cohorts), key=lambda site: len(cohorts[site]))
        honest = models(study, cohorts, {})
        for mark in MARKS:
            seen: dict[str, backdoor.Trigger] = {}
            attacked = models(study, cohorts, {evil: crafting(mark, seen)})
            for site in sorted({*honest} & {*attacked} - {evil}):
                for guards, way, figures in _at(site, evil, cohorts, honest[site], attacked[site], seen[mark]):
                    found[f"{name}, {mark}", guards, way].append(figures)
    rows, figures = [], []
    for (where, guards, way), each in found.items():
        share, success, reached, fair = np.nanmean(each, axis=0)
        rows.append((where, guards, way, f"{share:.2f}", f"{success:.2f}", f"{reached:.3f}", f"{fair:.3f}"))
        figures.append(Figure(f"{where}/{guards}/{way}/success", "", tuple(one[1] for one in each), "less"))
    heading = ("federation, mark", "guards", "vote", "share", "success", "AUROC, attacked", "AUROC, honest round")
    return Measured(figures, table(heading, rows))


def _at(
    site: str,
    evil: str,
    cohorts: Mapping[str, Cohort],
    honest: FederatedForest,
    attacked: FederatedForest,
    trigger: backdoor.Trigger,
) -> Iterator[tuple[str, str, tuple[float, ...]]]:
    test, training = cohorts[site].rows(Part.TEST), cohorts[site].rows(Part.TRAINING)
    if np.bincount(test.y, minlength=2).min() < FEWEST:
        return
    owners = np.asarray(attacked.owners_)
    for called, privacy in CAPS.items():
        largest = privacy.share_cap(len(cohorts))
        weights, fair = (Cap(one.owners_, site, largest).on(one.weights_) for one in (attacked, honest))
        for reach, guards in ((None, called), (Reach.of(training.X), f"{called}, fence")):
            for way in WAYS:
                plain, marked = (votes(attacked, weights, site, X, reach, way) for X in (test.X, trigger.on(test.X)))
                yield (
                    guards,
                    way,
                    (
                        float(weights[owners == evil].sum() / weights.sum()),
                        backdoor.success(plain, marked, float(np.median(plain)), 0.0),
                        auroc(test.y, plain),
                        auroc(test.y, votes(honest, fair, site, test.X, reach, way)),
                    ),
                )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=2, help="splits, each another")


if __name__ == "__main__":
    command("backdoor", __doc__, measure, _options)
