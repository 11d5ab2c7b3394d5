"""Who leads whom on the same rows, and by how much more than noise: against scikit-learn and plain resampling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, matthews_corrcoef, roc_auc_score

from spinney.choice.intervals import delong
from spinney.choice.judge import Judge
from spinney.rows.cohort import Cohort
from tests.spinney.in_process import cohort, study

ROWS = 300


@pytest.fixture(scope="module")
def rows() -> Cohort:
    return cohort(study(), ROWS)


@pytest.fixture(scope="module")
def votes(rows: Cohort) -> tuple[np.ndarray, np.ndarray]:
    """A model that knows something, and one that knows less."""
    rng = np.random.default_rng(3)
    odds = rows.X @ np.array([4.0, 2.0, 0.0, 0.0])
    good, fair = (odds + noise * rng.normal(size=ROWS) for noise in (0.5, 2.5))
    return tuple((one - one.min()) / (one.max() - one.min()) for one in (good, fair))  # type: ignore[return-value]


def test_quality_is_the_study_s_metric(rows: Cohort, votes):
    good, _ = votes
    assert Judge("auroc", 0).quality(rows, good) == pytest.approx(roc_auc_score(rows.y, good))
    assert Judge("auprc", 0).quality(rows, good) == pytest.approx(average_precision_score(rows.y, good))
    best = max(matthews_corrcoef(rows.y, good >= cut) for cut in np.unique(good))
    assert Judge("mcc", 0).quality(rows, good) == pytest.approx(best)


def test_the_judge_goes_by_the_words_of_the_study():
    wood = study(choice={"metric": "mcc"}, split={"seed": 11})
    assert Judge.of(wood) == Judge("mcc", 11)


@pytest.mark.parametrize("metric", ["auroc", "auprc", "mcc"])
def test_a_lead_is_the_difference_of_qualities_and_turns_round_with_the_models(rows: Cohort, votes, metric: str):
    judge = Judge(metric, 0)
    lead, error = judge.lead(rows, *votes)
    assert lead == pytest.approx(judge.quality(rows, votes[0]) - judge.quality(rows, votes[1]))
    assert lead > 2 * error > 0
    assert judge.lead(rows, *votes[::-1])[0] == pytest.approx(-lead)


def test_with_a_row_per_patient_the_error_of_a_lead_is_delong_s(rows: Cohort, votes):
    assert Judge("auroc", 0).lead(rows, *votes)[1] == delong(rows.y, *votes)[2]


def test_rows_of_one_patient_are_no_new_evidence(rows: Cohort, votes):
    thrice = replace(rows, patients=np.arange(ROWS) // 3)
    same = np.repeat(np.arange(0, ROWS, 3), 3)  # everybody's three rows say the same
    said = [one[same] for one in votes]
    clustered = Judge("auroc", 0).lead(replace(thrice.at(same), patients=thrice.patients), *said)[1]
    assert clustered > 1.4 * delong(rows.y[same], *said)[2]


@pytest.mark.parametrize("metric", ["auroc", "mcc"])
def test_the_error_of_a_quality_is_the_spread_of_resampled_patients(rows: Cohort, votes, metric: str):
    judge, rng = Judge(metric, 0), np.random.default_rng(5)
    drawn = [judge.quality(rows.at(places), votes[0][places]) for places in rng.integers(0, ROWS, (400, ROWS))]
    assert judge.error(rows, votes[0]) == pytest.approx(np.std(drawn), rel=0.4)
