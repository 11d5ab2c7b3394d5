"""Honest scores: of coefficients that have not seen a patient."""

from __future__ import annotations

import numpy as np

from spinney.choice.metrics import auroc
from spinney.linear import fit
from spinney.linear.design import Design
from spinney.linear.terms import LinearTerms
from spinney.linear.votes import common_fit, fitted, local_fit
from spinney.rows.moments import Moments
from spinney.rows.parts import folds
from tests.spinney.in_process import cohort, study


def sites(rows=150, many=3):
    wood = study()
    return wood, [cohort(wood, rows, seed) for seed in range(many)]


def terms_of(people, penalty=10.0, steps=6):
    design = Design.of(Moments.of_rows(people[0]), people[0].columns)
    at, total = np.zeros(len(design)), np.zeros(0)
    for _ in range(steps):
        total = sum(fit.gradient_sums(design.rows(one.X, one.present), one.y, at) for one in people)
        last, at = at, fit.stepped(at, total, penalty)
    return LinearTerms("stepwise", 450.0, penalty, design.places, design.mean, design.deviation, last, total)


def test_a_house_takes_a_fold_of_its_own_patients_off_the_common_sum():
    _, people = sites()
    home, terms = people[0], terms_of(people)
    fold = folds(home.y, home.patients, 5, 0)
    _, honest = common_fit(terms, home, fold, summed=True)
    for number in range(5):
        kept = [home.where(fold != number), *people[1:]]
        design = terms.design(4)
        b = np.zeros(4)
        for _ in range(8):
            total = sum(fit.gradient_sums(design.rows(one.X, one.present), one.y, b) for one in kept)
            b = fit.stepped(b, total, 10.0)
        out = home.where(fold == number)
        eta = design.rows(out.X, out.present) @ b
        shift = honest[fold == number] - eta
        assert np.ptp(shift) < 0.02  # one step from the final coefficients is nearly the fit without them


def test_scores_of_patients_that_were_seen_are_better_than_honest_ones():
    wood = study()
    home = cohort(wood, 60, concept=(0, 0, 0, 0))
    fold = folds(home.y, home.patients, 5, 0)
    seen, honest = local_fit(home, fold, 0.01)
    assert auroc(home.y, fit.sigmoid(honest)) < auroc(home.y, fit.sigmoid(seen.scores(home.X, home.present)))


def test_a_guest_s_rows_are_not_taken_off_a_sum_in_which_they_are_not():
    _, people = sites()
    terms, guest = terms_of(people[1:]), people[0]
    fold = folds(guest.y, guest.patients, 5, 0)
    common, honest = common_fit(terms, guest, fold, summed=False)
    shift = honest - common.design.rows(guest.X, guest.present) @ common.coefficients
    assert all(np.ptp(shift[fold == number]) < 1e-9 for number in range(5))


def test_a_house_alone_fits_what_all_sums_of_one_house_give():
    _, people = sites(many=1)
    home = people[0]
    fold = folds(home.y, home.patients, 5, 0)
    alone, _ = local_fit(home, fold, 10.0)
    np.testing.assert_allclose(alone.coefficients, terms_of(people, steps=9).coefficients(), atol=1e-6)


def test_without_columns_there_is_only_an_intercept():
    assert fitted(np.zeros((10, 0)), np.arange(10, dtype=np.int8) % 2, 1.0).shape == (0,)
