"""Noise in shares: the sum of the shares is held against the exact distribution, and so are planted faults."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from spinney.federation import noise
from spinney.federation.noise import Ints, below, geometric, happens_exp, noise_share, polya, spread_of, stream

DRAWS = 10_000
BY_CHANCE = 1e-3
"""Seeds are fixed: these tests pass or fail for ever. A right sampler fails one of so many seeds."""
RATE = Fraction(1, 4)


def two_sided(values: Ints, rate: float) -> float:
    """How likely values as far as these from the two-sided geometric distribution are: chi-square, tails together."""
    alpha = np.exp(-rate)
    edge = int(np.ceil(np.log(len(values) / 50) / rate))
    within = np.arange(-edge, edge + 1)
    expected = (1 - alpha) / (1 + alpha) * alpha ** np.abs(within)
    tail = (1 - expected.sum()) / 2
    observed = np.bincount(np.clip(values, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return float(stats.chisquare(observed, len(values) * np.concatenate([[tail], expected, [tail]])).pvalue)


def summed(share: Callable[[int, int], Ints], houses: int) -> Ints:
    """What the sum of some houses' shares is."""
    return np.sum([share(DRAWS, house) for house in range(houses)], axis=0, dtype=np.int64)


def of_house(house: int) -> noise.Source:
    return stream(b"house %d" % house)


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
def test_the_shares_of_as_many_houses_as_they_are_made_for_add_up_to_two_sided_geometric_noise(shares):
    total = summed(lambda cells, house: noise_share(cells, RATE, shares, of_house(house)), shares)
    assert two_sided(total, float(RATE)) > BY_CHANCE


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(3, 7), Fraction(2)])
def test_it_is_the_noise_of_the_rate_that_was_asked_for(rate):
    total = summed(lambda cells, house: noise_share(cells, rate, 3, of_house(house)), 3)
    assert two_sided(total, float(rate)) > BY_CHANCE


@pytest.mark.parametrize(
    ("fault", "share"),
    [
        ("one share too few", lambda cells, house: noise_share(cells, RATE, 4, of_house(house))),
        ("another rate", lambda cells, house: noise_share(cells, RATE * Fraction(11, 10), 3, of_house(house))),
        ("the same noise twice", lambda cells, _: noise_share(cells, RATE, 3, of_house(0))),
    ],
)
def test_the_check_finds_planted_faults(fault, share):
    assert two_sided(summed(share, 3), float(RATE)) < BY_CHANCE, fault


def test_rounded_laplace_noise_is_something_else():
    def rounded(cells: int, house: int) -> Ints:
        gamma = np.random.default_rng(house).gamma(1 / 3, 1, (2, cells))
        return np.rint(gamma[0] - gamma[1]).astype(np.int64)

    assert two_sided(summed(rounded, 3), 1.0) < BY_CHANCE
    assert two_sided(summed(lambda cells, house: noise_share(cells, Fraction(1), 3, of_house(house)), 3), 1.0) > 0.01


def test_more_houses_than_needed_add_noise_and_never_take_any_away():
    total = summed(lambda cells, house: noise_share(cells, RATE, 3, of_house(house)), 5)
    assert np.std(total) == pytest.approx(spread_of(RATE, 3, 5), rel=0.05)
    assert spread_of(RATE, 3, 5) > spread_of(RATE, 3, 3)


def test_a_share_is_negative_binomial_with_a_part_of_a_success():
    values = polya(DRAWS, RATE, 3, stream(b"polya"))
    edge = 25
    expected = stats.nbinom.pmf(np.arange(edge), 1 / 3, 1 - np.exp(-float(RATE)))
    observed = np.bincount(np.minimum(values, edge), minlength=edge + 1)
    expected = DRAWS * np.append(expected, 1 - expected.sum())
    assert stats.chisquare(observed, expected).pvalue > BY_CHANCE


def test_the_probability_of_exp_is_that_of_the_series():
    for numerator, denominator in ((0, 1), (1, 1), (1, 3), (5, 7)):
        happened = happens_exp(np.full(DRAWS, numerator), denominator, stream(b"exp %d" % numerator))
        wanted = np.exp(-numerator / denominator)
        assert abs(happened.mean() - wanted) <= 4 * np.sqrt(wanted * (1 - wanted) / DRAWS)


def test_numbers_below_a_bound_are_all_as_likely():
    for bound in (3, 5, 6, 100):
        observed = np.bincount(below(bound, DRAWS, stream(b"below %d" % bound)), minlength=bound)
        assert len(observed) == bound
        assert stats.chisquare(observed).pvalue > BY_CHANCE
    assert not below(1, 10, stream(b"one")).any()


def test_what_a_share_is_made_of_is_exact_not_only_likely():
    """Of all 3-bit numbers, those below 5 are kept as they are; a remainder would make 0, 1 and 2 likelier."""
    every = np.arange(8, dtype="<u1").tobytes()
    rest = iter([every, np.arange(3, dtype="<u1").tobytes()])
    assert [*below(5, 8, lambda _: next(rest))] == [0, 1, 2, 3, 4, 0, 1, 2]


def test_the_chance_that_a_number_is_kept_is_the_one_of_the_formula():
    """1/n (1/n + 1) ... / k! by fractions, against the binomial coefficient that it generalises."""
    for shares, k in ((2, 3), (4, 5)):
        product = Fraction(1)
        for factor in range(1, k + 1):
            product *= Fraction((factor - 1) * shares + 1, factor * shares)
        kept = noise._kept(np.full(DRAWS, k), shares, stream(b"kept %d" % k))
        spread = np.sqrt(float(product * (1 - product)) / DRAWS)
        assert abs(kept.mean() - float(product)) <= 4 * spread
    assert Fraction(1, 2) * Fraction(3, 4) * Fraction(5, 6) == Fraction(comb(6, 3), 4**3)


def test_a_rate_that_is_nothing_is_refused():
    for rate in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="a rate of noise is at least"):
            geometric(1, rate, noise.secret)
    with pytest.raises(ValueError, match="at least one share"):
        polya(1, RATE, 0, noise.secret)


def test_nobody_can_foretell_it():
    assert noise.secret is __import__("secrets").token_bytes
    first, again = (noise_share(1000, Fraction(1, 50), 3) for _ in range(2))
    assert np.mean(first == again) < 0.5


def test_a_stream_is_the_same_for_the_same_words_and_never_repeats_itself():
    one, again, other = stream(b"a"), stream(b"a"), stream(b"b")
    first, second = one(64), one(64)
    assert (first, second) == (again(64), again(64))
    assert len({first, second, other(64)}) == 3
