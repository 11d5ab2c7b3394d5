"""From FHIR resources to the finished table: rows per second and peak memory, side by side with other ways.

    python -m benchmarks.connectors --write

From NDJSON on disk: beside plain pandas (a dict per resource), Polars, and a row per resource through FHIRPath; and
studies of very many features. Over HTTP: REST pages and a Bulk Data export, beside FHIR-PYrate on the same server.
Every way but FHIRPath and FHIR-PYrate builds the whole table, and the tables must agree. Each runs in a process of its
own with a peak of memory of its own. Polars and FHIR-PYrate have environments in build/peers/, made at the first run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.connectors_data import make
from benchmarks.connectors_http import served, with_pyrate
from benchmarks.connectors_ways import Built, over_http, spinney_wide, timed_way
from benchmarks.harness import Figure, Measured, command, table
from benchmarks.speed_peers import POLARS, PYRATE, NotInstalled, versions

OURS = "files: spinney"


@dataclass(frozen=True)
class Sizes:
    """Observations, and features of wide studies."""

    files: int = 100_000
    many: int = 3_000_000  # for the product alone; 0: left out
    served: int = 50_000
    wide: tuple[int, ...] = (1_000, 5_000)
    turns: int = 3


QUICK = Sizes(files=5_000, many=0, served=2_000, wide=(100,), turns=1)
Taken = list[tuple[str, int, Built]]


def measure(asked: argparse.Namespace) -> Measured:
    """Files, then HTTP."""
    sizes, missing = QUICK if asked.quick else Sizes(), list[str]()
    taken: Taken = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        make(folder / "files", sizes.files)
        taken += in_turns(_file_ways(folder / "files", missing, not asked.quick), sizes.files, sizes.turns)
        for features in sizes.wide:
            built = alone(spinney_wide, folder / "files", features)
            taken.append((f"{OURS}, {features:,} features", sizes.files, built))
        if sizes.many:
            make(folder / "many", sizes.many)
            taken.append((OURS, sizes.many, alone(timed_way, "spinney", folder / "many")))
        make(folder / "served", sizes.served)
        with served(folder / "served") as addresses:
            taken += in_turns(_http_ways(folder, addresses, missing, not asked.quick), sizes.served, sizes.turns)
    check_agreement(taken)
    return Measured([*figures(taken)], f"{versions(POLARS, PYRATE)}\n\n{told(taken)}", missing)


def _file_ways(folder: Path, missing: list[str], install: bool) -> dict[str, Callable[[], Built]]:
    ways = {
        OURS: lambda: alone(timed_way, "spinney", folder),
        f"{OURS}, nothing validated": lambda: alone(timed_way, "unvalidated", folder),
        "files: pandas": lambda: alone(timed_way, "pandas", folder),
        "files: polars": lambda: alone(timed_way, "polars", folder),
        "files: fhirpath, flat rows only": lambda: alone(timed_way, "fhirpath", folder),
    }
    try:
        POLARS.importable(install)
    except NotInstalled as reason:
        missing.append(str(reason))
        del ways["files: polars"]
    return ways


def _http_ways(
    folder: Path, addresses: dict[str, str], missing: list[str], install: bool
) -> dict[str, Callable[[], Built]]:
    ways = {
        "REST: spinney": lambda: alone(over_http, folder, "fhir-rest", addresses["rest"]),
        "bulk: spinney": lambda: alone(over_http, folder, "fhir-bulk", addresses["bulk"]),
    }
    try:
        python = PYRATE.ready(install)
    except NotInstalled as reason:
        missing.append(str(reason))
    else:
        ways["REST: FHIR-PYrate, flat rows only"] = lambda: with_pyrate(python, addresses["rest"], folder)
    return ways


def in_turns(ways: dict[str, Callable[[], Built]], size: int, turns: int) -> Iterator[tuple[str, int, Built]]:
    """Who goes first changes from turn to turn."""
    for turn in range(turns):
        for way in ways if turn % 2 == 0 else reversed(ways):
            yield way, size, ways[way]()


def alone(run: Callable[..., Built], *words: object) -> Built:
    """In a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run, words)


def check_agreement(taken: Taken) -> None:
    """All that build the table of the same resources build the same one."""
    first: dict[int, Built] = {}
    for way, size, built in taken:
        if built.fingerprint:
            other = first.setdefault(size, built)
            assert built.rows == other.rows, f"{way} has {built.rows} rows, not {other.rows}"
            assert np.allclose(built.fingerprint, other.fingerprint), f"{way} has another table"


def figures(taken: Taken) -> Iterator[Figure]:
    """Rates and peaks, all turns together."""
    grouped: dict[tuple[str, int], list[Built]] = defaultdict(list)
    for way, size, built in taken:
        grouped[way, size].append(built)
    for (way, size), turns in grouped.items():
        name = f"{size:,} observations/{way}"
        yield Figure(f"{name}/rate", "/s", tuple(one.observations / one.seconds for one in turns), "more")
        yield Figure(f"{name}/processor", "s", tuple(one.processor for one in turns))
        yield Figure(f"{name}/peak", "MiB", tuple(one.peak_mib for one in turns))


def told(taken: Taken) -> str:
    """A line per way and size."""
    known = {figure.name: figure for figure in figures(taken)}
    rows = []
    for way, size in dict.fromkeys((way, size) for way, size, _ in taken):
        last = next(built for one, other, built in reversed(taken) if (one, other) == (way, size))
        rate, processor, peak = (known[f"{size:,} observations/{way}/{what}"] for what in ("rate", "processor", "peak"))
        cells = [f"{last.observations:,}", rate.told(",.0f"), processor.told(".2f"), f"{peak.median:,.0f}"]
        rows.append([way, *cells, f"{last.rows:,}"])
    head = ["", "observations", "observations per second", "processor s", "peak MiB", "rows of the result"]
    return table(head, rows)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="where temporary files go")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    command("connectors", __doc__, measure, _options, arguments)


if __name__ == "__main__":
    main()
