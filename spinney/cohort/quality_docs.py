"""Data Docs for the site's staff: one static page per study with the counts of the last check.

The pages of Great Expectations load scripts, styles and pictures from seven servers when they are opened. This one
loads nothing, says so to the browser, and needs no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from spinney.connectors.great_expectations.quality import QualityReport, RuleResult
from spinney.rows.cohort_ref import CohortRef
from spinney.storage.files import write_whole
from spinney.study.study import Study

STYLE = """
body { font: 16px/1.4 sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #ccc; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.critical { background: #fbd5d5; } tr.warning { background: #fdf1c7; }
"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p>{summary}</p>
<table>
<tr><th>Result</th><th>Rule</th><th>Severity</th><th class="number">Checked</th><th class="number">Failed</th></tr>
{rows}
</table>
{drift}
<p>Counts only; no value of a patient is on this page. Study {study}, cohort {cohort}.</p>
</body>
</html>
"""


def write_docs(
    folder: Path, study: Study, cohort: CohortRef, quality: QualityReport, drift: Sequence[str] | None = None
) -> Path:
    """Write the study's page and say where it is. `drift` has its warnings; None: there was nothing to compare with."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    page = PAGE.format(
        title=escape(f"{study.name}: quality of the data"),
        style=STYLE,
        summary=_summary(quality, cohort),
        rows="\n".join(_row(one) for one in _failures_first(quality.results)),
        drift="" if drift is None else _drift(drift),
        study=study.digest[:16],
        cohort=cohort.digest[:16],
    )
    path = folder / f"{study.name}.html"
    write_whole(path, page.encode())
    return path


def _summary(quality: QualityReport, cohort: CohortRef) -> str:
    critical, warnings = (len(quality.failures(severity)) for severity in ("critical", "warning"))
    part = "stays out of the round" if critical else "takes part"
    return f"{cohort.rows:,} rows. {critical} critical rules failed, {warnings} warnings: this site {part}."


def _failures_first(results: Iterable[RuleResult]) -> list[RuleResult]:
    return sorted(results, key=lambda one: (one.passed, one.severity))


def _row(one: RuleResult) -> str:
    word, colour = ("kept", "") if one.passed else ("failed", f' class="{one.severity}"')
    numbers = "".join(f'<td class="number">{number:,}</td>' for number in (one.checked, one.failed))
    return f"<tr{colour}><td>{word}</td><td>{escape(one.rule)}</td><td>{one.severity}</td>{numbers}</tr>"


def _drift(warnings: Sequence[str]) -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in warnings) or "<li>nothing to report</li>"
    return f"<h2>Compared with the last cohort</h2>\n<ul>{lines}</ul>"
