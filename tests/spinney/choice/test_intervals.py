"""Intervals against what they promise, against DeLong, and little bootstraps against the bootstrap of all patients."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef

from spinney.choice import intervals as module
from spinney.choice import metrics
from spinney.choice.intervals import auroc_variance, delong, intervals, paired, resampled
from spinney.choice.metrics import mcc, sensitivity, specificity
from tests.spinney.choice.scores import labelled_scores, patients

AUROC_ONLY = {"auroc": metrics.weighted_auroc}
EVERY_FIGURE = {
    **metrics.RANKING_AND_ERROR,
    "mcc": metrics.at_threshold(0.6, mcc),
    "sensitivity": metrics.at_threshold(0.6, sensitivity),
    "specificity": metrics.at_threshold(0.6, specificity),
}
IN_BLOCKS = 4500  # patients; a third is positive, so they are dealt into three blocks

few_and_many = pytest.mark.parametrize("number", [200, IN_BLOCKS])


def textbook_delong(y, *scores):
    """Covariance of AUROCs by comparing every positive with every negative, and each AUROC."""
    kernels = []
    for score in scores:
        above = np.subtract.outer(score[y], score[~y])
        kernels.append((above > 0) + 0.5 * (above == 0))
    by_positive = np.array([kernel.mean(axis=1) for kernel in kernels])
    by_negative = np.array([kernel.mean(axis=0) for kernel in kernels])
    covariance = np.cov(by_positive) / y.sum() + np.cov(by_negative) / (~y).sum()
    return [kernel.mean() for kernel in kernels], covariance


@given(labelled_scores(), st.integers(0, 2**32 - 1))
def test_delong_equals_the_textbook(rows, seed):
    y, a = rows
    y, a = np.append(y, [True, False]), np.append(a, [0.5, 0.5])
    b = np.random.default_rng(seed).integers(0, 8, len(y)) / 8
    (expected_a, expected_b), covariance = textbook_delong(y, a, b)
    area_a, area_b, error = delong(y, a, b)
    assert (area_a, area_b) == pytest.approx((expected_a, expected_b), abs=1e-12)
    assert error**2 == pytest.approx(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], abs=1e-12)
    assert auroc_variance(y, a) == pytest.approx(covariance[0, 0], abs=1e-12)


@few_and_many
def test_a_model_does_not_differ_from_itself(number):
    y, groups, (score,) = patients(seed=1, number=number)
    assert delong(y, score, score)[2] == 0
    assert set(paired(y, score, score, groups, resamples=50).values()) == {metrics.Figure(0.0, 0.0, 0.0)}


@few_and_many
def test_intervals_cover_the_truth_about_as_often_as_they_promise(number):
    truth = 0.5 * (1 + math.erf(1 / 2))  # two normals, one standard deviation apart
    covered = 0
    for seed in range(120):
        y, groups, (score,) = patients(seed, number)
        figure = intervals(y, {"model": score}, groups, AUROC_ONLY, resamples=200, seed=seed)["model"]["auroc"]
        covered += figure.low <= truth <= figure.high
    assert 0.88 <= covered / 120 <= 0.99


@few_and_many
def test_paired_intervals_of_equals_cover_zero_about_as_often_as_they_promise(number):
    covered = dict.fromkeys(EVERY_FIGURE, 0)
    for seed in range(120):
        y, groups, (a, b) = patients(seed, number, rows_each=1, models=2, shared=0.5)
        for name, gain in paired(y, a, b, groups, EVERY_FIGURE, resamples=200, seed=seed).items():
            covered[name] += gain.low <= 0 <= gain.high
    assert all(0.88 <= count / 120 <= 0.99 for count in covered.values()), covered


@few_and_many
def test_rows_of_one_patient_are_not_taken_for_independent(number):
    y, groups, (score,) = patients(seed=2, number=number, rows_each=5)
    by_patient, by_row = (
        intervals(y, {"model": score}, codes, AUROC_ONLY, seed=3)["model"]["auroc"]
        for codes in (groups, np.arange(len(y)))
    )
    assert by_patient.high - by_patient.low > 1.8 * (by_row.high - by_row.low)


def test_the_bootstrap_agrees_with_delong_where_each_patient_has_one_row():
    y, groups, (score,) = patients(seed=4, rows_each=1, number=600)
    figure = intervals(y, {"model": score}, groups, AUROC_ONLY, seed=5)["model"]["auroc"]
    assert (figure.high - figure.low) / (2 * 1.96) == pytest.approx(math.sqrt(auroc_variance(y, score)), rel=0.1)


def test_a_paired_interval_is_narrower_than_two_apart_for_models_that_agree():
    y, groups, (a, b) = patients(seed=6, models=2, shared=0.9)
    alone = intervals(y, {"a": a, "b": b}, groups, AUROC_ONLY)
    apart = math.hypot(*(each["auroc"].high - each["auroc"].low for each in alone.values()))
    together = paired(y, a, b, groups, AUROC_ONLY)["auroc"]
    assert together.high - together.low < 0.6 * apart
    assert together.value == pytest.approx(alone["a"]["auroc"].value - alone["b"]["auroc"].value)


def test_every_resample_has_both_classes_even_when_nearly_nobody_has_the_other():
    score = np.linspace(0, 1, 8)
    rare_positive, rare_negative = np.arange(8) == 5, np.arange(8) != 5
    pairs = np.repeat(np.arange(4), 2)  # every patient has a positive row, one has a negative one, too
    for y, groups in ((rare_positive, np.arange(8)), (rare_negative, np.arange(8)), (rare_negative, pairs)):
        figure = intervals(y, {"model": score}, groups, AUROC_ONLY, resamples=500)["model"]["auroc"]
        assert np.isfinite([figure.low, figure.high]).all()


@few_and_many
def test_intervals_repeat_for_a_seed_and_change_with_it(number):
    y, groups, (score,) = patients(seed=7, number=number)
    first, again, other = (intervals(y, {"model": score}, groups, resamples=100, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


@few_and_many
def test_patient_codes_are_only_names(number):
    y, groups, (score,) = patients(seed=8, number=number)
    assert intervals(y, {"m": score}, groups, resamples=50) == intervals(y, {"m": score}, groups * 7 + 3, resamples=50)


def test_a_decision_can_be_resampled_like_a_ranking():
    y, groups, (score,) = patients(seed=9)
    wanted = {"mcc": metrics.at_threshold(0.6, mcc), "sensitivity": metrics.at_threshold(0.6, sensitivity)}
    figures = intervals(y, {"model": score}, groups, wanted)["model"]
    assert figures["mcc"].value == pytest.approx(matthews_corrcoef(y, score >= 0.6))
    assert figures["sensitivity"].value == pytest.approx(np.mean(score[y] >= 0.6))
    assert all(figure.low < figure.value < figure.high for figure in figures.values())


def test_a_higher_level_gives_a_wider_interval():
    y, groups, (score,) = patients(seed=10)
    narrow, wide = (
        intervals(y, {"model": score}, groups, AUROC_ONLY, level=level)["model"]["auroc"] for level in (0.8, 0.99)
    )
    assert wide.low < narrow.low < narrow.high < wide.high


def test_a_thousand_resamples_of_five_thousand_rows_take_seconds():
    y, groups, scores = patients(seed=11, number=2500, models=3)
    started = time.process_time()
    intervals(y, dict(zip("abc", scores, strict=True)), groups, AUROC_ONLY)
    assert time.process_time() - started < 5


# ---------------------------------------------------------------------------------------------------------------
# Many patients


def width(figure):
    return figure.high - figure.low


def test_little_bootstraps_are_as_wide_as_the_bootstrap_of_all_patients(monkeypatch):
    y, groups, (a, b) = patients(seed=15, number=IN_BLOCKS, rows_each=1, models=2, shared=0.5)

    def figures():
        gains = paired(y, a, b, groups, EVERY_FIGURE, resamples=4000).values()
        return [*gains, *intervals(y, {"a": a}, groups, EVERY_FIGURE, resamples=4000)["a"].values()]

    little = figures()
    monkeypatch.setattr(module, "LITTLE", len(y))
    whole = figures()
    assert [one.value for one in little] == [one.value for one in whole]
    assert [width(one) for one in little] == pytest.approx([width(one) for one in whole], rel=0.06)


def test_little_bootstraps_lie_around_the_value_of_all_patients():
    y, groups, (score,) = patients(seed=16, number=IN_BLOCKS)
    for figure in intervals(y, {"model": score}, groups, EVERY_FIGURE)["model"].values():
        assert (figure.low + figure.high) / 2 == pytest.approx(figure.value, abs=0.1 * width(figure))


def test_the_interval_of_a_nearly_perfect_model_stays_within_the_range_of_its_figure():
    y = np.arange(4000) % 2 == 0
    right = np.arange(4000) >= 6  # three patients of each class are taken for the other
    called = np.where(right, y, ~y).astype(float)
    figures = intervals(y, {"m": called}, np.arange(4000), EVERY_FIGURE, resamples=300)["m"]
    assert all(0 <= figure.low <= figure.value <= figure.high <= 1 for figure in figures.values())


def test_patients_who_were_sick_once_and_well_once_are_drawn_whole_from_blocks_too(monkeypatch):
    y, groups, (score,) = patients(seed=22, number=IN_BLOCKS)
    y = y & (np.arange(len(y)) % 4 != 1)  # of every other sick patient the second stay went well
    little = intervals(y, {"m": score}, groups, AUROC_ONLY, resamples=2000)["m"]["auroc"]
    monkeypatch.setattr(module, "LITTLE", len(y))
    whole = intervals(y, {"m": score}, groups, AUROC_ONLY, resamples=2000)["m"]["auroc"]
    assert width(little) == pytest.approx(width(whole), rel=0.1)


def test_the_intervals_of_many_patients_agree_with_delong():
    y, groups, (a, b) = patients(seed=17, number=5 * IN_BLOCKS, rows_each=1, models=2, shared=0.5)
    alone = intervals(y, {"a": a}, groups, AUROC_ONLY, resamples=2000)["a"]["auroc"]
    together = paired(y, a, b, groups, AUROC_ONLY, resamples=2000)["auroc"]
    assert width(alone) / (2 * 1.96) == pytest.approx(math.sqrt(auroc_variance(y, a)), rel=0.06)
    assert width(together) / (2 * 1.96) == pytest.approx(delong(y, a, b)[2], rel=0.06)


def test_blocks_begin_where_each_gets_five_hundred_patients_of_the_rarer_class(monkeypatch):
    too_few, enough = (patients(seed=18, number=number, rows_each=1) for number in (2999, 3000))
    before = [intervals(y, {"m": score}, groups, resamples=50) for y, groups, (score,) in (too_few, enough)]
    monkeypatch.setattr(module, "LITTLE", 10_000)
    after = [intervals(y, {"m": score}, groups, resamples=50) for y, groups, (score,) in (too_few, enough)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False]


def test_more_patients_cost_no_more_per_resample():
    def cells(number):
        worked_on = []
        y, groups, (score,) = patients(seed=19, number=number, rows_each=1)

        def counted(truth, scores, weights):
            worked_on.append(weights.size)
            return metrics.weighted_brier(truth, scores, weights)

        intervals(y, {"m": score}, groups, {"brier": counted}, resamples=500)
        return sum(worked_on) - 2 * number  # the value itself is of all rows, and of those of every block

    assert cells(24_000) == pytest.approx(cells(6000), rel=0.01)


def test_every_block_has_a_say_and_the_resamples_are_as_many_as_asked_for():
    drawn = []
    y, groups, (score,) = patients(seed=20, number=IN_BLOCKS)

    def told(truth, scores, weights):
        drawn.append(len(weights))
        return metrics.weighted_brier(truth, scores, weights)

    intervals(y, {"m": score}, groups, {"brier": told}, resamples=101)
    assert drawn == [1, 1, 33, 1, 34, 1, 34]


def test_a_small_test_part_keeps_the_figures_that_it_always_had():
    y, groups, (a, b) = patients(seed=21, models=2)
    figure, gain = intervals(y, {"a": a}, groups)["a"]["auprc"], paired(y, a, b, groups)["auroc"]
    assert (figure.value, figure.low, figure.high) == pytest.approx(
        (0.5459185925164775, 0.45432867217829526, 0.6622050325871062), abs=1e-14
    )
    assert (gain.value, gain.low, gain.high) == pytest.approx(
        (-0.07044323835368616, -0.16499886928991397, 0.0319142921754862), abs=1e-14
    )


@few_and_many
def test_figures_drawn_together_are_those_that_are_drawn_alone(number):
    y, groups, (a, b) = patients(seed=22, number=number, models=2)
    together = resampled(y, {"a": (a, EVERY_FIGURE), "b": (b, metrics.RANKING_AND_ERROR)}, groups, 200, seed=4)
    alone = intervals(y, {"a": a}, groups, EVERY_FIGURE, resamples=200, seed=4)["a"]
    gain = paired(y, a, b, groups, resamples=200, seed=4)
    assert {name: drawn.figure() for name, drawn in together["a"].items()} == alone
    assert {name: (together["a"][name] - together["b"][name]).figure() for name in together["b"]} == gain


def test_all_that_is_read_off_the_curves_shares_them(monkeypatch):
    y, groups, (score,) = patients(seed=23)
    drawn = []

    def counted(truth, scores, weights):
        drawn.append(len(weights))
        return metrics.curves(truth, scores, weights)

    monkeypatch.setattr(module, "curves", counted)
    apart = {name: intervals(y, {"m": score}, groups, {name: metric}) for name, metric in EVERY_FIGURE.items()}
    for_each, drawn[:] = len(drawn), []
    together = intervals(y, {"m": score}, groups, EVERY_FIGURE)
    assert len(drawn) * 2 == for_each
    assert together["m"] == {name: one["m"][name] for name, one in apart.items()}
