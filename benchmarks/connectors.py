"""From FHIR resources to the finished table: rows per second and peak memory, side by side with other ways.

    python -m benchmarks.connectors
    python -m benchmarks.connectors --sizes 300000 --wide 1000 5000

From NDJSON on disk: beside plain pandas (a dict per resource), Polars, and a row per resource through FHIRPath. Over
HTTP: REST pages and a Bulk Data export, beside FHIR-PYrate on the same server. Every way but FHIRPath and FHIR-PYrate
builds the whole table, and the tables must agree. Each runs in a process of its own with a peak of memory of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.connectors_data import make
from benchmarks.connectors_http import served, with_pyrate
from benchmarks.connectors_ways import Built, over_http, spinney_wide, timed_way
from benchmarks.harness import Figure, Measured, command, table
from benchmarks.speed_peers import PYRATE, NotInstalled

TURNS = 3
Taken = list[tuple[str, int, Built]]


def measure(asked: argparse.Namespace) -> Measured:
    """Files, then HTTP."""
    sizes, peers_up_to, asked_of_server, turns = asked.sizes, asked.peers_up_to, asked.served, TURNS
    if asked.quick:
        sizes, peers_up_to, asked_of_server, turns = [5_000], 5_000, 2_000, 1
    missing = [f"{name} can't be imported here" for name in ("polars", "fhirpathpy") if not _is_here(name)]
    taken: Taken = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for size in sizes:
            here = Path(folder) / str(size)
            make(here, size)
            taken += in_turns(_file_ways(here, size <= peers_up_to), size, turns if size <= peers_up_to else 1)
        for features in asked.wide:
            built = alone(spinney_wide, here, features)
            taken.append((f"spinney, {features:,} features", sizes[-1], built))
        make(Path(folder) / "served", asked_of_server)
        with served(Path(folder) / "served") as addresses:
            taken += in_turns(_http_ways(Path(folder), addresses, missing, not asked.quick), asked_of_server, turns)
    check_agreement(taken)
    return Measured([*figures(taken)], told(taken), missing)


def _file_ways(folder: Path, with_peers: bool) -> dict[str, Callable[[], Built]]:
    ways = {"files: spinney": lambda: alone(timed_way, "spinney", folder)}
    if with_peers:
        ways["files: pandas"] = lambda: alone(timed_way, "pandas", folder)
        if _is_here("polars"):
            ways["files: polars"] = lambda: alone(timed_way, "polars", folder)
        if _is_here("fhirpathpy"):
            ways["files: fhirpath, flat rows only"] = lambda: alone(timed_way, "fhirpath", folder)
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


def _is_here(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 3_000_000], help="Observations in files")
    parser.add_argument("--peers-up-to", type=int, default=100_000, help="largest size that the other ways get")
    parser.add_argument("--served", type=int, default=50_000, help="Observations on the FHIR server")
    parser.add_argument("--wide", type=int, nargs="*", default=[], help="also studies of so many features, last size")
    parser.add_argument("--folder", type=Path, help="where temporary files go")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    command("connectors", __doc__, measure, _options, arguments)


if __name__ == "__main__":
    main()
