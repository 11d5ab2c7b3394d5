"""Whether the cohort of a site and the reference are the same table, value by value."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from spinney.cohort.pull import pull, pull_open
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings
from spinney.errors import CohortRejected
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study
from tests.oracle import reference
from tests.oracle.events import NOW

Rows = list[dict[str, Any]]


class Case(Protocol):
    """One site's records in some form, and the study that asks for them."""

    @property
    def study(self) -> Study: ...

    @property
    def timezone(self) -> str: ...

    def told(self) -> reference.Expected:
        """What the reference computes."""

    def laid(self, folder: Path) -> dict[str, Any]:
        """Write the records into a folder; returns `source` of site.yaml."""


def computed(case: Case, folder: Path, **more: Any) -> tuple[Rows, Rows]:
    """What Spinney makes of the case's records: rows that are ripe, and rows that are open."""
    settings = {"name": "site", "home": folder / "home", "timezone": case.timezone, "validate": "none"}
    return pulled(case.study, SiteSettings.model_validate({**settings, "source": case.laid(folder), **more}))


def pulled(study: Study, site: SiteSettings) -> tuple[Rows, Rows]:
    try:
        result = pull(study, site.pull_plan(study.name), now=NOW)
        return _rows(site.home, result.cohort, study), _rows(site.home, result.unripe, study)
    except CohortRejected:
        pass
    try:
        opened = pull_open(study, site.pull_plan(study.name), now=NOW)
    except CohortRejected:
        return [], []
    return _rows(site.home, opened.cohort, study), _rows(site.home, opened.unripe, study)


def _rows(home: Path, ref: CohortRef | None, study: Study) -> Rows:
    """A value that is no category of the study counts as missing, wherever it is made so."""
    rows = Vault(home).read(ref).to_pylist() if ref else []
    for feature in study.features:
        for row in rows:
            if feature.categories and row[feature.name] not in feature.categories:
                row[feature.name] = None
    return rows


def differences(case: Case, folder: Path) -> list[str]:
    """One line for each value that differs; empty: they agree."""
    told = case.told()
    ripe, still_open = computed(case, folder)
    vault, label = Vault(folder / "home"), case.study.label.name
    without = [{name: value for name, value in row.items() if name != label} for row in told.still_open]
    return [*_compared(told.ripe, ripe, vault, "ripe"), *_compared(without, still_open, vault, "open")]


def _compared(told: Rows, made: Rows, vault: Vault, which: str) -> list[str]:
    names = {
        who: hidden
        for who in {row["patient"] for row in told}
        for hidden in vault.pseudonyms(pa.array([who])).to_pylist()
    }
    mine = _keyed(told, lambda row: names[row["patient"]])
    theirs = _keyed(made, lambda row: row["patient"])
    who = {hidden: name for name, hidden in names.items()}
    found = [
        f"{which}: {who.get(key[0], '?')} {key[1]}: only in the {'reference' if key in mine else 'engine'}"
        for key in mine.keys() ^ theirs.keys()
    ]
    for key in mine.keys() & theirs.keys():
        row = theirs[key]
        found += [
            f"{which}: {who[key[0]]} {key[1]} {name}: reference {value!r}, engine {row.get(name)!r}"
            for name, value in mine[key].items()
            if name not in ("patient", "index_time") and not same(value, row.get(name))
        ]
    return sorted(found)


def _keyed(rows: Rows, patient: Any) -> dict[tuple[str, datetime, int], dict[str, Any]]:
    """Rows by patient, index time and place among those that share both, smaller values first."""
    found: dict[tuple[str, datetime], Rows] = {}
    for row in rows:
        found.setdefault((patient(row), row["index_time"].replace(tzinfo=UTC)), []).append(row)
    return {(*key, place): row for key, some in found.items() for place, row in enumerate(sorted(some, key=_order))}


def _order(row: dict[str, Any]) -> list[str]:
    values = {name: value for name, value in row.items() if name != "patient"}
    return [f"{float(one):.6g}" if isinstance(one, int | float) else str(one) for _, one in sorted(values.items())]


def same(one: Any, other: Any) -> bool:
    """Equal, both missing, or numbers that differ by rounding only."""
    one, other = (None if isinstance(value, float) and math.isnan(value) else value for value in (one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)
