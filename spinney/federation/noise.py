"""Discrete noise in shares: each house adds one, and the sum of enough of them hides any one patient in a count.

A two-sided geometric number, P(k) proportional to exp(-rate |k|), is the difference of two geometric ones, and a
geometric one is the sum of `shares` negative-binomial (Polya) ones with a share of a success each. So each house draws
the difference of two Polya numbers, and the sum of `shares` houses has exactly the noise that one trusted centre would
add. More houses than that add more noise, never less.

Nothing is rounded: rates are fractions, all draws are whole numbers from whole numbers, and every choice is made by
comparing a uniform whole number with another (Canonne, Kamath and Steinke 2020 for exp; rejection for the rest).
Floating point would leave holes in the noise by which a count can be told.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Source = Callable[[int], bytes]
"""So many bytes that nobody can foretell."""

LARGEST_BOUND = 2**62
MOST_AT_ONCE = 1 << 17
SMALLEST_RATE = Fraction(1, 2**32)

secret: Source = secrets.token_bytes


def stream(words: bytes) -> Source:
    """The same bytes for the same words, without end: for what everybody shall draw alike."""
    count = 0

    def draw(size: int) -> bytes:
        nonlocal count
        count += 1
        return hashlib.shake_256(words + count.to_bytes(8, "big")).digest(size)

    return draw


def noise_share(cells: int, rate: Fraction, shares: int, source: Source = secret) -> Ints:
    """One house's share of two-sided geometric noise: `shares` of these add up to P(k) ~ exp(-rate |k|), exactly."""
    return polya(cells, rate, shares, source) - polya(cells, rate, shares, source)


def spread_of(rate: Fraction, shares: int, houses: int) -> float:
    """Standard deviation of the noise in a sum of so many houses."""
    alpha = np.exp(-float(rate))
    return float(np.sqrt(2 * alpha / (1 - alpha) ** 2 * houses / shares))


def polya(cells: int, rate: Fraction, shares: int, source: Source) -> Ints:
    """Negative-binomial numbers of 1/shares successes: P(k) ~ (1/n)(1/n + 1)...(1/n + k - 1) / k! exp(-rate k).

    A geometric number k is kept with probability (1/n)(1/n + 1)...(1/n + k - 1) / k!, which is one fraction after the
    other, so that the chance of each k is changed by just that.
    """
    if shares < 1:
        raise ValueError("noise has at least one share")
    found: list[Ints] = []
    missing, wanted = cells, cells
    while missing:
        drawn = geometric(min(max(wanted, 64), MOST_AT_ONCE), rate, source)
        kept = drawn[_kept(drawn, shares, source)]
        found.append(kept[:missing])
        missing -= len(found[-1])
        wanted = missing * (len(drawn) // max(len(kept), 1) + 1)
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def geometric(cells: int, rate: Fraction, source: Source) -> Ints:
    """P(k) ~ exp(-rate k) for k = 0, 1, 2, ..., from uniform whole numbers."""
    if rate < SMALLEST_RATE:
        raise ValueError(f"a rate of noise is at least {SMALLEST_RATE}")
    up, down = rate.numerator, rate.denominator
    rest = np.empty(0, dtype=np.int64)
    while len(rest) < cells:
        tried = below(down, 2 * (cells - len(rest)), source)
        rest = np.concatenate([rest, tried[happens_exp(tried, down, source)]])
    whole, live = np.zeros(cells, dtype=np.int64), np.arange(cells)
    while len(live):
        live = live[happens_exp(np.ones(len(live), dtype=np.int64), 1, source)]
        whole[live] += 1
    return np.asarray((rest[:cells] + down * whole) // up)


def happens_exp(numerator: Ints, denominator: int, source: Source) -> NDArray[np.bool_]:
    """Whether something of probability exp(-numerator/denominator) happens; numerator in 0..denominator.

    Count how often in a row something of probability (numerator/denominator)/1, /2, /3, ... happens; the first failure
    is at an odd place with probability exp(-numerator/denominator), by the series of exp.
    """
    failed = np.empty(len(numerator), dtype=np.int64)
    live, place = np.arange(len(numerator)), 1
    while len(live):
        goes_on = below(denominator * place, len(live), source) < numerator[live]
        failed[live[~goes_on]] = place
        live, place = live[goes_on], place + 1
    return np.asarray(failed % 2 == 1)


def below(bound: int, cells: int, source: Source) -> Ints:
    """Uniform whole numbers from 0 to below a bound. What is too large is drawn again, so that none is likelier."""
    if not 1 <= bound <= LARGEST_BOUND:
        raise ValueError(f"a bound is in 1..{LARGEST_BOUND}")
    width = next(width for width in (1, 2, 4, 8) if bound <= 1 << 8 * width)
    mask = (1 << (bound - 1).bit_length()) - 1
    found, live = np.zeros(cells, dtype=np.int64), np.arange(cells)
    while len(live) and bound > 1:
        drawn = np.frombuffer(source(width * len(live)), dtype=f"<u{width}").astype(np.int64) & mask
        fits = drawn < bound
        found[live[fits]] = drawn[fits]
        live = live[~fits]
    return found


def _kept(drawn: Ints, shares: int, source: Source) -> NDArray[np.bool_]:
    """Each k with probability (1/n)(1/n + 1)...(1/n + k - 1) / k!: factor j of them is ((j - 1) n + 1) / (j n)."""
    kept, live, factor = np.ones(len(drawn), dtype=bool), np.flatnonzero(drawn), 1
    while len(live) and shares > 1:
        passes = below(factor * shares, len(live), source) < (factor - 1) * shares + 1
        kept[live[~passes]] = False
        live = live[passes & (drawn[live] > factor)]
        factor += 1
    return kept
