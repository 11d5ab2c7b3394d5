"""How much there is tonight, held against the accepted nights before: neither half a hospital nor all of it twice.

What was counted stays beside the cohorts, in vault/volumes/STUDY.json, for as many nights as are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spinney.cohort.accepted import VolumeRules
from spinney.cohort.vault import Vault
from spinney.connectors.great_expectations.quality import Counts, RuleResult
from spinney.connectors.great_expectations.suite import Severity
from spinney.errors import CohortRejected
from spinney.rows.encode import encode_label
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder
from spinney.study.study import Study

NIGHTS = 14
FEWEST = 50  # of anything that is counted: below, chance alone moves it as far
ROBUST = 5 * 1.4826  # a normal night is once in a million that many median deviations away
MANY = 0.05  # share of rows that are refused for being in the future or there twice
SKEW = timedelta(days=1)


@dataclass(frozen=True)
class NightVolume:
    """What there was in one night, in counts."""

    rows: int
    patients: int
    positive: int
    read: Mapping[str, int]

    @classmethod
    def of(cls, table: pa.Table, study: Study, counts: Counts) -> NightVolume:
        try:
            positive = int(encode_label(table.select([study.label.name]).to_pandas(), study.label).sum())
        except CohortRejected:  # which is another rule's business
            positive = 0
        patients = pc.count_distinct(table["patient"]).as_py()
        return cls(table.num_rows, int(patients), positive, dict(counts.read))

    def counted(self) -> dict[str, float]:
        """By what people call it."""
        told = {"rows": self.rows, "patients": self.patients, **{f"{kind} read": n for kind, n in self.read.items()}}
        return {name: float(count) for name, count in told.items()}


class Volumes:
    """Those of the accepted nights of one study, the oldest first."""

    def __init__(self, vault: Vault, study: Study) -> None:
        self._path, self._study = vault.folder / "volumes" / f"{study.name}.json", study.digest

    def read(self) -> list[NightVolume]:
        """None where the file is gone or damaged: it only informs."""
        try:
            plain: dict[str, Any] = json.loads(self._path.read_bytes())
            return [NightVolume(**one) for one in plain["nights"]] if plain["study"] == self._study else []
        except (OSError, ValueError, TypeError, KeyError):
            return []

    def keep(self, tonight: NightVolume) -> None:
        """Tonight was accepted."""
        nights = [asdict(one) for one in (*self.read(), tonight)][-NIGHTS:]
        private_folder(self._path.parent)
        write_whole(self._path, json.dumps({"study": self._study, "nights": nights}).encode())


def volume_rules(
    table: pa.Table, before: list[NightVolume], tonight: NightVolume, rules: VolumeRules, now: datetime | None
) -> Iterator[RuleResult]:
    """Counts like those of the nights before; no row twice; none in the future (`now`; None: dates are shifted)."""
    yield from _like_before(before, tonight, rules)
    yield _few("no row is there twice", table.num_rows, _twice(table, ["patient", "index_time"]) and _twice(table))
    if now is not None and pa.types.is_timestamp(table["index_time"].type):
        latest = pa.scalar((now + SKEW).astimezone(UTC), pa.timestamp("us", "UTC"))
        times = table["index_time"].cast(pa.timestamp("us", table["index_time"].type.tz or "UTC"), safe=False)
        late = pc.sum(pc.greater(times.cast(latest.type, safe=False), latest)).as_py() or 0
        yield _few("no index time is in the future", table.num_rows, int(late))


def _few(rule: str, rows: int, wrong: int) -> RuleResult:
    return RuleResult(rule, "critical" if wrong > MANY * rows else "warning", rows, wrong, not wrong)


def _like_before(before: list[NightVolume], tonight: NightVolume, rules: VolumeRules) -> Iterator[RuleResult]:
    if not before:
        return
    last, there = before[-1].counted(), tonight.counted()
    for name in last:
        known = [one.counted().get(name, 0.0) for one in before]
        usual, count = median(known), there.get(name, 0.0)
        if max(usual, count) < FEWEST:
            continue
        spread = ROBUST * median(abs(one - usual) for one in known)
        factor = max(_factor(count, usual), 1.0)
        refused = factor > rules.refuse and _factor(count, last[name]) > rules.refuse
        warned = factor > rules.warn and abs(count - usual) > spread
        what = f"about as many {name} as in the {len(known)} accepted nights before: {usual:,.0f}"
        severity: Severity = "critical" if refused else "warning"
        yield RuleResult(what, severity, int(count), int(abs(count - usual)), not (refused or warned))
    shares = [one.positive / max(one.rows, 1) for one in before]
    usual, share = median(shares), tonight.positive / max(tonight.rows, 1)
    noise = max(
        ROBUST * median(abs(one - usual) for one in shares), 4 * (usual * (1 - usual) / max(tonight.patients, 1)) ** 0.5
    )
    rule = f"about the share of outcomes of the {len(shares)} accepted nights before: {usual:.1%}"
    yield RuleResult(rule, "warning", tonight.rows, tonight.positive, abs(share - usual) <= max(noise, 0.01))


def _twice(table: pa.Table, columns: list[str] | None = None) -> int:
    """Rows that another one is the same as, in some columns or in all."""
    return int(table.num_rows - table.group_by(columns or table.column_names).aggregate([]).num_rows)


def _factor(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return high / max(low, 0.5)
