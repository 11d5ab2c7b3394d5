"""What exported trees tell an attacker: ours at several floors, beside scikit-learn's and an XGBoost forest.

    python -m benchmarks.privacy --data DIR          # with pima.csv and saheart.csv; without it, two data sets fewer
    python -m benchmarks.privacy --data DIR --only saheart

Membership: for every patient, a likelihood-ratio attack over shadow forests on random halves, from every tree and from
the mean vote, and without shadows by a threshold; each forest in turn is the release. Joiners: who came between two
nights. Attributes: the one value that is not known. Vectors: one patient more between two characteristic vectors. Every
attack stands beside its null.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy_data import ENVIRONMENTS, environment_study
from benchmarks.federations import breast_cancer, made_up
from benchmarks.harness import Figure, Measured, command, table
from spinney.attacks import attributes, differences, joiners, membership
from spinney.attacks.membership import Exporter
from spinney.attacks.verdict import AttackResult
from spinney.choice.metrics import Figure as Value
from spinney.choice.metrics import auroc
from spinney.errors import Declined
from spinney.federation.forest_site import rounding_of
from spinney.forest.export import export_forest
from spinney.forest.grow import grow
from spinney.forest.tree import Forest, join_forests
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.describe import characteristic_vector
from spinney.rows.encode import Matrix
from spinney.study.settings import ForestSettings
from spinney.study.study import Study

TREES = 100
FLOORS = (5, 10, 20)
SIZES = (30, 100, 400)
JOINERS = 66
NIGHTS = (1, 5)
UNKNOWN = (0.0, 1 / 3)
Labels = NDArray[np.int8]


@dataclass(frozen=True)
class Pool:
    """A data set as one hospital has it, all of it."""

    study: Study
    cohort: Cohort


def pools(asked: argparse.Namespace) -> Iterator[tuple[str, Pool]]:
    """The data sets that are here."""
    if asked.data:
        for name in ("saheart", "pima"):
            frame = pd.read_csv(asked.data / f"{name}.csv")
            environment = next(one for one in ENVIRONMENTS.values() if one.data == name)
            study = environment_study(environment, frame)
            yield name, Pool(study, cohort_from_frame(frame, study))
    study, cohorts = breast_cancer(1, TREES)
    yield "breast cancer", Pool(study, cohorts["site00"])
    study, cohorts = made_up(1, TREES, 600 if asked.quick else 2000, 20)
    yield "made up", Pool(study, cohorts["site00"])


def ours(pool: Pool, fixed: int | None) -> Exporter:
    """As a house lends: grown and recounted with so many patients in a leaf (None: the root of all), where cuts are."""

    def export(X: Matrix, y: Labels, seed: int) -> Forest:
        patients, floor = np.arange(len(y)), fixed or round(float(np.sqrt(len(y))))
        settings = ForestSettings(trees=TREES, min_samples_leaf=floor)
        rounding = rounding_of(pool.study, pool.cohort)
        X = rounding.snapped(X)
        grown = grow(X, y, patients, settings, seed, rounding=rounding, floor=floor)
        return export_forest(grown.trees, grown.drawn, X, y, patients, floor=floor, rounding=rounding)

    return export


def plain(X: Matrix, y: Labels, seed: int) -> Forest:
    """scikit-learn's RandomForestClassifier with its defaults, every tree as it is."""
    settings = ForestSettings(trees=TREES, min_samples_leaf=1, max_depth=32, engine="scikit-learn")
    patients = np.arange(len(y))
    grown = grow(X, y, patients, settings, seed)
    return export_forest(grown.trees, grown.drawn, X, y, patients, floor=1, rounding=None)


def boosted(X: Matrix, y: Labels, seed: int) -> Forest:
    """XGBoost's random forest with its defaults; a leaf's margin becomes the tree's own probability."""
    from xgboost import XGBRFClassifier

    model = XGBRFClassifier(n_estimators=TREES, random_state=seed, n_jobs=1).fit(X, y)
    bias = json.loads(model.get_booster().save_config())["learner"]["learner_model_param"]["base_score"]
    base = float(str(bias).strip("[]"))
    start = float(np.log(base / (1 - base)))
    return join_forests(
        [_from_xgboost(json.loads(one), start) for one in model.get_booster().get_dump(dump_format="json")]
    )


def _from_xgboost(root: Mapping[str, object], start: float) -> Forest:
    """XGBoost goes left below the cut and we up to it: the next smaller float32 says the same."""
    feature, threshold, missing, probability = [], [], [], []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        split = "split" in node
        children = {one["nodeid"]: one for one in node.get("children", ())}  # type: ignore[attr-defined]
        feature.append(int(str(node["split"])[1:]) if split else -1)
        cut = np.nextafter(np.float32(node["split_condition"]), np.float32(-np.inf)) if split else 0.0  # type: ignore[arg-type]
        threshold.append(float(cut))
        missing.append(bool(split and node["missing"] == node["yes"]))
        margin = 0.0 if split else float(node["leaf"]) * TREES + start  # type: ignore[arg-type]
        probability.append(0.0 if split else 1 / (1 + np.exp(-margin)))
        if split:
            waiting += [children[node["no"]], children[node["yes"]]]
    return Forest(
        np.array(feature, np.int16), np.array(threshold), np.array(missing, bool), np.array(probability, np.float64)
    )


def releases(pool: Pool) -> dict[str, Exporter]:
    """Ours at every floor, then the others."""
    found = {f"ours, leaf of {floor}": ours(pool, floor) for floor in FLOORS}
    found["ours, leaf of the root"] = ours(pool, None)
    found["scikit-learn"] = plain
    if find_spec("xgboost"):
        found["XGBoost forest"] = boosted
    return found


