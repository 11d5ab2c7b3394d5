"""From NDJSON on disk to the finished table: rows per second and peak memory, side by side with other ways.

    python -m benchmarks.connectors --sizes 100000 300000 1000000 3000000 --json result.json

Compared with plain pandas (a dict per resource), with Polars, and with a row per resource through FHIRPath, which is
how FHIR-PYrate works. Polars and fhirpathpy are measured where they can be imported. Every way but the last builds the
whole table, and the tables must agree; each runs in a process of its own, so that peaks of memory are its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import connectors_peers as peers
from benchmarks.connectors_data import STUDY, make, wide_study
from connectors.pull import pull
from connectors.site_file import SiteSettings
from connectors.vault import Vault
from spinney.study import Study

FHIRPATH_RESOURCES = 2000


def spinney(folder: Path, study: Study = STUDY) -> pd.DataFrame:
    """The product: pull from a folder of NDJSON, as every night."""
    site = SiteSettings.model_validate(
        {"name": "bench", "home": folder / "home", "source": {"kind": "files", "path": folder}}
    )
    result = pull(study, site)
    vault = Vault(folder / "home")
    tables = [vault.read(result.cohort).to_pandas(), vault.read(result.unripe).to_pandas()]
    return pd.concat(tables)


WAYS: dict[str, Callable[[Path], pd.DataFrame]] = {
    "spinney": spinney,
    "pandas": peers.with_pandas,
    "polars": peers.with_polars,
}


def measure(way: str, folder: Path, observations: int) -> dict[str, Any]:
    """Time, peak memory and a fingerprint of the table that one way builds, in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, cpu, peak, rows, fingerprint = pool.apply(_measured, (way, folder))
    return {
        "way": way,
        "observations": observations,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "per_second": round(observations / seconds),
        "peak_mib": round(peak),
        "rows": rows,
        "fingerprint": fingerprint,
    }


def _measured(way: str, folder: Path) -> tuple[float, float, float, int, list[float]]:
    start, cpu = time.perf_counter(), time.process_time()
    table = WAYS[way](folder)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    names = [feature.name for feature in STUDY.features]
    fingerprint = [float(x) for x in np.nan_to_num([table[name].mean() for name in names])]
    fingerprint += [float(table[name].notna().sum()) for name in names]
    return seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(table), fingerprint


def measure_wide(folder: Path, observations: int, features: int) -> dict[str, Any]:
    """Time and peak memory of a pull for a study of very many features, in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, cpu, peak, rows = pool.apply(_measured_wide, (folder, features))
    return {
        "way": f"spinney, {features:,} features",
        "observations": observations,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "per_second": round(observations / seconds),
        "peak_mib": round(peak),
        "rows": rows,
        "fingerprint": None,
    }


def _measured_wide(folder: Path, features: int) -> tuple[float, float, float, int]:
    source = {"kind": "files", "path": folder}
    site = {
        "name": "wide",
        "home": folder / "wide",
        "source": source,
        "largest_table_mib": 4096,
    }  # to see what it takes
    study = wide_study(features)
    start, cpu = time.perf_counter(), time.process_time()
    report = pull(study, SiteSettings.model_validate(site)).report
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, report.rows + report.unripe


def measure_fhirpath(folder: Path) -> dict[str, Any]:
    """A row per resource through FHIRPath; only flat rows, no windows, on the first resources."""
    start, cpu = time.perf_counter(), time.process_time()
    rows = peers.with_fhirpath(folder, FHIRPATH_RESOURCES)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {
        "way": "fhirpath (flat rows only)",
        "observations": rows,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "per_second": round(rows / seconds),
        "peak_mib": None,
        "rows": rows,
        "fingerprint": None,
    }


def main() -> None:
    """Measure and print a table."""
    arguments = _parser().parse_args()
    results = []
    heads = ("observations", "seconds", "CPU seconds", "per second", "peak MiB", "rows")
    print(f"{'way':<26}" + "".join(f"{head:>13}" for head in heads))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for size in arguments.sizes:
            here = Path(folder) / str(size)
            make(here, size)
            for way in ("spinney", "pandas", "polars"):
                if way == "polars" and importlib.util.find_spec("polars") is None:
                    continue
                if way == "spinney" or size <= arguments.peers_up_to:
                    results.append(measure(way, here, size))
                    _print_one(results[-1])
        for features in arguments.wide:
            results.append(measure_wide(here, arguments.sizes[-1], features))
            _print_one(results[-1])
        if importlib.util.find_spec("fhirpathpy"):
            results.append(measure_fhirpath(here))
            _print_one(results[-1])
    for missing in [name for name in ("polars", "fhirpathpy") if importlib.util.find_spec(name) is None]:
        print(f"{missing} can't be imported here, so it was not measured")
    _check_agreement(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


def _check_agreement(results: list[dict[str, Any]]) -> None:
    ours = {one["observations"]: one for one in results if one["way"] == "spinney"}
    for one in results:
        if one["fingerprint"]:
            mine = ours[one["observations"]]
            assert one["rows"] == mine["rows"], f"{one['way']} has {one['rows']} rows, not {mine['rows']}"
            assert np.allclose(one["fingerprint"], mine["fingerprint"]), f"{one['way']} has another table"
    print("all ways that build the table agree on it")


def _print_one(one: dict[str, Any]) -> None:
    peak = "" if one["peak_mib"] is None else f"{one['peak_mib']:,}"
    figures = (
        f"{one['observations']:,}",
        one["seconds"],
        one["cpu_seconds"],
        f"{one['per_second']:,}",
        peak,
        one["rows"],
    )
    print(f"{one['way']:<26}" + "".join(f"{figure:>13}" for figure in figures), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000], help="numbers of Observations")
    parser.add_argument("--peers-up-to", type=int, default=300_000, help="largest size that the other ways get")
    parser.add_argument("--wide", type=int, nargs="*", default=[], help="also studies of so many features, last size")
    parser.add_argument("--folder", type=Path, help="where temporary files go")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    return parser


if __name__ == "__main__":
    main()
