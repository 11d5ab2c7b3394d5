"""What came of a pull: references into the vault, and a report of counts. Nothing here is about one patient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from spinney.cohort.objections import ObjectionCounts
from spinney.rows.cohort_ref import CohortRef

TERMINAL_ONLY = frozenset({"quoting", "files"})


@dataclass
class PullReport:
    """What happened, in counts only."""

    read: Counter[str] = field(default_factory=Counter)
    """Resources or rows by kind."""
    usable: dict[str, int] = field(default_factory=dict)
    """Kind -> how many of them are not in quarantine."""
    validated: dict[str, int] = field(default_factory=dict)
    """Resources by kind that were checked against the FHIR models."""
    quarantined: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, reason) -> how many were set aside because they are wrong."""
    unused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, reason) -> events that are right, but don't count."""
    found: Counter[str] = field(default_factory=Counter)
    """Feature -> events that count for it, whether or not they are in somebody's window."""
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(feature, reason) -> events that would count for it, were it not for the reason."""
    unrecorded: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Kind -> events without a recording time, of all."""
    index_events: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> index events that became no row."""
    rows: int = 0
    positive: int = 0
    unripe: int = 0
    filled: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Feature -> shares of rows filled forward and with the median, where the study asks for it."""
    watermark: datetime | None = None
    as_of: str | None = None
    """What counted as now, as site.yaml says it; None: the true clock."""
    objections: ObjectionCounts | None = None
    """Who is left out, in counts; None: the site has no lists."""
    notes: list[str] = field(default_factory=list)
    quoting: list[str] = field(default_factory=list)
    """Notes with the source's own codes and units, which may be one patient's: for the terminal, never for a log."""
    files: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Input file -> resources by type, "" what is no resource; nothing: not read. Names may be those of patients, so
    these, too, are for the terminal."""

    def plain(self) -> dict[str, Any]:
        """The report as plain values, for JSON and for logs."""
        return {
            name: {_words(key): count for key, count in value.items()} if isinstance(value, dict) else value
            for name, value in {
                **vars(self),
                "watermark": self.watermark and self.watermark.isoformat(),
                "objections": self.objections and asdict(self.objections),
            }.items()
            if name not in TERMINAL_ONLY
        }

    @property
    def for_logs(self) -> list[str]:
        """The notes without what quotes the source."""
        more = f"{len(self.quoting)} notes are about codes and units of the source: spinney site check shows them"
        return [*self.notes, more] if self.quoting else self.notes

    @property
    def quarantined_share(self) -> float:
        """Part of what was read that is in quarantine."""
        return self.quarantined.total() / max(self.read.total(), 1)


@dataclass(frozen=True)
class PullResult:
    """Rows with a ripe label, which train; rows that are still open, which can only be scored; and the report."""

    cohort: CohortRef
    unripe: CohortRef
    report: PullReport


@dataclass(frozen=True)
class OpenRows:
    """Rows that can only be scored, and those with a ripe label, if there are any; who they are is in the handover."""

    unripe: CohortRef
    cohort: CohortRef | None
    report: PullReport


def _words(key: str | tuple[str, str]) -> str:
    return key if isinstance(key, str) else ": ".join(key)
