"""Ways to build the table of benchmarks/connectors.py, each timed in the process that it runs in."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import connectors_peers as peers
from benchmarks.connectors_data import STUDY, wide_study
from spinney.cohort.pull import pull
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings
from spinney.study.study import Study

FHIRPATH_RESOURCES = 2000


@dataclass(frozen=True)
class Built:
    """What one way took, and what it built."""

    observations: int  # that went in
    seconds: float
    processor: float
    peak_mib: float
    rows: int
    fingerprint: tuple[float, ...] = ()  # of the finished table; none: only flat rows


def timed_way(way: str, folder: Path) -> Built:
    """From NDJSON files."""
    if way == "fhirpath":
        return _timed(lambda: peers.with_fhirpath(folder, FHIRPATH_RESOURCES), FHIRPATH_RESOURCES)
    ways: dict[str, Callable[[Path], pd.DataFrame]] = {
        "spinney": lambda here: _pulled(here / "home", {"kind": "files", "path": here}),
        "unvalidated": lambda here: _pulled(here / "home", {"kind": "files", "path": here}, validate="none"),
        "pandas": peers.with_pandas,
        "polars": peers.with_polars,
    }
    return _timed(lambda: ways[way](folder), _lines(folder))


def over_http(folder: Path, kind: str, address: str) -> Built:
    """The product against a FHIR server, from the first request to the table."""
    home = folder / f"home-{kind}"
    shutil.rmtree(home, ignore_errors=True)  # nothing of the turn before is reused
    source = {"kind": kind, "base_url": address}
    return _timed(lambda: _pulled(home, source), _lines(folder / "served"))


def spinney_wide(folder: Path, features: int) -> Built:
    """A study of very many features."""
    source = {"kind": "files", "path": folder}
    return _timed(
        lambda: _pulled(folder / "wide", source, wide_study(features), largest_table_mib=4096), _lines(folder)
    )


def _pulled(home: Path, source: dict[str, Any], study: Study = STUDY, **more: Any) -> pd.DataFrame:
    """As every night, but for what the site says more."""
    site = SiteSettings.model_validate({"name": "bench", "home": home, "source": source, **more})
    result, vault = pull(study, site.pull_plan(study.name)), Vault(home)
    return pd.concat([vault.read(result.cohort).to_pandas(), vault.read(result.unripe).to_pandas()])


def _timed(build: Callable[[], pd.DataFrame | int], observations: int) -> Built:
    begin, processor = time.perf_counter(), time.process_time()
    result = build()
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if isinstance(result, int):
        return Built(observations, seconds, processor, peak, result)
    return Built(observations, seconds, processor, peak, len(result), _fingerprint(result))


def _fingerprint(table: pd.DataFrame) -> tuple[float, ...]:
    names = [feature.name for feature in STUDY.features if feature.name in table]
    means = np.nan_to_num([table[name].mean() for name in names])
    return (*map(float, means), *(float(table[name].notna().sum()) for name in names))


def _lines(folder: Path) -> int:
    with (folder / "Observation.ndjson").open("rb") as file:
        return sum(1 for _ in file)
