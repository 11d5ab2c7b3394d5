"""Weights of trees: rounding, the two rules, the cap and the way out of zero by zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.choice.metrics import mcc
from spinney.choice.weigh import Cap, common_weights, mcc_weights, or_equal, tempered_weights

HOME = "ash"


def test_rounding_moves_no_tree_over_a_tau():
    rng = np.random.default_rng(0)
    total = rng.integers(0, 400, (5000, 4))
    taus = (0.0, 0.1, 0.2, 0.25)
    exact, plain, told = mcc(total), common_weights(total, 0.01), common_weights(total, 0.01, taus)
    moved = {tau: int(np.count_nonzero((plain > tau) != (exact > tau))) for tau in taus}
    assert min(moved.values()) > 0  # it would, without looking
    for tau in taus:
        assert np.array_equal(told > tau, exact > tau)
    assert np.abs(told - exact).max() <= 0.01 + 1e-9


def test_a_common_weight_is_the_correlation_rounded_to_a_hundredth():
    # (40 * 30 - 10 * 20) / sqrt(50 * 60 * 40 * 50) = 1000 / 2449.49 = 0.408
    assert common_weights(np.array([[40, 30, 10, 20]]), 0.01).tolist() == [0.41]


def test_one_patient_more_or_less_does_not_show_in_a_rounded_weight():
    total = np.array([[400, 300, 100, 200]])
    one_label_differs = total + np.array([[1, 0, 0, -1]])
    assert mcc(total) != mcc(one_label_differs)
    assert common_weights(total, 0.01) == common_weights(one_label_differs, 0.01)


@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 4), min_size=1, max_size=5), st.sampled_from([0.001, 0.01, 0.25]))
def test_common_weights_lie_on_the_grid_within_one_and_near_the_truth(rows, precision):
    counts = np.array(rows)
    weights = common_weights(counts, precision)
    assert np.all(np.abs(weights) <= 1)
    assert np.allclose(weights / precision, np.rint(weights / precision))
    assert np.all(np.abs(weights - mcc(counts)) <= precision / 2 + 1e-6)


def test_the_published_rule_drops_a_tree_at_or_below_tau():
    assert mcc_weights(np.array([0.21, 0.2, 0.19, -0.5]), 0.2).tolist() == [0.21, 0, 0, 0]


def test_a_tree_without_a_correlation_has_weight_zero_even_with_tau_zero():
    only_yes = np.array([[30, 0, 20, 0]])  # it says yes to everybody, so the denominator is 0
    assert mcc_weights(common_weights(only_yes, 0.01), 0.0).tolist() == [0.0]


def test_a_site_without_rows_trusts_the_others_and_one_of_400_rows_trusts_both_alike():
    common, own = np.array([0.5]), np.array([0.1])
    assert tempered_weights(common, own, 0) == pytest.approx(np.exp(8 * 0.5))
    assert tempered_weights(common, own, 400) == pytest.approx(np.exp(8 * 0.3))


def test_all_weights_zero_become_equal_weights_of_the_allowed_trees():
    allowed = np.array([True, True, False])
    assert or_equal(np.zeros(3), allowed).tolist() == [1, 1, 0]
    assert or_equal(np.array([0.0, 0.3, 0.9]), allowed).tolist() == [0, 0.3, 0]


def shares(weights, owners):
    return {site: weights[np.asarray(owners) == site].sum() / weights.sum() for site in {*owners}}


def test_a_heavy_site_is_held_at_the_cap_and_the_others_keep_their_proportions():
    owners = ("ash", "beech", "beech", "cedar")
    weights = Cap(owners, HOME, 0.5).on(np.array([1.0, 6.0, 3.0, 2.0]))
    assert weights.tolist() == [1, 2, 1, 2]


def test_the_own_trees_may_have_any_share():
    weights = np.array([9.0, 1.0])
    assert Cap(("ash", "beech"), HOME, 0.5).on(weights).tolist() == [9, 1]


def test_a_site_that_is_alone_with_its_trees_is_not_capped_to_nothing():
    assert Cap(("ash", "beech"), HOME, 0.3).on(np.array([0.0, 2.0])).tolist() == [0, 2]


@given(
    home=st.floats(1e-3, 1e3),
    others=st.lists(st.lists(st.floats(0, 1e3), min_size=1, max_size=3), min_size=1, max_size=6),
    largest=st.floats(0.05, 1),
)
def test_no_other_site_has_more_than_the_largest_share(home, others, largest):
    owners = (HOME, *(f"site{number}" for number, trees in enumerate(others) for _ in trees))
    before = np.array([home, *(weight for trees in others for weight in trees)])
    after = Cap(owners, HOME, largest).on(before)
    foreign = [share for site, share in shares(after, owners).items() if site != HOME]
    assert max(foreign) <= largest + 1e-9
    assert after[0] == home
    assert np.all(after <= before)


def test_a_site_that_alone_has_any_weight_keeps_it_although_others_are_listed():
    weights = np.array([0.35, 0.31, 0.0, 0.0, 0.0, 0.0])
    owners = ["ash", "ash", "birch", "birch", "cedar", "cedar"]
    np.testing.assert_array_equal(Cap(owners, "birch", 0.5).on(weights), weights)


def one_site_after_another(weights, owners, home, largest):
    """The cap as plainly as it can be said."""
    weights, names = weights.copy(), np.asarray(owners)
    sums = {site: float(weights[names == site].sum()) for site in {*owners}}
    heaviest = sorted((site for site in sums if site != home and sums[site] > 0), key=lambda site: (-sums[site], site))
    most = len(heaviest) if sums.get(home) else len(heaviest) - 1
    held, cap = 0, largest * weights.sum()
    while held < most and largest * (held + 1) < 1 and sums[heaviest[held]] > cap:
        held += 1
        cap = largest * weights[~np.isin(names, heaviest[:held])].sum() / (1 - largest * held)
    for site in heaviest[:held]:
        weights[names == site] *= cap / sums[site]
    return weights


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 40, 300]), st.sampled_from([0.02, 0.1, 0.3, 0.5, 1.0]))
def test_the_cap_gives_the_weights_of_one_site_after_another_to_the_last_digit(seed, most, largest):
    rng = np.random.default_rng(seed)
    owners = np.repeat([f"site{number}" for number in range(12)], rng.integers(1, most, 12))
    if seed % 2:
        owners = rng.permutation(owners)
    weights = np.exp(4 * rng.normal(size=len(owners))) * (rng.random(len(owners)) > 0.2)
    for home in ("site3", "elsewhere"):
        expected = one_site_after_another(weights, owners.tolist(), home, largest)
        assert Cap(owners.tolist(), home, largest).on(weights).tolist() == expected.tolist()
