"""Logistic regression by sums is scikit-learn's on pooled rows, for any split of rows among sites."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from spinney.linear import fit


def rows(seed=0, many=400, columns=6, base=-0.5):
    rng = np.random.default_rng(seed)
    Z = np.clip(rng.normal(size=(many, columns)), -4, 4)
    y = (rng.random(many) < fit.sigmoid(Z @ rng.normal(size=columns) * 0.7 + base)).astype(np.int8)
    return Z, y


def together(Z, y, site, penalty, steps=10):
    b = np.zeros(Z.shape[1])
    for _ in range(steps):
        total = sum(fit.gradient_sums(Z[site == one], y[site == one], b) for one in np.unique(site))
        b = fit.stepped(b, total, penalty)
    return b


def pooled(Z, y, site, penalty):
    """The reference: an unpenalised dummy per site, written as one so large that its penalty is nothing."""
    dummies = (site[:, None] == np.unique(site)) * 1e4
    model = LogisticRegression(fit_intercept=False, C=1 / penalty, solver="newton-cholesky", tol=1e-12, max_iter=10_000)
    return model.fit(np.hstack([Z, dummies]), y).coef_[0, : Z.shape[1]]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([1.0, 10.0, 40.0]), st.floats(-2, 1))
def test_sums_of_any_split_of_rows_give_the_pooled_regression(seed, sites, penalty, base):
    Z, y = rows(seed, base=base)
    site = np.random.default_rng(seed).choice(
        sites, size=len(y), p=np.random.default_rng(seed + 1).dirichlet([2] * sites)
    )
    mixed = [one for one in np.unique(site) if 0 < y[site == one].sum() < (site == one).sum()]
    kept = np.isin(site, mixed)  # a house with one class adds nothing, and so does its dummy
    np.testing.assert_allclose(together(Z, y, site, penalty), pooled(Z[kept], y[kept], site[kept], penalty), atol=1e-6)


def test_a_house_with_one_class_or_nobody_adds_zeros():
    Z, y = rows()
    for outcome in (0, 1):
        assert not fit.gradient_sums(Z, np.full_like(y, outcome), np.ones(6)).any()
        assert not fit.least_squares_sums(Z, np.full_like(y, outcome)).any()
    assert not fit.gradient_sums(Z[:0], y[:0], np.zeros(6)).any()


def test_no_row_adds_more_than_the_terms_of_the_sum_say():
    rng = np.random.default_rng(4)
    for many in (2, 3, 10, 200):
        Z, y = np.sign(rng.normal(size=(many, 5))) * 4, np.arange(many) % 2
        for b in (np.zeros(5), rng.normal(size=5) * 3):
            assert np.abs(fit.gradient_sums(Z, y, b)).max() <= fit.MOST_PER_ROW * many
        assert np.abs(fit.least_squares_sums(Z, y)).max() <= fit.MOST_PER_ROW_LEAST_SQUARES * many


def test_the_intercept_makes_probabilities_add_up_to_outcomes_also_far_out():
    rng = np.random.default_rng(1)
    for scale, base in ((0.1, 0.0), (5.0, -4.0), (20.0, 10.0)):
        eta = rng.normal(size=300) * scale + base
        y = (rng.random(300) < 0.2).astype(np.int8)
        assert fit.sigmoid(eta + fit.intercept(eta, y)).sum() == pytest.approx(y.sum(), abs=1e-7)
    for one_class in (np.zeros(40, np.int8), np.ones(40, np.int8)):
        assert np.isfinite(fit.intercept(rng.normal(size=40), one_class))


def test_one_round_of_sums_ranks_as_linear_discriminant_analysis_does():
    Z, y = rows(3, many=3000)
    b = fit.least_squares(fit.least_squares_sums(Z, y), 6, len(y), penalty=1e-6)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(Z, y).coef_[0]
    np.testing.assert_allclose(b / np.linalg.norm(b), lda / np.linalg.norm(lda), atol=1e-6)
    assert 0.7 < np.linalg.norm(b) / np.linalg.norm(together(Z, y, np.zeros(len(y)), 1e-6)) < 1.4


def test_sums_in_blocks_are_those_of_all_rows_at_once():
    Z, y = rows(5, many=100_000 // 6)
    b = np.full(6, 0.3)
    eta = Z @ b
    p = fit.sigmoid(eta + fit.intercept(eta, y))
    w = p * (1 - p)
    centred = Z - (w @ Z) / w.sum()
    found = fit.gradient_sums(Z, y, b)
    np.testing.assert_allclose(found[:6], Z.T @ (p - y), atol=1e-8)
    np.testing.assert_allclose(fit.full(found[6:], 6), (centred * w[:, None]).T @ centred, atol=1e-8)


def test_coefficients_are_rounded_and_held():
    assert np.array_equal(fit.rounded(np.array([0.1])), np.rint(np.array([0.1]) * 2**30) / 2**30)
    wild = np.concatenate([[1e9], [1e-9]])
    assert abs(fit.stepped(np.zeros(1), wild, 1e-9)[0]) == fit.FARTHEST_COEFFICIENT
