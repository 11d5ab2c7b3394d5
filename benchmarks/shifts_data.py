"""Made-up hospitals that differ in one known way at a time.

Twelve correlated measurements (normal, 0.3 between neighbours, in standard deviations). The disease follows from nine
of them: five count by themselves, two only together, one at both extremes, one beyond a threshold; three say nothing.
The intercept makes 30 % of the population ill. Each hospital then departs from that in the ways that `Hospital` names.

A hospital's test patients are the same in every repeat and have their true labels, so what varies over repeats is whom
it trains on and how trees grow, not whom it is measured on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.parts import Part
from spinney.study.settings import Feature, Label
from spinney.study.study import Study

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]

MEASUREMENTS = 12
USUAL_SHARE = 0.3
TEST_ROWS = 2000


@dataclass(frozen=True)
class Hospital:
    """Where one hospital departs from the population."""

    rows: int = 300  # training patients
    positive: float | None = USUAL_SHARE  # share of ill patients, sick and well drawn apart; None: whoever comes
    moved: float = 0.0  # every measurement's mean, up or down by so many standard deviations
    wrong: float = 0.0  # share of training labels that are the other way round
    other: float = 0.0  # how far its disease is another one, which shows in other measurements


Federation = tuple[Hospital, ...]


@dataclass(frozen=True)
class Sweep:
    """One way to differ, more and more of it. With `odd` only the first hospital does, and is told apart."""

    title: str
    settings: Mapping[str, Federation]
    odd: bool = False


def _alike(count: int = 4, **ways: float) -> Federation:
    return tuple(Hospital(**ways) for _ in range(count))  # type: ignore[arg-type]


def _one_odd(**ways: float) -> Federation:
    return (Hospital(**ways), *_alike(3))  # type: ignore[arg-type]


def _shares(*positive: float) -> Federation:
    return tuple(Hospital(positive=share) for share in positive)


SWEEPS = (
    Sweep(
        "label skew",
        {
            "all 30 %": _alike(),
            "15 to 45 %": _shares(0.15, 0.25, 0.35, 0.45),
            "5 to 75 %": _shares(0.05, 0.15, 0.45, 0.75),
        },
    ),
    Sweep("covariate shift", {f"{by:g} SD": _alike(positive=None, moved=by) for by in (0.0, 0.5, 1.0, 1.5)}),
    Sweep("wrong labels at one site", {f"{100 * by:g} %": _one_odd(wrong=by) for by in (0.0, 0.15, 0.3)}, odd=True),
    Sweep("another disease at one site", {f"{100 * by:g} %": _one_odd(other=by) for by in (0.0, 0.5, 1.0)}, odd=True),
    Sweep("one tiny site", {f"{rows} of 300": _one_odd(rows=rows) for rows in (40, 80, 150)}, odd=True),
    Sweep(
        "imbalance",
        {
            f"{1 - share:.0%}-{share:.0%}".replace("%", ""): _alike(positive=share)
            for share in (0.5, 0.3, 0.2, 0.1, 0.05)
        },
    ),
    Sweep("number of sites", {f"{count}": _alike(count) for count in (2, 3, 4, 6, 10)}),
    Sweep(
        "patients in all, four sites",
        {f"{rows:,}": _alike(rows=rows // 4) for rows in (500, 2_000, 8_000, 32_000)},
    ),
)


def study_of(federation: Federation, trees: int, seed: int) -> Study:
    """The study that these hospitals run: all settings as they come, but for sums that two sites can't mask."""
    features = tuple(Feature(name=f"x{n}", kind="continuous", range=(-6, 6)) for n in range(1, MEASUREMENTS + 1))
    secure_sum = "masked" if len(federation) > 2 else "trusted-third-party"
    study = Study(name="shifts", features=features, label=Label(name="y"))
    return study.with_settings(privacy={"secure_sum": secure_sum}, forest={"trees": trees}, split={"seed": seed})


def cohorts_of(federation: Federation, study: Study) -> dict[str, Cohort]:
    """Every hospital's training patients of this repeat (the study's seed) and its lasting test patients."""
    return {f"S{place}": _cohort(one, place, study) for place, one in enumerate(federation, start=1)}


def _cohort(hospital: Hospital, place: int, study: Study) -> Cohort:
    rng = np.random.default_rng([study.split.seed, place, 0x7EA1])
    X, y = _patients(hospital, place, hospital.rows, rng)
    y = np.where(rng.random(len(y)) < hospital.wrong, 1 - y, y)
    test_X, test_y = _patients(hospital, place, TEST_ROWS, np.random.default_rng([place, 0x7E57]))
    frame = pd.DataFrame(np.vstack([X, test_X]), columns=[feature.name for feature in study.features])
    frame[study.label.name] = np.concatenate([y, test_y])
    part = np.repeat(np.array([Part.TRAINING, Part.TEST], np.int8), (len(y), len(test_y)))
    return replace(cohort_from_frame(frame, study), part=part)


def _patients(hospital: Hospital, place: int, rows: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    """Whoever comes; or, where the share of ill patients is given, exactly as many of each kind."""
    X, y = _comers(hospital, place, rows, rng)
    if hospital.positive is None:
        return X, y
    ill = round(rows * hospital.positive)
    while (y == 1).sum() < ill or (y == 0).sum() < rows - ill:
        more_X, more_y = _comers(hospital, place, rows, rng)
        X, y = np.vstack([X, more_X]), np.concatenate([y, more_y])
    taken = np.concatenate([np.flatnonzero(y == 1)[:ill], np.flatnonzero(y == 0)[: rows - ill]])
    return X[taken], y[taken]


def _comers(hospital: Hospital, place: int, rows: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    up_or_down = np.random.default_rng([place, 0xD1]).choice((-1.0, 1.0), MEASUREMENTS)
    X = _measured(rows, rng) + hospital.moved * up_or_down
    risk = (1 - hospital.other) * _risk(X) + hospital.other * _risk(X[:, ::-1]) + _intercept()
    return X, (rng.random(rows) < 1 / (1 + np.exp(-risk))).astype(np.int8)


def _measured(rows: int, rng: np.random.Generator) -> Floats:
    X = rng.standard_normal((rows, MEASUREMENTS))
    for column in range(1, MEASUREMENTS):
        X[:, column] = 0.3 * X[:, column - 1] + np.sqrt(1 - 0.3**2) * X[:, column]
    return X


def _risk(X: Floats) -> Floats:
    alone = X[:, :5] @ np.array([1.0, 0.8, -0.7, 0.5, -0.4])
    return np.asarray(alone + 0.6 * X[:, 5] * X[:, 6] + 0.5 * X[:, 7] ** 2 + 0.8 * (X[:, 8] > 0.5))


@cache
def _intercept() -> float:
    """By bisection on a large sample of the population."""
    risk, low, high = _risk(_measured(200_000, np.random.default_rng(0x1C))), -10.0, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if np.mean(1 / (1 + np.exp(-risk - middle))) > USUAL_SHARE else (middle, high)
    return middle
