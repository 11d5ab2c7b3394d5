"""A site's outcome as plain data: candidates, decision, figures on test rows. Nothing in it is about one patient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from spinney.choice.answers import better, trusted
from spinney.choice.personalise import Outcome


def evidence_of(outcome: Outcome) -> dict[str, Any]:
    """For JSON: numbers that are none are null."""
    decision, linear = outcome.decision, outcome.model.linear_
    return {
        "answers": [better(outcome).line, trusted(outcome).line],
        "rows": outcome.rows,
        "patients": outcome.patients,
        "positives": outcome.positives,
        "auroc": {name: None if figure is None else figure.value for name, figure in outcome.auroc.items()},
        "auroc_intervals": plain(outcome.auroc),
        "test": plain(outcome.figures),
        "test_prevalence": outcome.prevalence if outcome.figures else None,
        "calibration": plain(outcome.calibration),
        "gain": plain(outcome.gain),
        "strongest_alone": outcome.strongest_alone,
        "gain_over_alone": plain(outcome.gain_over_alone),
        "choice": {
            "model": decision.name,
            "reason": decision.reason,
            "threshold": decision.threshold,
            "calibration": decision.calibration,
            "judged_by": decision.judged_by,
            "cross_validated": plain(decision.cross_validated),
            "question": decision.question,
            "notes": list(decision.notes),
        },
        "succession": plain(outcome.succession),
        "gain_over_champion": plain(outcome.gain_over_champion),
        "out_of_bag": plain(outcome.out_of_bag),
        "newest": plain(outcome.newest),
        "subgroups": plain(outcome.subgroups),
        "credit": plain(outcome.credit),
        "odds_ratios": [] if linear is None else plain(linear.odds_ratios(outcome.model.columns_)),
        "model_digest": outcome.model.digest,
    }


def headline(outcome: Outcome) -> dict[str, float]:
    """The figures that a list of models shows beside each other."""
    told = {f"test_{name}": figure.value for name, figure in outcome.figures.items()}
    if outcome.out_of_bag is not None:
        told["out_of_bag_auroc"] = outcome.out_of_bag.figures["chosen"]["auroc"].value
    if outcome.newest is not None and "auroc" in outcome.newest.figures:
        told["newest_auroc"] = outcome.newest.figures["auroc"].value
    if "auroc" in outcome.gain_over_alone:
        told["gain_over_strongest_local"] = outcome.gain_over_alone["auroc"].value
    if "auroc" in outcome.gain:
        told["gain_over_local"] = outcome.gain["auroc"].value
    if "auroc" in outcome.gain_over_champion:
        told["gain_over_champion"] = outcome.gain_over_champion["auroc"].value
    return {name: value for name, value in told.items() if np.isfinite(value)}


def plain(value: Any) -> Any:
    """Figures, tables and whatever is made of them as dictionaries, lists and numbers."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
