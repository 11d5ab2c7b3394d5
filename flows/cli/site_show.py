"""One look at a site's cohort: pulled, validated, compared, described; then shown to people or to scripts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from spinney.cohort.check_result import CheckResult, check_cohort
from spinney.cohort.encoded import encode_table
from spinney.cohort.pull import pull
from spinney.cohort.pull_report import PullReport
from spinney.cohort.summary import FeatureSummary, summarise
from spinney.configuration.site import SiteSettings
from spinney.connectors.great_expectations.quality import QualityReport
from spinney.errors import CohortRejected, Declined, SourceFailed, SpinneyError
from spinney.flows.cli.site_losses import attrition_data, attrition_lines, feature_lines, file_lines, kind_lines
from spinney.rows.cohort import Cohort
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.describe import characteristic_vector, rounded_rows, vector_names
from spinney.rows.parts import Part
from spinney.study.study import Study
from spinney.tasks.site import honour_objections

NARROWEST = 80


@dataclass(frozen=True)
class Seen:
    """A cohort that could be made."""

    cohort: CohortRef
    features: tuple[FeatureSummary, ...]
    checked: CheckResult
    vector: dict[str, float | None] | str
    """By column; or why there is none."""
    leaves: tuple[str, ...]


@dataclass(frozen=True)
class Looked:
    """What there is to show."""

    study: Study
    report: PullReport
    seen: Seen | None
    """None: it came to no cohort."""
    refused: SpinneyError | None
    """Why this site would stay out of a round tonight."""
    seconds: float


def look(study: Study, site: SiteSettings) -> Looked:
    """Pull the cohort and find out everything about it; nothing is sent."""
    start, report = time.monotonic(), PullReport()
    try:
        with PullProgress() as progress:
            cohort = pull(study, site.pull_plan(study.name), progress=progress, report=report).cohort
    except (CohortRejected, SourceFailed) as refused:
        return Looked(study, report, None, refused, time.monotonic() - start)
    finally:
        honour_objections(site, study, report.objections)
    seconds = time.monotonic() - start
    checked = check_cohort(site.home, study, cohort, report, site.accepted, site.volume)
    training = encode_table(site.vault, cohort, study).rows(Part.TRAINING)
    features = summarise(site.vault.read(cohort), study)
    seen = Seen(cohort, features, checked, _vector(training, study), what_leaves(study, len(training)))
    return Looked(study, report, seen, _refused(checked), seconds)


def _refused(checked: CheckResult) -> CohortRejected | None:
    try:
        checked.quality.require()
    except CohortRejected as refused:
        return refused
    return None


def _vector(training: Cohort, study: Study) -> dict[str, float | None] | str:
    """The vector of the training rows, as a round would send it."""
    try:
        numbers = characteristic_vector(training, study.privacy)
    except Declined as reason:
        return str(reason)
    known = [None if number != number else float(number) for number in numbers]
    return dict(zip(vector_names(training, study.privacy), known, strict=True))


def what_leaves(study: Study, rows: int | None = None) -> tuple[str, ...]:
    """What a round would send, in words; see docs/privacy.md. Rows: how many there are, where that is known."""
    privacy = study.privacy
    number = f"rounded to {privacy.rows_precision}" if rows is None else f"about {rounded_rows(rows, privacy):,}"
    counts = {
        "masked": "in a secure sum (masked)",
        "ring": "in a secure sum (ring)",
        "trusted-third-party": "to the trusted third party, in clear",
    }[privacy.secure_sum]
    words = [
        f"the characteristic vector of the training rows, rounded to 0.001, and their number, {number}",
        f"{study.forest.trees} trees for the other sites: features, rounded thresholds and probabilities, no leaf of "
        f"fewer than {study.lent_leaf} patients",
        f"how often each tree is right and wrong, {counts}",
    ]
    if privacy.share_map:
        words.insert(
            1, "where that puts this house on a map (two numbers, rounded to 0.01): the coordinator tells all sites"
        )
    if privacy.missing_rates:
        words.insert(1, "with it, the share of missing values of every variable")
    if privacy.label_rate:
        words.insert(1, "with it, the share of patients with the outcome")
    if study.imputation == "federated-means":
        words.insert(0, f"means and category frequencies with their number of rows, rounded, {counts}")
    return (*words, "test figures of the model") if privacy.share_metrics else tuple(words)


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} rows/s" if task.speed else "")


class PullProgress:
    """Rows, rows per second and, where the total is known, the time left; on a terminal only."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description:>24}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} rows"),
            _Speed(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> PullProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def __call__(self, kind: str, read: int, total: int | None) -> None:
        if kind not in self._tasks:
            self._tasks[kind] = self._bars.add_task(kind, total=total)
        self._bars.update(self._tasks[kind], completed=read, total=total)


def as_data(looked: Looked) -> dict[str, Any]:
    """Everything as plain data for scripts."""
    report, seen = looked.report, looked.seen
    of_cohort = None if seen is None else {"rows": seen.cohort.rows, "digest": seen.cohort.digest}
    return {
        "study": looked.study.name,
        "study_digest": looked.study.digest,
        "takes_part": looked.refused is None and seen is not None and not isinstance(seen.vector, str),
        "refused": None if looked.refused is None else str(looked.refused),
        "cohort": of_cohort and {**of_cohort, "watermark": _moment(report.watermark)},
        "as_of": report.as_of,
        "positive": report.positive,
        "unripe": report.unripe,
        "index_events": report.index_events,
        "left_out": dict(report.left_out),
        **attrition_data(report, seen.checked.division if seen else None),
        "files": [{"file": name, "holds": dict(holds)} for name, holds in report.files.items()],
        "read": dict(report.read),
        "quarantine": [{"kind": k, "reason": r, "count": n} for (k, r), n in sorted(report.quarantined.items())],
        "objections": report.objections and asdict(report.objections),
        "unused": [{"kind": k, "reason": r, "count": n} for (k, r), n in sorted(report.unused.items())],
        "found": dict(report.found),
        "lost": [{"feature": f, "reason": r, "count": n} for (f, r), n in sorted(report.lost.items())],
        "notes": [*report.notes, *report.quoting],
        **(_seen_as_data(seen) if seen else {}),
    }


def _seen_as_data(seen: Seen) -> dict[str, Any]:
    return {
        "features": [asdict(feature) for feature in seen.features],
        "quality": [asdict(result) for result in seen.checked.quality.results],
        "drift": list(seen.checked.drift.warnings) if seen.checked.drift else None,
        "vector": seen.vector,
        "leaves": list(seen.leaves),
        "data_docs": str(seen.checked.docs),
    }


def _moment(moment: Any) -> str | None:
    return moment.isoformat() if moment else None


def show(looked: Looked) -> None:
    """Everything for people; nothing where nothing was read: the error says it all."""
    report, seen = looked.report, looked.seen
    read = report.read.total()
    if not read:
        return
    console = Console(highlight=False)
    console.width = max(console.width, NARROWEST)  # a cut table tells nothing
    speed = f"{read / max(looked.seconds, 0.001):,.0f} rows/s"
    console.print(
        f"{looked.study.name}: {report.rows:,} rows, {report.positive:,} of them yes, and {report.unripe:,} whose "
        f"outcome is still open.\n{read:,} rows read ({speed}); data up to {_moment(report.watermark) or 'unknown'}."
    )
    if report.files:
        _show_lines(console, "files", file_lines(report))
    _show_lines(console, "read, by resource type", kind_lines(report))
    if flow := attrition_lines(report, seen.checked.division if seen else None):
        _show_lines(console, "from the source to the rows, in index events (and patients)", flow)
    if report.objections is not None:
        console.print(f"opt-out: {report.objections.sentence()}", markup=False, soft_wrap=True)
    if lost := feature_lines(report):
        _show_lines(console, "lost, by feature", lost)
    if seen is not None:
        console.print(_feature_table(seen.features))
        _show_vector(console, seen.vector)
        _show_lines(console, "a round would send (this command sends nothing)", seen.leaves)
    if notes := [*report.notes, *report.quoting]:
        _show_lines(console, "notes", notes)
    if seen is None:
        return
    if seen.checked.drift is not None:
        _show_lines(console, "compared with the last cohort", seen.checked.drift.warnings or ["nothing moved"])
    _show_lines(console, _kept(seen.checked.quality), _failures(seen.checked.quality))
    for advice in seen.checked.quality.to_accept:
        console.print(advice, soft_wrap=True, markup=False)
    console.print(f"Data Docs: {_from_here(seen.checked.docs)}", soft_wrap=True, markup=False)


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _show_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    console.print(f"{title}:" if lines else title, markup=False)
    for line in lines:
        console.print(f"  {line}", soft_wrap=True, markup=False)


def _feature_table(features: tuple[FeatureSummary, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("feature")
    for heading in ("filled", "missing", "min", "median", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit")
    for one in features:
        counts = ["few" if count is None else f"{count:,}" for count in (one.filled, one.missing)]
        numbers = ["" if number is None else f"{number:.4g}" for number in (one.minimum, one.median, one.maximum)]
        table.add_row(one.name, *counts, *numbers, Text(one.unit or ""))
    return table


def _show_vector(console: Console, vector: dict[str, float | None] | str) -> None:
    if isinstance(vector, str):
        console.print(f"no characteristic vector: {vector}")
        return
    numbers = ", ".join(f"{name} {'(too few)' if number is None else number}" for name, number in vector.items())
    console.print(f"characteristic vector: {numbers}", markup=False)


def _kept(quality: QualityReport) -> str:
    kept = sum(one.passed for one in quality.results)
    return f"quality, {kept} of {len(quality.results)} rules kept"


def _failures(quality: QualityReport) -> list[str]:
    failed = [*quality.failures("critical"), *quality.failures("warning")]
    return [f"{one.severity}: {one.rule} ({one.failed:,} of {one.checked:,} fail)" for one in failed]
