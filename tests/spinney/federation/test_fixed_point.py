"""Real numbers in fixed point: exact sums, and none that can overflow."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from spinney.errors import Refused, RoundVoid
from spinney.federation.fixed_point import FEWEST_DIGITS, MOST_ROWS, FixedPoint


@pytest.mark.parametrize("rows", [1, 7, 1_000, 10**9, MOST_ROWS])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-4.0, 4.0), (-16.0, 16.0), (0.0, 1e-9), (-0.1, 300.0)])
def test_whatever_all_rows_add_up_to_fits_into_63_bits(low, high, rows):
    numbers = FixedPoint(low, high, rows)
    least, most = numbers.limits(rows)
    assert -(2**63) < least <= 0 <= most < 2**63
    assert numbers.places >= FEWEST_DIGITS


def test_the_sum_of_the_parts_is_that_of_exact_arithmetic_to_half_a_last_digit_per_site():
    rng = np.random.default_rng(3)
    rows, numbers = [50, 200, 1], FixedPoint(-4, 4, 300)
    parts = [rng.uniform(-4, 4, size=40) * many for many in rows]
    total = sum(numbers.whole(part, many) for part, many in zip(parts, rows, strict=True))
    exact = [sum((Fraction(part[cell]) for part in parts), Fraction(0)) for cell in range(40)]
    error = max(abs(Fraction(value) - one) for value, one in zip(numbers.real(total), exact, strict=True))
    assert 0 < error <= Fraction(len(rows), 2 ** (numbers.places + 1))


def test_so_many_rows_that_digits_are_short_have_fewer_of_them():
    assert FixedPoint(0, 1, 1_000).places == 36
    assert FixedPoint(0, 1, 2**30).places == 31
    assert FixedPoint(-16, 16, 10**9, digits=24).places == 24


def test_a_sum_beyond_what_the_rows_can_add_is_a_mistake_and_not_sent():
    numbers = FixedPoint(-1, 1, 100)
    assert numbers.whole(np.array([10.0, -10.0]), 10).tolist() == [10 << 36, -(10 << 36)]
    for wrong in (10.1, -11.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="larger than its rows allow"):
            numbers.whole(np.array([wrong]), 10)
    with pytest.raises(Refused, match="101 rows of one site are more than all have together"):
        numbers.whole(np.array([1.0]), 101)


@pytest.mark.parametrize("total", [101 << 36, -1, 2**62, -(2**63), 2**63 - 1])
def test_a_total_that_cannot_be_voids_the_sum(total):
    with pytest.raises(RoundVoid, match="1 of 2 sums are outside what 100 rows can add up to"):
        FixedPoint(0, 1, 100).real(np.array([5, total], dtype=np.int64))


def test_a_sum_over_no_rows_or_over_far_too_many_is_refused():
    for rows in (0, MOST_ROWS + 1):
        with pytest.raises(Refused, match="1 to"):
            FixedPoint(0, 1, rows)
    with pytest.raises(Refused, match="too few digits"):
        FixedPoint(0, 1e9, 10**8)
