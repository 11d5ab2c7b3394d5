"""What the codes of a study mean, and how many of them a site has: for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.errors import StudyInvalid
from spinney.study.codes import is_set, pattern_of
from spinney.study.study import Study

if TYPE_CHECKING:
    from spinney.cohort.code_counts import CodeCount, Counted

SHOWN_CODES = 5
Counts = Mapping[tuple[str, str], "CodeCount"]


def counted(study: Study, site_file: Path) -> Counts:
    """What a site has of every code, by resource type and code; the source is read for it."""
    from spinney.cohort.code_counts import count_codes
    from spinney.cohort.pull_report import PullReport
    from spinney.configuration.site import read_site
    from spinney.flows.cli.site_show import PullProgress
    from spinney.tasks.site import honour_objections

    site, report = read_site(site_file), PullReport()
    try:
        with PullProgress() as progress:
            return count_codes(study, site.pull_plan(study.name), progress=progress, report=report)
    finally:
        honour_objections(site, study, report.objections)


def codes_as_data(study: Study, counts: Counts | None) -> dict[str, Any]:
    """Everything, for scripts; what is null in counts is of fewer patients than `floor`."""
    asked: list[dict[str, Any]] = []
    for name, events in study.choices:
        for code in events.codes:
            one: dict[str, Any] = {"for": name, "kind": events.kind, "code": code, "means": _means(code, study)}
            if is_set(code):
                one |= {"files": study.pinned[code[1:]].files, "codes": _by_system(code, study)}
            if counts is not None:
                count = counts[events.kind, code]
                here = {word: vars(of) for word, of in count.codes.items()}
                one["here"] = {**vars(count.total), "codes": here, "more_codes": count.more}
            asked.append(one)
    return {"study": study.name, "digest": study.digest, "floor": study.privacy.smallest_leaf, "codes": asked}


def lines(study: Study, counts: Counts | None) -> Iterator[str]:
    """The same for people."""
    if not study.choices:
        raise StudyInvalid([f"study {study.name} has no `cohort`, so it reads finished tables and no codes"])
    floor = study.privacy.smallest_leaf
    for name, events in study.choices:
        yield f"{name}: {events.kind}" + ("" if events.codes else ", every code")
        for code in events.codes:
            yield f"  {code}: {_means(code, study)}"
            if is_set(code):
                yield from (f"    {line}" for line in _set_lines(code, study))
            if counts is not None:
                yield from (f"    {line}" for line in _count_lines(counts[events.kind, code], code, floor))


def _means(code: str, study: Study) -> str:
    if is_set(code):
        one = study.pinned[code[1:]]
        return f"{len(one.written):,} {'codes' if len(one.written) != 1 else 'code'}, pinned"
    pattern = pattern_of(code)
    if pattern.is_exact:
        return "this code"
    which = f"every code that begins with {pattern.word}" if pattern.begins else f"the code {pattern.word}"
    return f"{which if pattern.word else 'every code'} of {pattern.system or 'any system'}"


def _by_system(code: str, study: Study) -> dict[str, list[str]]:
    return {system: list(words) for system, words in study.pinned[code[1:]].codes.items()}


def _set_lines(code: str, study: Study) -> Iterator[str]:
    one = study.pinned[code[1:]]
    for top in one.descendants_of:
        yield f"{top} and everything below it"
    for system, words in one.codes.items():
        more = f" and {len(words) - SHOWN_CODES:,} more" if len(words) > SHOWN_CODES else ""
        yield f"{system}: {', '.join(words[:SHOWN_CODES])}{more}"
    for file, digest in one.files.items():
        yield f"from {file}, SHA-256 {digest}"


def _count_lines(count: CodeCount, code: str, floor: int) -> Iterator[str]:
    yield f"here: {_words(count.total, floor)}"
    if [*count.codes] == [code]:
        return
    for word, of in count.codes.items():
        yield f"  {word}: {_words(of, floor)}"
    if count.more:
        yield f"  and {count.more:,} other codes, each of fewer events or of fewer than {floor} patients"


def _words(of: Counted, floor: int) -> str:
    if of.events is None:
        return f"some events, of fewer than {floor} patients"
    return f"{of.events:,} events of {of.patients:,} patients"
