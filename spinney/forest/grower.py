"""One decision tree on the codes of the study's grid, compiled.

At a node every row adds its draws to the bin of its code, and the cuts between occupied bins are tried. All sums are
whole numbers, and nothing is left to a mathematics library, so that a seed grows one tree on every machine. What a node
draws depends on the tree's seed and on the way to the node alone.

tests/spinney/forest/slow_grower.py says the same in plain words, slowly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled, inlined

Array = NDArray[Any]

FIELD = 21  # bits of a row's count, of its draws and of its positive draws, side by side in one number
MASK = (1 << FIELD) - 1
LOG_PARTS = 24  # n log n in parts of 2^-24: whole numbers that a float holds, for 16 million draws
WIDE = 4  # nodes with more rows than so many times the bins read all bins, smaller ones those that they have met
ONE, DE_BRUIJN = np.uint64(1), np.uint64(0x03F79D71B4CB0A89)
PLACES = np.zeros(64, np.int64)  # of the only bit of a number, by the upper bits of its product
PLACES[[((int(DE_BRUIJN) << place) & (2**64 - 1)) >> 58 for place in range(64)]] = np.arange(64)
STEP, MIX_A, MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@inlined
def _mixed(state: Any) -> Any:
    """The finaliser of SplitMix64."""
    state = (state ^ (state >> np.uint64(30))) * MIX_A
    state = (state ^ (state >> np.uint64(27))) * MIX_B
    return state ^ (state >> np.uint64(31))


@inlined
def _n_log_n(n: Any) -> Any:
    """n log2 n in parts of 2^-24, digit by digit: logarithms of mathematics libraries differ in their last bits."""
    whole, mantissa = 0, np.uint64(n) << np.uint64(31)
    while mantissa >= np.uint64(1 << 32):
        mantissa >>= np.uint64(1)
        whole += 1
    part = 0
    for _ in range(31):
        mantissa = (mantissa * mantissa) >> np.uint64(31)
        part <<= 1
        if mantissa >= np.uint64(1 << 32):
            mantissa >>= np.uint64(1)
            part += 1
    return ((n * whole) << LOG_PARTS) + ((n * part + (1 << (30 - LOG_PARTS))) >> (31 - LOG_PARTS))


@compiled("int64[::1](int64)")
def log_table(size: int) -> Array:
    """n log2 n of the first whole numbers, in parts of 2^-24."""
    table = np.zeros(size, np.int64)
    for n in range(2, size):
        table[n] = _n_log_n(n)
    return table


@inlined
def _log(table: Array, n: Any) -> Any:
    return table[n] if n < len(table) else _n_log_n(n)


@inlined
def _quality(table: Array, draws: Any, yes: Any, left: Any, left_yes: Any) -> Any:
    """How much purer a cut leaves its sides than they are together: by entropy where there is a table, else by Gini.

    Gini's decrease is in proportion to the squared difference below: one rounding less than a sum of both sides has.
    """
    right, right_yes = draws - left, yes - left_yes
    if len(table):
        parts = _log(table, left_yes) + _log(table, left - left_yes) - _log(table, left)
        return np.float64(parts + _log(table, right_yes) + _log(table, right - right_yes) - _log(table, right))
    apart = np.float64(left_yes * draws - left * yes)
    return apart * apart / (np.float64(left) * np.float64(right))


@inlined
def _decrease(table: Array, draws: Any, yes: Any, quality: Any) -> Any:
    """By how much a cut of this quality lowers the impurity of a node, times its draws."""
    if len(table):
        parts = _log(table, draws) - _log(table, yes) - _log(table, draws - yes)
        return (np.float64(parts) + quality) / np.float64(1 << LOG_PARTS)
    return 2.0 * quality / np.float64(draws)


@inlined
def _roundest(low: Any, high: Any) -> Any:
    """The roundest of the codes low..high, as `spinney.study.cuts.roundest` has it: places are counted from 1."""
    differ, bits = low ^ (high + 1), 0
    while differ > 1:
        differ >>= 1
        bits += 1
    return (((high + 1) >> bits) << bits) - 1


@inlined
def _roundness(code: Any) -> Any:
    """The largest power of two in a code's place."""
    return (code + 1) & -(code + 1)


