"""A cohort is held against the study by Great Expectations. Results are counts, never values.

A critical rule that fails keeps the site out of the round; a warning is in the report.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa

from spinney.connectors.great_expectations.suite import Expected, Severity, expectations, prepared, quality_of
from spinney.errors import CohortRejected
from spinney.study.definition import Quality
from spinney.study.study import Study

# Without this, Great Expectations quotes samples of the values that it did not expect.
COUNTS_ONLY: dict[str, Any] = {"result_format": "BASIC", "partial_unexpected_count": 0}
SHOWN_RULES = 10
UNIT_REASONS = frozenset({"unknown unit", "unit can't be converted", "no unit"})


class Counts(Protocol):
    """What a pull's report tells: resources read by kind, those that can be used, and set aside by kind and reason."""

    @property
    def read(self) -> Counter[str]: ...

    @property
    def usable(self) -> Mapping[str, int]: ...

    @property
    def quarantined(self) -> Counter[tuple[str, str]]: ...


@dataclass(frozen=True)
class RuleResult:
    """How one rule went. `checked` are the rows, patients, columns or resources that it is about."""

    rule: str
    severity: Severity
    checked: int
    failed: int
    passed: bool
    accept: tuple[str, str] | None = None
    """Where a site may be right not to keep it: a key of `accepted` in site.yaml, and the name to write there."""


@dataclass(frozen=True)
class QualityReport:
    """Every rule's result: names and counts."""

    results: tuple[RuleResult, ...]

    def failures(self, severity: Severity) -> tuple[RuleResult, ...]:
        """The rules of a severity that were not kept."""
        return tuple(one for one in self.results if one.severity == severity and not one.passed)

    def require(self) -> None:
        """Raise CohortRejected if a critical rule failed: this site stays out of the round."""
        critical = self.failures("critical")
        if critical:
            others = [f"{one.rule} ({one.failed:,} failed)" for one in critical[1:]]
            more = [f"{len(others) - SHOWN_RULES} more"] if len(others) > SHOWN_RULES else []
            advice = f"also {'; '.join(others[:SHOWN_RULES] + more)}" if others else ""
            advice = advice or "mend it at the source, or ask the study's authors"
            raise CohortRejected(critical[0].rule, critical[0].failed, "; ".join([advice, *self.to_accept]))

    @property
    def to_accept(self) -> tuple[str, ...]:
        """What to write in site.yaml where that is right at this site."""
        names: dict[str, list[str]] = {}
        for one in self.failures("critical"):
            if one.accept is not None:
                names.setdefault(one.accept[0], []).append(json.dumps(one.accept[1]))
        words = ", ".join(f"{key}: [{', '.join(known)}]" for key, known in names.items())
        return (f"where that is right here, write in site.yaml: accepted: {{{words}}}",) if words else ()


def check_table(table: pa.Table, study: Study, counts: Counts | None = None) -> QualityReport:
    """Hold a cohort's table, and what its pull counted, against the study."""
    frame = prepared(table, study)
    rules = list(expectations(frame, study))
    found = _validated(frame, list({rule.counted: rule for rule in rules}.values()))
    results = [_result(rule, found[rule.counted], frame) for rule in rules]
    return QualityReport((*results, *_of_the_pull(counts, quality_of(study))))


def great_expectations() -> Any:
    """The library, which takes seconds to import."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # some versions tell their makers of us unless this is set by now
    import great_expectations
    import great_expectations.expectations

    return great_expectations


def _validated(frame: pd.DataFrame, rules: list[Expected]) -> dict[str, Any]:
    """Great Expectations' result for what each rule counts. It takes 10 ms for each, so nothing is counted twice."""
    gx = great_expectations()
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    memory = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    settings = DataContextConfig(store_backend_defaults=memory, progress_bars=ProgressBarsConfig(globally=False))
    context = gx.get_context(mode="ephemeral", project_config=settings)
    asset = context.data_sources.add_pandas("cohort").add_dataframe_asset("table")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    built = [
        getattr(gx.expectations, rule.expectation)(
            description=rule.rule, meta={"counted": rule.counted}, **rule.arguments
        )
        for rule in rules
    ]
    outcome = batch.validate(gx.ExpectationSuite(name="study", expectations=built), result_format=COUNTS_ONLY)
    return {one.expectation_config.meta["counted"]: one for one in outcome.results}


def _result(rule: Expected, found: Any, frame: pd.DataFrame) -> RuleResult:
    """Counts of one rule. What is not counted row by row fails as a whole."""
    passed, counts = bool(found.success), found.result
    checked = len(frame)
    if "unexpected_count" in counts:
        checked, failed = counts["element_count"] - counts.get("missing_count", 0), counts["unexpected_count"]
        kept = not checked or (checked - failed) / checked >= rule.mostly
        return RuleResult(rule.rule, rule.severity, checked, failed, kept)
    if "column_set" in rule.arguments:
        names = set(rule.arguments["column_set"])
        return RuleResult(rule.rule, rule.severity, len(names), len(names - set(frame.columns)), passed)
    return RuleResult(rule.rule, rule.severity, checked, 0 if passed else checked, passed)


def _of_the_pull(counts: Counts | None, quality: Quality) -> Iterator[RuleResult]:
    """What the pull set aside before there was a table."""
    if counts is None:
        return
    read, aside = counts.read.total(), counts.quarantined.total()
    most = quality.largest_quarantine
    rule = f"at most {most:.0%} of what was read is in quarantine"
    yield RuleResult(rule, "critical", read, aside, aside <= most * read)
    units = sum(count for (_, reason), count in counts.quarantined.items() if reason in UNIT_REASONS)
    yield RuleResult("values have units that can be converted", "warning", read, units, units == 0)