def measure(asked: argparse.Namespace) -> Measured:
    """All attacks on all releases of all data sets."""
    figures: list[Figure] = []
    members: list[Sequence[str]] = []
    others: list[Sequence[str]] = []
    vectors: list[Sequence[str]] = []
    for name, pool in pools(asked):
        if asked.only and name not in asked.only:
            continue
        X, y = pool.cohort.X, pool.cohort.y
        for release, exporter in releases(pool).items():
            print(f"{name}: {release}", file=sys.stderr, flush=True)
            found, quality = _membership(exporter, X, y, asked)
            members.append([name, release, *(_both(one) for one in found.values()), f"{quality:.3f}"])
            figures.append(Figure(f"{name}/{release}/AUROC", "", (quality,), "more"))
            figures += _figures(f"{name}/{release}", found)
            if not asked.membership:
                others.append([name, release, *_others(exporter, X, y, asked).values()])
        if not asked.membership:
            vectors += _vectors(name, pool, asked)
    told = [
        "Who was there? Area under the curve, and true positives at one false one of a hundred (95 % intervals):",
        table(["data", "release", "every tree", "mean vote", "threshold", "null", "AUROC of the model"], members),
    ]
    more = [
        "Who came, and what is the value that is not known? Joiners: area under the curve after so many nights, "
        "and its null. Values: of a hundred unknown ones, one at a time or a third of all, more than of "
        "patients who were not there.",
        table(["data", "release", *(f"joiners, nights: {n}" for n in NIGHTS), "null", "one value", "a third"], others),
        "One patient more between two characteristic vectors: mean error, as a share of the range.",
        table(["data", "patients", "by the difference", "by guessing the mean"], vectors),
    ]
    missing = [] if asked.data else ["SA heart and Pima: name their folder with --data"]
    missing += [] if find_spec("xgboost") else ["XGBoost forests: xgboost is not installed"]
    return Measured(figures, "\n\n".join(told if asked.membership else [*told, *more]), missing)


def _membership(
    exporter: Exporter, X: Matrix, y: Labels, asked: argparse.Namespace
) -> tuple[dict[str, AttackResult], float]:
    """Attacks, and how good the releases are on those who did not grow them."""
    forests, targets = (12, 6) if asked.quick else (asked.forests, 40)
    kept: list[Forest] = []

    def keep(rows: Matrix, labels: Labels, seed: int) -> Forest:
        kept.append(exporter(rows, labels, seed))
        return kept[-1]

    every = membership.grow_shadows(keep, X, y, forests)
    vote = np.stack([membership.evidence(one, X, y, "mean-vote") for one in kept])
    mean = membership.Shadows(every.inside, vote)
    said = np.where(y == 1, vote, -vote)
    qualities = [auroc(y[~half], scores[~half]) for half, scores in zip(every.inside, said, strict=True)]
    found = {
        "every tree": membership.attack(every, targets),
        "mean vote": membership.attack(mean, targets),
        "threshold": membership.by_threshold(mean, targets),
        "null": membership.null(every, targets),
    }
    return found, float(np.mean(qualities))


def _others(exporter: Exporter, X: Matrix, y: Labels, asked: argparse.Namespace) -> dict[str, str]:
    trials = 1 if asked.quick else 4
    found: dict[str, str] = {}
    null = ""
    for nights in NIGHTS:
        came, nobody = joiners.attack(exporter, X, y, nights=nights, joiners=JOINERS, trials=trials)
        found[f"{nights}"] = _both(came)
        null = _told(nobody.auc)
    order = np.random.default_rng(5).permutation(len(y))
    inside, outside = order[: len(y) // 2], order[len(y) // 2 :]
    forest = exporter(X[inside], y[inside], 5)
    people = (X[inside], y[inside]), (X[outside], y[outside])
    values = {f"{part:.0%}": _told(attributes.attack(forest, *people, part), ".1f") for part in UNKNOWN}
    return {**found, "null": null, **values}


def _vectors(name: str, pool: Pool, asked: argparse.Namespace) -> Iterator[Sequence[str]]:
    cohort, privacy = pool.cohort, pool.study.privacy

    def tell(X: Matrix) -> NDArray[np.float64]:
        people = replace(cohort, X=X, y=cohort.y[: len(X)], patients=np.arange(len(X)), part=cohort.part[: len(X)])
        return characteristic_vector(people, privacy, missing_rates=False)

    for size in (one for one in SIZES if one < len(cohort)):
        try:
            error, guess = differences.attack(tell, cohort.X, size, 20 if asked.quick else 200)
        except Declined:
            yield name, f"{size}", "declines", ""
        else:
            yield name, f"{size}", _told(error), _told(guess)


def _figures(name: str, found: Mapping[str, AttackResult]) -> list[Figure]:
    return [
        one
        for attack, verdict in found.items()
        for one in (
            Figure(f"{name}/{attack}/AUC", "", (verdict.auc.value,), "less"),
            Figure(f"{name}/{attack}/true positives at 1 %", "", (verdict.found.value,), "less"),
        )
    ]


def _both(verdict: AttackResult) -> str:
    return f"{_told(verdict.auc)}; {_told(verdict.found)}"


def _told(value: Value, form: str = ".3f") -> str:
    return f"{value.value:{form}} ({value.low:{form}} to {value.high:{form}})"


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", help="one of the data sets; may be repeated")
    parser.add_argument("--membership", action="store_true", help="who was there, and no attack that takes longer")
    parser.add_argument("--forests", type=int, default=128, help="shadow forests, the releases among them")


if __name__ == "__main__":
    command("privacy", __doc__, measure, _options)
