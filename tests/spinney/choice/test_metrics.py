"""Figures against scikit-learn and against slow textbook code."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, matthews_corrcoef, roc_auc_score

from spinney.choice import metrics
from spinney.choice.intervals import auroc_variance, delong, intervals
from spinney.choice.metrics import (
    at_base_rate,
    auprc,
    auroc,
    best_threshold,
    brier,
    calibrated,
    calibration,
    confusion,
    mcc,
    platt,
    sensitivity,
    specificity,
)
from tests.spinney.choice.scores import labelled_scores, patients


@given(labelled_scores())
def test_ranking_figures_and_brier_equal_scikit_learn(rows):
    y, score = rows
    assert auroc(y, score) == pytest.approx(roc_auc_score(y, score), abs=1e-12)
    assert auprc(y, score) == pytest.approx(average_precision_score(y, score), abs=1e-12)
    assert brier(y, score) == pytest.approx(brier_score_loss(y, score), abs=1e-12)


@given(labelled_scores(), st.integers(0, 2**32 - 1))
def test_weighted_figures_equal_scikit_learn_for_every_weight_vector(rows, seed):
    y, score = rows
    weights = np.random.default_rng(seed).integers(0, 4, (3, len(y))).astype(float)
    weights[:, [np.argmax(y), np.argmin(y)]] += 1
    theirs = {"auroc": roc_auc_score, "auprc": average_precision_score, "brier": brier_score_loss}
    for name, ours in metrics.RANKING_AND_ERROR.items():
        expected = [theirs[name](y, score, sample_weight=each) for each in weights]
        assert ours(y, score, weights) == pytest.approx(expected, abs=1e-12)


@given(labelled_scores(), st.floats(0, 1))
def test_mcc_of_a_confusion_equals_scikit_learn(rows, threshold):
    y, score = rows
    called = score >= threshold
    assert float(mcc(confusion(y, called))) == pytest.approx(matthews_corrcoef(y, called), abs=1e-12)


@given(st.lists(st.integers(0, 2**50), min_size=4, max_size=4))
def test_mcc_of_counts_far_beyond_int64_products_is_exact_to_the_last_digits(counts):
    tp, tn, fp, fn = counts
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    above = tp * tn - fp * fn
    expected = math.copysign(math.sqrt(Fraction(above * above, below)), above) if below else 0.0
    assert float(mcc(np.array(counts))) == pytest.approx(expected, abs=1e-14)


def test_mcc_keeps_the_shape_of_the_trees():
    counts = np.random.default_rng(0).integers(0, 50, (3, 7, 4))
    assert mcc(counts).shape == (3, 7)
    assert mcc(counts)[2, 5] == mcc(counts[2, 5])


def test_sensitivity_and_specificity_of_a_confusion():
    counts = confusion([1, 1, 1, 0, 0], [True, True, False, False, True])
    assert counts == (2, 1, 1, 1)
    assert float(sensitivity(counts)) == pytest.approx(2 / 3)
    assert float(specificity(counts)) == pytest.approx(1 / 2)


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1], []])
def test_one_class_gives_nan_where_both_are_needed(y):
    score = np.linspace(0.1, 0.9, len(y))
    areas = [auroc(y, score), auprc(y, score), *delong(y, score, score), auroc_variance(y, score)]
    thresholds = [best_threshold(y, score, aim) for aim in ("mcc", "youden", "sensitivity")]
    fit = calibration(y, score)
    assert np.isnan([*areas, *thresholds, fit.slope, fit.intercept]).all()
    figure = intervals(y, {"model": score}, np.arange(len(y)), resamples=20)["model"]["auroc"]
    assert np.isnan([figure.value, figure.low, figure.high]).all()


def test_brier_needs_only_one_class_and_mcc_of_one_class_is_zero():
    assert brier([1, 1], [0.5, 1.0]) == pytest.approx(0.125)
    assert float(mcc(confusion([1, 1], [True, False]))) == 0
    assert np.isnan(sensitivity((0, 5, 2, 0)))
    assert np.isnan(specificity((5, 0, 0, 2)))


def test_scores_that_are_not_numbers_or_too_few_are_refused():
    with pytest.raises(ValueError, match="1 of 2 scores"):
        auroc([0, 1], [0.5, np.nan])
    with pytest.raises(ValueError, match="one label and one score per row"):
        auroc([0, 1], [0.5])
    with pytest.raises(ValueError, match="one patient code per row"):
        intervals([0, 1], {"model": [0.1, 0.2]}, [0])


def test_a_calibrated_score_keeps_its_meaning():
    rng = np.random.default_rng(12)
    p = rng.uniform(0.02, 0.98, 20_000)
    y = rng.random(20_000) < p
    assert platt(p, y) == pytest.approx((1, 0), abs=0.05)
    fit = calibration(y, p)
    assert (fit.slope, fit.intercept) == pytest.approx((1, 0), abs=0.05)
    assert fit.expected_error < 0.02


def test_the_calibration_slope_equals_unpenalised_logistic_regression():
    y, _, (score,) = patients(seed=13)
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(np.log(score / (1 - score))[:, None], y)
    fit = calibration(y, score)
    assert (fit.slope, fit.intercept) == pytest.approx((theirs.coef_[0, 0], theirs.intercept_[0]), abs=1e-5)


def test_platt_heals_a_score_that_is_too_sure_of_itself():
    rng = np.random.default_rng(14)
    p = rng.uniform(0.05, 0.95, 5000)
    y = rng.random(5000) < p
    too_sure = calibrated(p, 3.0, 0.5)
    slope, intercept = platt(too_sure, y)
    assert slope == pytest.approx(1 / 3, abs=0.05)
    healed = calibrated(too_sure, slope, intercept)
    assert brier(y, healed) < brier(y, too_sure)
    assert auroc(y, healed) == pytest.approx(auroc(y, too_sure))


@given(st.integers(1, 50), st.integers(1, 50), st.floats(0, 0.49), st.floats(0.51, 1))
def test_platt_stays_finite_where_the_score_separates_the_classes(negatives, positives, low, high):
    score, y = np.repeat([low, high], [negatives, positives]), np.repeat([0, 1], [negatives, positives])
    healed = calibrated(score, *platt(score, y))
    expected = np.repeat([1 / (negatives + 2), (positives + 1) / (positives + 2)], [negatives, positives])
    assert healed == pytest.approx(expected, abs=1e-5)
    assert np.isnan(calibration(y, score).slope)


@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 1000))
def test_a_score_at_the_base_rate_is_on_average_as_high_as_outcomes_are_frequent(negatives, positives, seed):
    y, score = np.repeat([0, 1], [negatives, positives]), np.random.default_rng(seed).random(negatives + positives)
    slope, intercept = at_base_rate(score, y)
    moved = calibrated(score, slope, intercept)
    wanted = (positives * (positives + 1) / (positives + 2) + negatives / (negatives + 2)) / len(y)
    assert (slope, moved.mean()) == (1.0, pytest.approx(wanted))
    assert auroc(y, moved) == pytest.approx(auroc(y, score), nan_ok=True)


def test_platt_of_one_class_is_a_constant_inside_zero_and_one():
    slope, intercept = platt([0.1, 0.4, 0.8], [1, 1, 1])
    assert calibrated([0.0, 0.5, 1.0], slope, intercept) == pytest.approx([0.8] * 3)


def test_bins_hold_about_equal_numbers_and_never_part_equal_predictions():
    p = np.repeat([0.1, 0.3, 0.8], [60, 20, 20])
    y = np.concatenate([np.arange(60) < 12, np.arange(20) < 5, np.arange(20) < 15])
    table = calibration(y, p)
    assert [(each.predicted, each.observed, each.rows) for each in table.bins] == [
        pytest.approx((0.1, 0.2, 60)),
        pytest.approx((0.3, 0.25, 20)),
        pytest.approx((0.8, 0.75, 20)),
    ]
    assert table.expected_error == pytest.approx(0.6 * 0.1 + 0.2 * 0.05 + 0.2 * 0.05)
    assert {each.rows for each in calibration(np.arange(100) % 2, np.arange(100) / 100).bins} == {10}


@given(labelled_scores(), st.sampled_from(["mcc", "youden"]))
def test_no_other_threshold_serves_the_aim_better(rows, aim):
    y, score = rows

    def merit(threshold):
        counts = confusion(y, score >= threshold)
        return float(mcc(counts) if aim == "mcc" else sensitivity(counts) + specificity(counts))

    best = best_threshold(y, score, aim)
    assert merit(best) == pytest.approx(max(merit(each) for each in score), abs=1e-12)
    assert all(
        merit(each) < merit(best) - 1e-13
        for each in score
        if each > best and (score >= each).sum() != (score >= best).sum()
    )


@given(labelled_scores(), st.floats(0.05, 0.99))
def test_the_highest_threshold_that_finds_the_wanted_share_is_taken(rows, wanted):
    y, score = rows
    best = best_threshold(y, score, "sensitivity", wanted)
    found = np.mean(score[y] >= best)
    assert found >= wanted - 1e-9
    called = score[score >= best]
    called_by_next = called[called > called.min()]
    assert len(called_by_next) == 0 or np.mean(score[y] >= called_by_next.min()) < wanted


def test_a_wanted_share_is_met_exactly_despite_rounding():
    y = np.array([True] * 100 + [False])
    score = np.append(np.arange(1, 101) / 100, 0.001)
    for met in range(1, 101):  # 0.07 * 100 is a little more than 7
        assert np.sum(score[y] >= best_threshold(y, score, "sensitivity", met / 100)) == met


def test_a_threshold_lies_halfway_between_scores_and_the_lowest_score_calls_everybody():
    assert best_threshold([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], "mcc") == pytest.approx(0.4)
    assert best_threshold([1, 0], [0.1, 0.2], "youden") == 0.1
    above = np.nextafter(0.5, 1)
    assert best_threshold([0, 1], [0.5, above], "mcc") == above


def test_among_equal_thresholds_the_one_with_the_fewest_alarms_wins():
    # 1 of 2 positives without an alarm, or both with every second negative: Youden's index is 0.5 either way
    assert best_threshold([1, 0, 1, 0], [0.9, 0.7, 0.5, 0.3], "youden") == pytest.approx(0.8)
