"""Figures on rows that no choice has seen: the random test part, groups of its patients, the newest index events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.choice import metrics
from spinney.choice.curves import curve
from spinney.choice.intervals import intervals, paired, resampled
from spinney.choice.metrics import RANKING_AND_ERROR, Figure, Metric
from spinney.choice.out_of_bag import out_of_bag
from spinney.choice.outcome import Decision, Newest, Outcome, Subgroup
from spinney.choice.split_votes import SplitVotes
from spinney.rows.cohort import Cohort
from spinney.rows.describe import rounded_rows
from spinney.rows.floors import few
from spinney.rows.parts import NEWEST_SHARE, NO_TIMES, Part, unseen_newest
from spinney.study.definition import PatientFeature
from spinney.study.settings import Feature

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest
    from spinney.choice.personalise import Chooser
    from spinney.study.study import Study

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

AGE_BANDS = (0, 18, 40, 65, 80)
SEX_WORDS, AGE_WORDS = {"sex", "gender"}, {"age"}


def measured(chooser: Chooser, decision: Decision, model: FederatedForest) -> Outcome:
    """Figures on test rows, or a note that there are too few."""
    study, cohort = chooser.study, chooser.cohort
    test = cohort.rows(Part.TEST)
    shown = {name: name for name in chooser.rules.shown}
    if chooser.rules.personal:
        shown["personalised"] = chooser.personalised()
    shown["chosen"] = decision.name
    alone = chooser.strongest_alone
    names = sorted({*shown.values(), alone})
    by_name = chooser.votes(test, names)
    base: dict[str, Any] = {
        "site": chooser.pool.home,
        "rows": len(cohort),
        "patients": cohort.patient_count,
        "positives": int(cohort.y.sum()),
        "prevalence": float(test.y.mean()) if len(test) else float("nan"),
        "credit": chooser.credit(decision),
        "model": model,
        "newest": newest(chooser, decision),
        "tested": SplitVotes(
            test.patients,
            test.y,
            {label: by_name[name] for label, name in shown.items()}
            | {"alone": by_name[alone], "chosen": _final(by_name[decision.name], decision)},
        ),
    }
    if note := too_few(test, study, "test"):
        decision = replace(decision, notes=(*decision.notes, note))
        base["out_of_bag"] = out_of_bag(chooser, decision)
        return Outcome(auroc=dict.fromkeys(shown), figures={}, calibration=None, gain={}, decision=decision, **base)
    seed, draws = study.split.seed, study.choice.bootstrap
    final = _final(by_name[decision.name], decision)
    by_name = {name: _as_said(chooser, name, votes, decision) for name, votes in by_name.items()}
    asked = {name: (votes, RANKING_AND_ERROR) for name, votes in by_name.items()}
    drawn = resampled(test.y, {**asked, "chosen": (final, _wide(decision))}, test.patients, draws, seed)
    spans = {name: {metric: one.figure() for metric, one in of.items()} for name, of in drawn.items()}
    return Outcome(
        auroc={label: spans[name]["auroc"] for label, name in shown.items()},
        figures=spans["chosen"],
        calibration=metrics.calibration(test.y, final),
        gain={name: (drawn["chosen"][name] - drawn["local"][name]).figure() for name in RANKING_AND_ERROR},
        strongest_alone=alone,
        gain_over_alone={name: (drawn["chosen"][name] - drawn[alone][name]).figure() for name in RANKING_AND_ERROR},
        decision=decision,
        compared={label: spans[name] for label, name in shown.items()} | {"chosen": spans["chosen"]},
        curves={
            label: curve(test.y, votes, test.patients)
            for label, votes in {**by_name, "chosen": final}.items()
            if label in ("local", chooser.rules.default, "chosen")
        },
        gain_over_champion=_over_champion(chooser, test, final),
        subgroups=tuple(_subgroups(test, final, decision, study)),
        **base,
    )


def too_few(rows: Cohort, study: Study, what: str) -> str:
    """Why there are no figures on these rows, or nothing."""
    fewest, wanted = min(rows.patients_by_class()), study.choice.fewest_test_patients
    return f"{few(fewest)} {what} patients of one class are too few for figures (the study wants {wanted})" * (
        fewest < wanted
    )


def figures_of(rows: Cohort, final: Floats, decision: Decision, study: Study) -> Mapping[str, Figure]:
    """Ranking, error, and what the decision threshold does, with intervals."""
    seed, draws = study.split.seed, study.choice.bootstrap
    return intervals(rows.y, {"it": final}, rows.patients, _wide(decision), resamples=draws, seed=seed)["it"]


def _wide(decision: Decision) -> Mapping[str, Metric]:
    return {
        **RANKING_AND_ERROR,
        **{name: metrics.at_threshold(decision.threshold, of) for name, of in metrics.THRESHOLDED.items()},
    }


def newest(chooser: Chooser, decision: Decision) -> Newest | None:
    """How the chosen model does on the newest index events, of patients who are in no other part but test."""
    study, cohort = chooser.study, chooser.cohort
    if study.split.newest == 0:
        return None
    if not np.any(cohort.part == Part.NEWEST):
        return Newest(0.0, {}, cohort.no_newest or NO_TIMES)
    share = study.split.newest or NEWEST_SHARE
    rows = cohort.where(unseen_newest(cohort.part, cohort.patients))
    if note := too_few(rows, study, "unseen"):
        return Newest(share, {}, note)
    final = _final(chooser.votes(rows, [decision.name])[decision.name], decision)
    return Newest(share, figures_of(rows, final, decision, study))


def _as_said(chooser: Chooser, name: str, votes: Floats, decision: Decision) -> Floats:
    """A candidate's votes as its model would say them: calibrated, if the chosen one's are."""
    line = chooser.calibration(name)[0] if decision.calibration is not None else None
    return votes if line is None else metrics.calibrated(votes, *line)


def _final(votes: Floats, decision: Decision) -> Floats:
    return votes if decision.calibration is None else metrics.calibrated(votes, *decision.calibration)


def _over_champion(chooser: Chooser, test: Cohort, final: Floats) -> Mapping[str, Figure]:
    """The gain over the champion, on test rows on which both have a say."""
    if chooser.incumbent is None:
        return {}
    votes = chooser.champion_votes[chooser.cohort.part == Part.TEST]
    both = ~np.isnan(votes)
    rows, study = test.where(both), chooser.study
    if too_few(rows, study, "test"):
        return {}
    calibration = chooser.incumbent.model.calibration_
    said = votes[both] if calibration is None else metrics.calibrated(votes[both], *calibration)
    seed, draws = study.split.seed, study.choice.bootstrap
    return paired(rows.y, final[both], said, rows.patients, resamples=draws, seed=seed)


# ---------------------------------------------------------------------------------------------------------------
# Groups of patients


def _subgroups(test: Cohort, final: Floats, decision: Decision, study: Study) -> Iterator[Subgroup]:
    """By sex and by age band, where the study asks for them; groups that are too small are named and not told of."""
    for name, members in groups_of(test):
        rows = test.where(members)
        if not len(rows):
            continue
        if too_few(rows, study, "test"):
            yield Subgroup(name)
            continue
        yield Subgroup(
            name,
            rounded_rows(rows.patient_count, study.privacy),
            figures_of(rows, final[members], decision, study),
            round(float(rows.y.mean()), 2),
            round(float(final[members].mean()), 2),
        )


def groups_of(rows: Cohort) -> Iterator[tuple[str, Flags]]:
    """Names of the groups, and whose rows are in each."""
    for place, column in enumerate(rows.columns):
        values, feature = rows.X[:, place], column.feature
        if column.category is not None and _is(feature, "sex", SEX_WORDS):
            yield f"{feature.name}: {column.category}", values == 1
        elif feature.kind == "binary" and _is(feature, "sex", SEX_WORDS):
            yield f"{feature.name}: no", values == 0
            yield f"{feature.name}: yes", values == 1
        elif feature.range is not None and _is(feature, "age", AGE_WORDS):
            low, high = feature.range
            years = np.round(values.astype(np.float64) * (high - low) + low, 3)
            for first, after in zip(AGE_BANDS, (*AGE_BANDS[1:], np.inf), strict=True):
                label = f"{first} and over" if after == np.inf else f"{first} to {after - 1}"
                yield f"{feature.name}: {label}", (years >= first) & (years < after)


def _is(feature: Feature, what: str, words: set[str]) -> bool:
    if isinstance(feature.source, PatientFeature):
        return feature.source.patient == what
    return feature.source is None and feature.name.lower() in words