@inlined
def _bin(code: Any, known: Any) -> Any:
    """All codes that are no values share the last bin."""
    return min(np.int64(code), known)


@inlined
def _histogram(
    column: Array,
    index: Array,
    pay: Array,
    begin: Any,
    end: Any,
    chunk: Any,
    hist: Array,
    bits: Array,
    bins: Array,
) -> Any:
    """Codes that occur in a node, in their order: each with its rows, draws and positive draws. Returns how many."""
    count, size, known = 0, len(hist), len(hist) - 1
    if end - begin > WIDE * size:
        bins[:, 1:4] = 0
        for start in range(begin, end, chunk):
            for place in range(start, min(start + chunk, end)):
                hist[_bin(column[index[place]], known)] += pay[place]
            for code in range(size):
                packed = hist[code]
                hist[code] = 0
                bins[code, 1] += packed & MASK
                bins[code, 2] += (packed >> FIELD) & MASK
                bins[code, 3] += packed >> (2 * FIELD)
        for code in range(size):
            if bins[code, 1]:
                bins[count, 0] = code
                bins[count, 1], bins[count, 2], bins[count, 3] = bins[code, 1], bins[code, 2], bins[code, 3]
                count += 1
        return count
    for place in range(begin, end):
        code = _bin(column[index[place]], known)
        hist[code] += pay[place]
        bits[code >> 6] |= np.uint64(1) << np.uint64(code & 63)
    for word in range(len(bits)):
        rest = bits[word]
        bits[word] = 0
        while rest:
            code = (word << 6) + PLACES[((rest & (~rest + ONE)) * DE_BRUIJN) >> np.uint64(58)]  # of the lowest bit
            rest &= rest - ONE
            packed = hist[code]
            hist[code] = 0
            bins[count, 0], bins[count, 1] = code, packed & MASK
            bins[count, 2], bins[count, 3] = (packed >> FIELD) & MASK, packed >> (2 * FIELD)
            count += 1
    return count


@inlined
def _people(
    column: Array, index: Array, who: Array, begin: Any, end: Any, missing: Any, ends: Array, bins: Array, count: Any
) -> Any:
    """For patients with several rows: how many have their lowest, or their highest, code in each bin.

    Columns 4 and 5 of `bins` are of all, 6 and 7 of those who have no missing value. Returns how many have one. Rows of
    a patient stand beside each other in every node.
    """
    gaps, place = 0, begin
    while place < end:
        patient, low, high, gap = who[index[place]], missing, np.int64(-1), False
        while place < end and who[index[place]] == patient:
            code = np.int64(column[index[place]])
            if code >= missing:
                gap = True
            else:
                low, high = min(low, code), max(high, code)
            place += 1
        gaps += gap
        if high >= 0:
            ends[low, 0] += 1
            ends[high, 1] += 1
            if not gap:
                ends[low, 2] += 1
                ends[high, 3] += 1
    for at in range(count):
        code = bins[at, 0]
        for what in range(4):
            bins[at, 4 + what] = ends[code, what]
            ends[code, what] = 0
    return gaps


