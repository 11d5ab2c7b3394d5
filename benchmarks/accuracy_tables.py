"""Figures as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def half_width(values: Floats) -> float:
    """Of Student's 95 % interval of the mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def with_width(values: Floats, form: str = ".3f") -> str:
    """The mean and its half-width."""
    return f"{values.mean():{form}} ±{half_width(values):{form.lstrip('+')}}"


def counted(counter: Counter[str]) -> str:
    """What happened how often."""
    return ", ".join(f"{kind} {count}" for kind, count in counter.most_common())


def write_block(file: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two markers."""
    before, _, rest = file.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{file.name} has no block {begin} {end}")
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
