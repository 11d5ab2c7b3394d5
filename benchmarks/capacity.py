"""What a round costs a house when there are many: measured for a few sites, computed for more (docs/operations.md).

    python -m benchmarks.capacity                        # 100 trees a site, 500 made-up rows
    python -m benchmarks.capacity --measure 5 10 20 40

What a site fetches and sends has a part of its own and a part for every other site, so a straight line in the
number of sites is fitted to what was measured; the exchange and the coordinator hold something of every pair, so theirs
is a parabola. All houses run in one process, so a site's seconds are the processor time of all of them, shared out; the
masks of one site are timed apart at every size, because they grow with the square.
"""

from __future__ import annotations

import argparse
import os
import platform
import time

import numpy as np
from numpy.polynomial import Polynomial

from benchmarks.federations import made_up
from benchmarks.wire_bytes import COORDINATOR, measure
from spinney.secure_sum import Binding, mask, new_key, new_seed, public_key

SHOWN = (5, 20, 100, 1000)
COLUMNS = ("a site fetches", "a site sends", "the coordinator fetches", "on the exchange", "seconds of a site")
DEGREES = (1, 1, 2, 2, 1)


def costs(sites: int, trees: int, rows: int) -> list[float]:
    """The columns; seconds without the masks."""
    begin = time.process_time()
    one = measure(f"{sites} sites", *made_up(sites, trees, rows), check=False)
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
    counts = np.zeros((sites * trees, 4), dtype=np.int64)
    begin = time.process_time()
    mask(
        counts,
        name=names[0],
        private_key=private[names[0]],
        public_keys=public,
        private_seed=new_seed(),
        binding=binding,
    )
    return time.process_time() - begin


def main() -> None:
    """Measure, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rows", type=int, default=500)
    chosen = parser.parse_args()
    measured = {sites: costs(sites, chosen.trees, chosen.rows) for sites in sorted(chosen.measure)}
    sizes, known = np.array([*measured]), np.array([*measured.values()]).T
    fits = [Polynomial.fit(sizes, column, degree).convert() for column, degree in zip(known, DEGREES, strict=True)]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {chosen.trees} trees a")
    print(f"site, {chosen.rows} made-up rows, 30 features; measured with {', '.join(map(str, sizes))} sites\n")
    print("| " + " | ".join(["sites", "", *COLUMNS]) + " |\n|---:|---|" + "---:|" * len(COLUMNS))
    for sites in SHOWN:
        *sizes_of, seconds = measured.get(sites) or [float(fit(sites)) for fit in fits]
        told = [f"{one / 1e6:,.2f} MB" for one in sizes_of]
        seconds += masking(sites, chosen.trees)
        how = "measured" if sites in measured else "computed"
        print("| " + " | ".join([f"{sites:,}", how, *told, f"{seconds:,.1f}"]) + " |")
    print()
    for name, fit, column in zip(COLUMNS, fits, known, strict=True):
        error = np.max(np.abs(fit(sizes) - column) / np.abs(column))
        words = " + ".join(f"{factor:,.3g} n^{power}" for power, factor in enumerate(fit.coef))
        print(f"{name}: {words}; off by at most {error:.1%} where measured")


if __name__ == "__main__":
    main()