@inlined
def _best_cut(
    bins: Array, count: Any, gaps: Any, missing: Any, top: Any, least: Any, floor: Any, clustered: Any, table: Array
) -> Any:
    """The best cut of a column: its quality, threshold code, where missing values go, and what goes left."""
    best, cut, gap_left = -np.inf, np.int64(-1), False
    left_told, right_people = (np.int64(0), np.int64(0), np.int64(0), np.int64(0)), np.int64(0)
    rows, draws, yes, highs, high_only = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    gap_rows, gap_draws, gap_yes = np.int64(0), np.int64(0), np.int64(0)
    for at in range(count):
        rows, draws, yes = rows + bins[at, 1], draws + bins[at, 2], yes + bins[at, 3]
        if clustered:
            highs, high_only = highs + bins[at, 5], high_only + bins[at, 7]
    if count and bins[count - 1, 0] == missing:
        count -= 1
        gap_rows, gap_draws, gap_yes = bins[count, 1], bins[count, 2], bins[count, 3]
    some = gap_rows > 0
    l_rows, l_draws, l_yes = np.int64(0), np.int64(0), np.int64(0)
    l_lows, l_low_only, l_highs, l_high_only = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for at in range(count if some else count - 1):
        l_rows, l_draws, l_yes = l_rows + bins[at, 1], l_draws + bins[at, 2], l_yes + bins[at, 3]
        if clustered:
            l_lows, l_low_only = l_lows + bins[at, 4], l_low_only + bins[at, 6]
            l_highs, l_high_only = l_highs + bins[at, 5], l_high_only + bins[at, 7]
        last = at == count - 1  # all that is known goes left: so will whatever comes
        lowest, highest = (top, top) if last else (bins[at, 0], bins[at + 1, 0] - 1)
        for left in range(2 if some and not last else 1):
            a_rows, a_draws, a_yes = l_rows, l_draws, l_yes
            if left:
                a_rows, a_draws, a_yes = a_rows + gap_rows, a_draws + gap_draws, a_yes + gap_yes
            if a_rows < least or rows - a_rows < least:
                continue
            a_people, b_people = a_rows, rows - a_rows
            if clustered:
                a_people = l_low_only + gaps if left else l_lows
                b_people = highs - l_highs if left else high_only - l_high_only + gaps
                if a_people < floor or b_people < floor:
                    continue
            quality = _quality(table, draws, yes, a_draws, a_yes)
            if quality < best:
                continue
            round_one = _roundest(lowest, highest)
            if quality > best or _roundness(round_one) > _roundness(cut):
                best, cut = quality, round_one
                gap_left = left == 1 if some else a_rows > rows - a_rows
                left_told, right_people = (a_rows, a_draws, a_yes, a_people), b_people
    return best, cut, gap_left, left_told, right_people


@inlined
def _partition(
    column: Array, index: Array, pay: Array, begin: Any, end: Any, cut: Any, gap_left: Any, missing: Any, spare: Array
) -> Any:
    """Rows that go left first, either side in its order."""
    left, right = begin, 0
    for place in range(begin, end):
        row, paid, code = index[place], pay[place], np.int64(column[index[place]])
        if code <= cut or (gap_left and code >= missing):
            index[left], pay[left] = row, paid
            left += 1
        else:
            spare[right, 0], spare[right, 1] = row, paid
            right += 1
    for place in range(right):
        index[left + place], pay[left + place] = spare[place, 0], spare[place, 1]
    return left


SIGNATURE = (
    "Tuple((int16[::1], uint16[::1], boolean[::1], int64[:, ::1], float64[::1]))"
    "({}[:, ::1], int32[::1], int64[::1], int32[::1], int64, int64[::1], int64, int64, int64, int64, int64, "
    "int64[::1], uint64)"
)


