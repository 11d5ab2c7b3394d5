"""The parts of a site's report about its data, and about what left the house."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from spinney.cohort.pull_report import PullReport
from spinney.reports import svg as svg
from spinney.reports.facts import NightFacts, of_round
from spinney.reports.html import bullets, el, figure, moment, section, size, table
from spinney.reports.words import few, sent


def quality_section(facts: NightFacts) -> Element:
    parts: list[Element] = []
    if facts.pulled is not None:
        parts.append(el("p", _pulled(facts.pulled)))
        aside = [*facts.pulled.quarantined.most_common(), *facts.pulled.left_out.most_common()]
        reasons = [[reason if isinstance(reason, str) else ": ".join(reason), few(count)] for reason, count in aside]
        if reasons:
            parts.append(table(["Set aside or left out", "How many"], reasons, "What became no row", (1,)))
    if facts.quality is None:
        parts.append(el("p", "The cohort was not checked tonight."))
    else:
        results = sorted(facts.quality.results, key=lambda one: (one.passed, one.severity, one.rule))
        rows = [
            ["kept" if one.passed else f"FAILED ({one.severity})", one.rule, f"{one.checked:,}", few(one.failed)]
            for one in results
        ]
        failed = [row for row, one in zip(rows, results, strict=True) if not one.passed]
        head = ["Result", "Rule", "Checked", "Failed"]
        if failed:
            parts.append(table(head, failed, "Quality rules that were not kept", (2, 3)))
        kept = el("summary", f"{len(rows) - len(failed)} of {len(rows)} rules were kept; all of them as a table")
        parts.append(el("details", kept, table(head, rows, "All quality rules", (2, 3))))
    parts += _drift(facts)
    return section("Data quality and drift", *parts)


def _pulled(pulled: PullReport) -> str:
    newest = f" The data reach until {moment(pulled.watermark)}." if pulled.watermark else ""
    newest += f" The source's dates are shifted: {pulled.as_of} counts as now." if pulled.as_of else ""
    aside = f"{few(pulled.quarantined.total())} of {pulled.read.total():,} records that were read are in quarantine"
    return (
        f"{pulled.rows:,} rows with a known outcome ({few(pulled.positive)} events) and {few(pulled.unripe)} that "
        f"are still open, from {pulled.index_events:,} index events; {aside}.{newest}"
    )


def _drift(facts: NightFacts) -> list[Element]:
    head = el("h3", "Compared with the last cohort")
    if facts.drift is None:
        return [head, el("p", "There is no earlier cohort of this study to compare with.")]
    if not facts.drift.shifts:
        return [head, el("p", "No column could be compared.")]
    largest = sorted(facts.drift.shifts, key=lambda one: -one.index)[:8]
    rows = {one.column: (one.index, f"{one.index:.2f}{', a shift' if one.noticed else ''}") for one in largest}
    alt = "Population stability index: " + "; ".join(f"{one.column} {one.index:.2f}" for one in largest)
    caption = (
        "Population stability index of the columns that moved most; from 0.1 on a slight, from 0.25 on a large shift."
    )
    warned = bullets(facts.drift.warnings) if facts.drift.warnings else el("p", "Nothing moved more than chance would.")
    return [head, warned, figure(svg.bars(alt, rows), caption, alone=True)]


def letters_section(facts: NightFacts) -> Element:
    lines = sent(of_round(facts.lines, facts.study.name, facts.round))
    if not lines:
        return section("What left the house", el("p", "Nothing left this house tonight."))
    rows = [[line.time[11:19], line.entry.sentence(), size(line.entry.bytes), line.entry.digest[:12]] for line in lines]
    head = ["Time (UTC)", "What", "Size", "Digest"]
    total = size(sum(line.entry.bytes for line in lines))
    where = f"lines {lines[0].number} to {lines[-1].number} of the audit log"
    words = f"{len(lines)} messages, {total}; {where}."
    return section("What left the house", el("p", words), table(head, rows, "Messages that left the house", (2,)))
