"""How the cells of an array travel: in as few bytes as they need, and come back bit for bit.

    yes and no       packed bits
    whole numbers    as many bits each as the largest needs; with a sign, folded: 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
    numbers          `decimal2` where each is so many hundredths exactly or not known, as whole numbers; or doubles

The name of the form stands before the cells, and the first form that can write them is the only one that is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ONE = np.uint64(1)
MOST_STEPS = 2.0**52
DECIMALS = {f"decimal{places}": 10.0**places for places in range(5)}


@dataclass(frozen=True)
class ArrayForm:
    """One way to write an array's cells."""

    write: Callable[[Any], bytes | None]  # None: not these cells
    read: Callable[[Any, int], Any]  # bytes, cells
    fits: Callable[[int, int], bool]  # so many bytes, so many cells


def _whole(to: Callable[[Any], Any], back: Callable[[Any], Any]) -> ArrayForm:
    """Cells that become whole numbers without a sign: the lowest bit of each, then the next bit of each, and so on."""

    def write(cells: Any) -> bytes | None:
        numbers = to(cells)
        if numbers is None:
            return None
        bits = max(int(numbers.max(initial=0)).bit_length(), 1)
        return b"".join(np.packbits(numbers >> np.uint64(bit) & ONE != 0).tobytes() for bit in range(bits))

    def read(raw: Any, cells: int) -> Any:
        numbers = np.zeros(cells, np.uint64)
        for bit, plane in enumerate(raw.reshape(-1, _bytes_of_bits(cells)) if cells else ()):
            numbers |= np.unpackbits(plane, count=cells).astype(np.uint64) << np.uint64(bit)
        return back(numbers)

    def fits(size: int, cells: int) -> bool:
        plane = _bytes_of_bits(cells)
        return size in range(plane, 64 * plane + 1, plane) if plane else not size

    return ArrayForm(write, read, fits)


def _bytes_of_bits(count: int) -> int:
    return (count + 7) // 8


def _folded(cells: Any) -> Any:
    """Numbers of either sign as numbers without."""
    return ((cells << 1) ^ (cells >> 63)).view(np.uint64)


def _unfolded(numbers: Any) -> Any:
    return (numbers >> ONE).view(np.int64) ^ -(numbers & ONE).view(np.int64)


def _decimal(scale: float) -> ArrayForm:
    """Numbers that are whole when multiplied by the scale; 0 stands for one that is not known."""

    def to(cells: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.rint(np.nan_to_num(cells) * scale)
        if not np.all(np.abs(steps) < MOST_STEPS):
            return None
        numbers = np.where(np.isnan(cells), np.uint64(0), _folded(steps.astype(np.int64)) + ONE)
        return numbers if np.array_equal(back(numbers).view(np.uint64), cells.view(np.uint64)) else None

    def back(numbers: Any) -> Any:
        return np.where(numbers == 0, np.nan, _unfolded(numbers - ONE) / scale)

    return _whole(to, back)


_BITS = ArrayForm(
    lambda cells: np.packbits(cells).tobytes(),
    lambda raw, cells: np.unpackbits(raw, count=cells).view(bool),
    lambda size, cells: size == _bytes_of_bits(cells),
)
_DOUBLES = ArrayForm(
    lambda cells: cells.astype("<f8", copy=False).tobytes(),
    lambda raw, _cells: raw.view("<f8"),
    lambda size, cells: size == 8 * cells,
)
FORMS: dict[str, dict[str, ArrayForm]] = {  # by dtype; the first that can write the cells does
    "bool": {"bool": _BITS},
    "int64": {"int64": _whole(_folded, _unfolded)},
    "uint64": {"uint64": _whole(lambda cells: cells, lambda numbers: numbers)},
    "float64": {name: _decimal(scale) for name, scale in DECIMALS.items()} | {"float64": _DOUBLES},
}