@compiled(SIGNATURE.format("uint8"), SIGNATURE.format("uint16"))
def grow_tree(
    columns: Array,
    index: Array,
    pay: Array,
    who: Array,
    missing: Any,
    tops: Array,
    depth: Any,
    fewest: Any,
    least: Any,
    floor: Any,
    tries: Any,
    table: Array,
    seed: Any,
) -> Any:
    """A tree in preorder: features (-1 at leaves), threshold codes, where missing values go, counts, gains.

    `index` are the rows of the bootstrap, those of a patient beside each other; `pay` a row's count, draws and positive
    draws, each in 21 bits; both are moved about. `who` is every row's patient, or empty where each has one row. Codes
    of `missing` and above are no values; a column's last cut is its `tops`. Counts are draws, positive draws and
    patients of every node; gains, by how much a split lowers the impurity times the draws.
    """
    clustered, total = len(who) > 0, len(index)
    size = missing + 1
    hist, bits = np.zeros(size, np.int64), np.zeros((size + 63) >> 6, np.uint64)
    bins, ends = np.zeros((size, 8), np.int64), np.zeros((size if clustered else 0, 4), np.int64)
    spare = np.empty((total, 2), np.int64)
    order, drawn = np.arange(len(columns)), np.empty(len(columns), np.int64)
    leaves = max(1, min(np.int64(1) << depth, total // max(least, 1)))
    feature, cuts = np.full(2 * leaves, -1, np.int16), np.zeros(2 * leaves, np.uint16)
    missing_left, counts = np.zeros(2 * leaves, np.bool_), np.zeros((2 * leaves, 3), np.int64)
    gains = np.zeros(2 * leaves, np.float64)
    # begin, end, depth, way, rows, draws, positive draws, patients
    stack = np.zeros((depth + 2, 8), np.int64)
    most, heaviest = np.int64(0), np.int64(1)
    for place in range(total):
        heaviest = max(heaviest, (pay[place] >> FIELD) & MASK)
        stack[0, 5] += (pay[place] >> FIELD) & MASK
        stack[0, 6] += pay[place] >> (2 * FIELD)
        if clustered and (place == 0 or who[index[place]] != who[index[place - 1]]):
            most += 1
    chunk = MASK // heaviest
    stack[0, 1], stack[0, 3], stack[0, 4], stack[0, 7] = total, 1, total, most if clustered else total
    waiting, node = 1, 0
    while waiting:
        waiting -= 1
        begin, end, deep, way = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        rows, draws, yes = stack[waiting, 4], stack[waiting, 5], stack[waiting, 6]
        people = stack[waiting, 7]
        counts[node, 0], counts[node, 1], counts[node, 2] = draws, yes, people
        here = node
        node += 1
        if deep == depth or rows < fewest or rows < 2 * least or yes == 0 or yes == draws:
            continue
        state = _mixed(seed + STEP * np.uint64(way))
        best, asked, cut, gap_left = -np.inf, -1, np.int64(0), False
        left, right_people, tried = (np.int64(0), np.int64(0), np.int64(0), np.int64(0)), np.int64(0), 0
        while tried < len(columns) and (tried < tries or asked < 0):
            state += STEP
            span = np.uint64(len(columns) - tried)
            pick = tried + np.int64(((_mixed(state) >> np.uint64(32)) * span) >> np.uint64(32))
            column = order[pick]
            order[pick], order[tried], drawn[tried] = order[tried], column, pick
            tried += 1
            count = _histogram(columns[column], index, pay, begin, end, chunk, hist, bits, bins)
            if count < 2:
                continue
            gaps = np.int64(0)
            if clustered:
                gaps = _people(columns[column], index, who, begin, end, missing, ends, bins, count)
            told = _best_cut(bins, count, gaps, missing, tops[column], least, floor, clustered, table)
            if told[1] >= 0 and told[0] > best:
                best, asked, cut, gap_left, left, right_people = told[0], column, told[1], told[2], told[3], told[4]
        for back in range(tried - 1, -1, -1):
            pick = drawn[back]
            order[pick], order[back] = order[back], order[pick]
        if asked < 0:
            continue
        feature[here], cuts[here], missing_left[here] = asked, cut, gap_left
        gains[here] = _decrease(table, draws, yes, best)
        middle = _partition(columns[asked], index, pay, begin, end, cut, gap_left, missing, spare)
        for side in range(2):
            told_rows = rows - left[0] if side == 0 else left[0]
            stack[waiting, 0] = middle if side == 0 else begin
            stack[waiting, 1] = end if side == 0 else middle
            stack[waiting, 2], stack[waiting, 3], stack[waiting, 4] = deep + 1, 2 * way + 1 - side, told_rows
            stack[waiting, 5] = draws - left[1] if side == 0 else left[1]
            stack[waiting, 6] = yes - left[2] if side == 0 else left[2]
            stack[waiting, 7] = right_people if side == 0 else left[3]
            waiting += 1
    return (
        feature[:node].copy(),
        cuts[:node].copy(),
        missing_left[:node].copy(),
        counts[:node].copy(),
        gains[:node].copy(),
    )
