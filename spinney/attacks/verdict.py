"""How well somebody tells members from others: over all thresholds, and where hardly anybody is accused wrongly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.choice.metrics import Figure

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
FALSE_ALARMS = 0.01
RESAMPLES = 200


@dataclass(frozen=True)
class AttackResult:
    """An attack's success, each figure with its interval over patients."""

    auc: Figure
    found: Figure
    """Share of the members that are found where one of a hundred others is accused wrongly."""

    @property
    def advantage(self) -> Figure:
        """From 0 (guessing) to 1: twice the area above one half."""
        return Figure(2 * self.auc.value - 1, 2 * self.auc.low - 1, 2 * self.auc.high - 1)


def judge(member: Flags, score: Floats, seed: int = 0, resamples: int = RESAMPLES) -> AttackResult:
    """Both arrays are attempts x patients; patients are resampled, since one patient's attempts belong together."""
    rng = np.random.default_rng([seed, 0xA77A])
    patients = member.shape[1]
    draws: list[NDArray[np.int64]] = [np.arange(patients)]
    draws += [np.asarray(rng.integers(0, patients, patients)) for _ in range(resamples)]
    values = np.array([_figures(member[:, drawn].ravel(), score[:, drawn].ravel()) for drawn in draws])
    low, high = np.nanquantile(values[1:], (0.025, 0.975), axis=0)
    auc, found = (Figure(float(values[0, one]), float(low[one]), float(high[one])) for one in (0, 1))
    return AttackResult(auc, found)


def _figures(member: Flags, score: Floats) -> tuple[float, float]:
    if member.all() or not member.any():
        return np.nan, np.nan
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))
    hits = np.concatenate([[0.0], np.cumsum(member[order])[ends] / member.sum()])
    alarms = np.concatenate([[0.0], np.cumsum(~member[order])[ends] / (~member).sum()])
    return float(np.trapezoid(hits, alarms)), float(np.interp(FALSE_ALARMS, alarms, hits))
