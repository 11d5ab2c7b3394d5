"""What a round costs a house when there are many: measured for a few sites, computed for more (docs/operations.md).

    python -m benchmarks.capacity                        # 100 trees a site, 500 made-up rows
    python -m benchmarks.capacity --rows 3000

Hidden counts have as many bits as all rows together need, which is known and not fitted. What else a site sends hardly
depends on the others, so a straight line in the number of sites is fitted to what was measured. Every sealed forest
that it fetches has a secret for every recipient, and the exchange and the coordinator hold something of every pair, so
theirs are parabolas. The fit is then tried on a larger federation that
it has not seen. All houses run in one process, so a site's seconds are the processor time of all of them, shared out;
the masks of one site are timed apart at every size, because they grow with the square.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.polynomial import Polynomial

from benchmarks.federations import made_up
from benchmarks.harness import Figure, Measured, command, table
from benchmarks.wire import COORDINATOR, hidden_numbers
from benchmarks.wire import measure as measured_round
from spinney.federation.secure_sum import Binding, mask, new_key, new_seed, public_key

PAGE = Path(__file__).parents[1] / "docs" / "operations.md"
SHOWN = (5, 20, 100, 1000)
COLUMNS = ("a site fetches", "a site sends", "the coordinator fetches", "on the exchange", "seconds of a site")
DEGREES = (2, 1, 2, 2, 1)


def costs(sites: int, trees: int, rows: int) -> list[float]:
    """The columns; seconds without the masks."""
    begin = time.process_time()
    one = measured_round(f"{sites} sites", *made_up(sites, trees, rows), check=False)
    seconds = (time.process_time() - begin) / (sites + 1) - masking(sites, trees)
    fetched = np.mean([one.fetched[site].total() for site in one.sites])
    sent = np.mean([one.sent[site].total() for site in one.sites])
    return [float(fetched), float(sent), float(one.fetched[COORDINATOR].total()), float(one.stored), seconds]


def masking(sites: int, trees: int) -> float:
    """Processor seconds in which one site hides its counts of everybody's trees."""
    names = tuple(f"site{number:04d}" for number in range(sites))
    private = {name: new_key() for name in names}
    public = {name: public_key(key) for name, key in private.items()}
    binding = Binding("0" * 64, 1, "score", 1, names, "0" * 64)
    rows = sites * trees + sites
    counts = np.zeros((rows + trees - 1, 2), dtype=np.int64)
    begin = time.process_time()
    mask(
        counts,
        name=names[0],
        private_key=private[names[0]],
        public_keys=public,
        private_seed=new_seed(),
        binding=binding,
        together=rows,
    )
    return time.process_time() - begin


def measure(asked: argparse.Namespace) -> Measured:
    """Measure, fit, try the fit, and tell."""
    sizes, unseen, trees, rows = sorted(asked.measure), asked.check, asked.trees, asked.rows
    if asked.quick:
        sizes, unseen, trees, rows = [4, 5, 6], 8, 10, 150
    seen = {sites: costs(sites, trees, rows) for sites in sizes}
    known = np.array([*seen.values()]).T
    rest = known - np.array([hidden(sites, trees, rows) for sites in sizes]).T
    fits = [Polynomial.fit(sizes, column, degree).convert() for column, degree in zip(rest, DEGREES, strict=True)]
    truth = costs(unseen, trees, rows)
    figures = [
        Figure(f"{sites} sites/{name}", "s" if "seconds" in name else "B", (value,))
        for sites, values in {**seen, unseen: truth}.items()
        for name, value in zip(COLUMNS, values, strict=True)
    ]
    told = f"{trees} trees a site, {rows} made-up rows, 30 features; fitted to {', '.join(map(str, sizes))} sites:"
    computed = {sites: _computed(fits, sites, trees, rows) for sites in {*SHOWN, unseen, *sizes}}
    lines = [_row(sites, seen.get(sites), computed[sites], trees) for sites in SHOWN]
    tried = [
        f"{name}: {_in_words(fit)}{more}; within {error:.1%} where fitted, {off:+.1%} at {unseen} sites"
        for name, fit, more, error, off in zip(
            COLUMNS,
            fits,
            ("", " and hidden counts", *[" and everybody's hidden counts"] * 2, ""),
            np.max([np.abs(np.divide(computed[sites], seen[sites]) - 1) for sites in sizes], axis=0),
            np.divide(computed[unseen], truth) - 1,
            strict=True,
        )
    ]
    return Measured(
        figures, "\n\n".join([told, table(["sites", "", *COLUMNS], lines), "\n".join(["```", *tried, "```"])])
    )


def hidden(sites: int, trees: int, rows: int) -> list[float]:
    """Bytes of hidden counts in every column: of one site's, and of everybody's."""
    training = round(rows * 3 / 4 / 10) * 10 + 5  # what the coordinator takes a site to have at most
    everybodys = hidden_numbers(sites, sites * trees) * (sites * training).bit_length() / 8
    return [0, everybodys / sites, everybodys, everybodys, 0]


def _computed(fits: Sequence[Polynomial], sites: int, trees: int, rows: int) -> list[float]:
    return [float(fit(sites)) + count for fit, count in zip(fits, hidden(sites, trees, rows), strict=True)]


def _row(sites: int, found: Sequence[float] | None, computed: Sequence[float], trees: int) -> list[str]:
    *volumes, seconds = found or computed
    told = [f"{volume / 1e6:,.2f} MB" for volume in volumes]
    how = "measured" if found else "computed"
    return [f"{sites:,}", how, *told, f"{seconds + masking(sites, trees):,.1f}"]


def _in_words(fit: Polynomial) -> str:
    return " + ".join(f"{factor:,.3g} n^{power}" for power, factor in enumerate(fit.coef))


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--measure", type=int, nargs="+", default=[5, 10, 20], help="sites to fit to (at least three)")
    parser.add_argument("--check", type=int, default=40, help="sites to try the fit on")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rows", type=int, default=500)


if __name__ == "__main__":
    command("capacity", __doc__, measure, _more, page=PAGE)
