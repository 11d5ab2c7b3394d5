"""What became of the events that a study asks for: how many count per resource type and feature, and why others don't.

Events are grouped once by code, unit, status, class and what became of them; every question is answered from these
groups. Notes that quote the source's own words are kept apart from those that a log may have.
"""
# ruff: noqa: S608 (SQL made of our own words; values go through bench.text)

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import duckdb

from spinney.cohort.events import NOT_A_NUMBER, Staged
from spinney.cohort.pull_report import PullReport
from spinney.cohort.recipes import definition_of, event_features, has_answer, label_events, unit_of
from spinney.connectors.duck import text, text_list
from spinney.connectors.units import NO_UNIT, Conversion, conversion
from spinney.study.definition import COUNTING, EventFeature, Events
from spinney.study.study import Study

FUTURE, DID_NOT, NO_NUMBER = "in the future", "did not happen", "no number"
ONLY_A_BOUND = "only a bound, such as < 5"
OTHER_CLASS, OTHER_STATUS, OTHER_ANSWER = "another class", "another status", "another answer"
SHORT_NAMES = {
    "http://loinc.org": "LOINC",
    "http://snomed.info/sct": "SNOMED CT",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm",
    "http://hl7.org/fhir/sid/icd-10": "ICD-10",
    "http://hl7.org/fhir/sid/cvx": "CVX",
}
ADVICE = {
    FUTURE: "if the source shifts its dates, say what counts as now under as_of in site.yaml",
    "broken date": "dates are written 2024-01-31, with or without a time",
    NOT_A_NUMBER: "numbers are written 7.2; in a query, replace(value, ',', '.') makes them so",
    "no date": "an event without a date can't be placed before or after the prediction",
    "no subject": "an event needs a reference to its patient",
    "another resource type": "a file has lines of several types",
}
SHOWN_WORDS = 5

Conversions = list[tuple[int, str | None, Conversion]]


class Group(NamedTuple):
    """Events of a resource type that are alike; `lost` says why they don't count, or nothing."""

    kind: str
    code: str | None
    unit: str | None
    status: str | None
    place: str | None
    """Class of an encounter."""
    lost: str | None
    events: int
    values: int
    bounds: int
    """Values with a comparator."""
    unrecorded: int


def event_groups(bench: duckdb.DuckDBPyConnection, kinds: Iterable[str]) -> list[Group]:
    """The groups of all events; `kinds` are SQL for those of one type each."""
    groups: list[Group] = []
    for events in kinds:
        rows = bench.execute(
            f'SELECT kind, code, unit, status, "class", lost, count(*), count("value"), '
            'count("value") FILTER (comparator IS NOT NULL), count(*) - count(recorded) '
            f"FROM ({events}) GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        groups += [Group(*row) for row in rows]
    return groups


def keep_answers(bench: duckdb.DuckDBPyConnection, kinds: Mapping[str, str], study: Study) -> None:
    """Fill `answer` with values that are asked for by what they are; `kinds` are SQL for events of one type each."""
    choices = [one for _, one in study.choices if one.answers]
    observations = kinds.get("Observation") if choices else None
    if observations is not None:
        codes = {code for one in choices for code in one.codes} if all(one.codes for one in choices) else set()
        coded = f"AND code IN ({text_list(sorted(codes))})" if codes else ""
        bench.execute(
            'CREATE OR REPLACE TEMP TABLE answer AS SELECT DISTINCT event, code, status, "text" '
            f'FROM ({observations}) WHERE lost IS NULL AND "text" IS NOT NULL {coded}'
        )


class Losses:
    """Tells a report what became of all events, and finds the conversions of their units."""

    def __init__(
        self,
        bench: duckdb.DuckDBPyConnection,
        staged: Staged,
        study: Study,
        groups: Sequence[Group],
        report: PullReport,
    ) -> None:
        self._bench, self._staged, self._study, self._report = bench, staged, study, report
        self._by_kind: dict[str, list[Group]] = {}
        self._by_code: dict[tuple[str, str | None], list[Group]] = {}
        for group in groups:
            self._by_kind.setdefault(group.kind, []).append(group)
            self._by_code.setdefault((group.kind, group.code), []).append(group)

    def tell(self) -> Conversions:
        """Fill the report."""
        for kind, groups in sorted(self._by_kind.items()):
            self._tell_kind(kind, groups)
        self._tell_quarantine()
        cohort, label = definition_of(self._study), self._study.label.source
        self._tell_choice("index events", cohort.index)
        if label is not None and label.outcome == "event":
            self._tell_choice("events of the label", label_events(label, cohort))
        return self._tell_features()

    def _tell_kind(self, kind: str, groups: Sequence[Group]) -> None:
        for reason in (FUTURE, DID_NOT):
            if lost := sum(one.events for one in groups if one.lost == reason):
                self._report.unused[kind, reason] += lost
        good = [one for one in groups if one.lost is None]
        self._report.unrecorded[kind] = sum(one.unrecorded for one in good), sum(one.events for one in good)
        if lost := self._report.unused[kind, FUTURE]:
            every = sum(one.events for one in groups)
            self._report.notes.append(f"{kind}: {lost:,} of {every:,} are in the future; {ADVICE[FUTURE]}")

    def _tell_quarantine(self) -> None:
        for (kind, reason), count in sorted(self._staged.quarantined.items()):
            if reason in ADVICE:
                read = self._staged.read[kind]
                self._report.notes.append(f"{kind}: {count:,} of {read:,} set aside, {reason}; {ADVICE[reason]}")

    def _tell_choice(self, what: str, events: Events) -> None:
        """If nothing is left of the index events or the label's, which words the source has where the study has its."""
        found = self._of(events)
        lost = self._why_lost(events, found)
        if lost[""] or events.kind not in self._staged.events:
            return
        self._report.quoting.append(
            f"{what}: 0 of {self._staged.read[events.kind]:,} {plural(events.kind)}{_in_brackets(lost)}"
            + _words("classes", (one.place for one in found), found)
            + _words("statuses", (one.status for one in found), found)
        )
        if events.codes and not found:
            self._report.quoting += [self._without_match(events.kind, code) for code in events.codes[:SHOWN_WORDS]]

    def _tell_features(self) -> Conversions:
        conversions: Conversions = []
        problems: Counter[tuple[str, str | None, str | None, str, str]] = Counter()
        for place, source in event_features(self._study).items():
            name, mine = self._study.features[place].name, self._of(source)
            lost = self._why_lost(source, mine)
            wrong: Counter[tuple[str, str | None, str | None, str, str]] = Counter()
            target, counted = unit_of(self._study, place), source.statistic in COUNTING or source.value != "number"
            for group in mine:
                if group.lost or _other(source, group):
                    continue
                values = group.values
                if not counted and group.values < group.events:
                    _move(lost, NO_NUMBER, group.events - group.values)
                if not counted and source.censored == "exclude":
                    _move(lost, ONLY_A_BOUND, group.bounds)
                    values -= group.bounds
                outcome = Conversion() if target is None else conversion(group.unit, target, source.molar_mass)
                if not values:
                    continue
                if isinstance(outcome, Conversion):
                    conversions.append((place, group.unit, outcome))
                else:
                    wrong[group.kind, group.code, group.unit, target or "", outcome] += values
                    _move(lost, outcome, values)
            problems |= wrong  # of two features that ask for the same values the larger count stays
            self._report.found[name] = lost.pop("")
            self._report.lost.update({(name, reason): count for reason, count in lost.items() if count})
            self._note(source, mine, lost, found=self._report.found[name])
        self._tell_units(problems)
        return conversions

    def _note(self, source: EventFeature, mine: Sequence[Group], lost: Counter[str], found: int) -> None:
        total = sum(one.events for one in mine)
        codes = _either(source.codes) or f"every {source.kind}"
        if not total:
            if source.codes and source.kind in self._staged.events:
                notes = [self._without_match(source.kind, code) for code in source.codes[:SHOWN_WORDS]]
                self._report.quoting += [one for one in notes if one not in self._report.quoting]
        elif set(+lost) == {NO_NUMBER} and not found:
            self._report.notes.append(f"{codes}: {total:,} {plural(source.kind)}, but none has a number")
        elif not found:
            self._report.quoting.append(
                f"{codes}: {total:,} {plural(source.kind)}, but none counts{_in_brackets(lost)}"
            )
        elif lost[NOT_A_NUMBER]:
            self._report.quoting.append(f"{codes}: {lost[NOT_A_NUMBER]:,} of {total:,} values are not numbers")

    def _tell_units(self, problems: Mapping[tuple[str, str | None, str | None, str, str], int]) -> None:
        seen: set[tuple[str, str | None, str | None]] = set()
        for (kind, code, unit, target, reason), values in problems.items():
            if (kind, code, unit) not in seen:  # two features may ask for the same values
                self._report.quarantined[kind, reason] += values
                seen.add((kind, code, unit))
            note = _unit_note(code, unit, target, reason, values)
            if note not in self._report.quoting:
                self._report.quoting.append(note)

    def _of(self, events: Events) -> list[Group]:
        """The groups that have what is asked for, whatever became of them, and whatever their class and status are."""
        if not events.codes:
            return self._by_kind.get(events.kind, [])
        return [one for code in dict.fromkeys(events.codes) for one in self._by_code.get((events.kind, code), [])]

    def _why_lost(self, events: Events, groups: Iterable[Group]) -> Counter[str]:
        """Reason -> events; no reason: they count."""
        lost: Counter[str] = Counter({"": 0})
        for group in groups:
            lost[group.lost or _other(events, group)] += group.events
        if events.answers and lost[""]:
            _move(lost, OTHER_ANSWER, lost[""] - self._answering(events))
        return lost

    def _answering(self, events: Events) -> int:
        wanted = [has_answer(f"[{text_list(events.answers)}]")]
        wanted += [f"code IN ({text_list(events.codes)})"] if events.codes else []
        wanted += [f"status IN ({text_list(events.statuses)})"] if events.statuses else []
        counted = f"SELECT DISTINCT event, code FROM answer e WHERE {' AND '.join(wanted)}"
        count: int = self._bench.execute(f"SELECT count(*) FROM ({counted})").fetchall()[0][0]
        return count

    def _without_match(self, kind: str, code: str) -> str:
        """One line that says that a code never occurs, and which codes that mean nothing to the study look like it."""
        nearest = self._bench.execute(
            f"SELECT e.code, count(*) FROM read_parquet({text(self._staged.events[kind])}) e "
            "LEFT JOIN code_map m ON m.theirs = e.code WHERE e.code IS NOT NULL AND m.ours IS NULL GROUP BY e.code "
            f"ORDER BY levenshtein(split_part(e.code, '|', 2), {text(code.partition('|')[2])}), count(*) DESC, e.code "
            "LIMIT 3"
        ).fetchall()
        names = ", ".join(f"{short(other)} ({count:,})" for other, count in nearest) or "nothing"
        return f"{short(code)}: 0 of {self._staged.read[kind]:,} {plural(kind)}; nearest in your data: {names}"


def _other(events: Events, group: Group) -> str:
    if events.classes and group.place not in events.classes:
        return OTHER_CLASS
    return OTHER_STATUS if events.statuses and group.status not in events.statuses else ""


def _either(codes: Sequence[str]) -> str:
    more = f" or {len(codes) - SHOWN_WORDS:,} more" if len(codes) > SHOWN_WORDS else ""
    return " or ".join(map(short, codes[:SHOWN_WORDS])) + more


def _move(lost: Counter[str], reason: str, count: int) -> None:
    lost[reason] += count
    lost[""] -= count


def _in_brackets(lost: Counter[str]) -> str:
    words = [f"{count:,} {reason}" for reason, count in lost.most_common() if reason and count]
    return f" ({', '.join(words)})" if words else ""


def _words(what: str, words: Iterable[str | None], groups: Sequence[Group]) -> str:
    """The words that occur most, such as the classes that a source has."""
    counts: Counter[str] = Counter()
    for word, group in zip(words, groups, strict=True):
        if word:
            counts[word if len(word) <= 30 else "(long text)"] += group.events
    shown = ", ".join(f"{word} ({count:,})" for word, count in counts.most_common(SHOWN_WORDS))
    return f"; {what} in your data: {shown}" if shown else ""


def _unit_note(code: str | None, unit: str | None, target: str, reason: str, values: int) -> str:
    what = short(code) if code else "no code"
    if reason == NO_UNIT:
        return f"{what}: {values:,} values without a unit; say which in site.yaml under assumed_units"
    shown = unit if unit and len(unit) <= 30 else "(long text)"
    return f"{what}: {values:,} values in {shown}, not {target} ({reason}); map it under units in site.yaml"


def short(code: str) -> str:
    """A code as people say it: LOINC 4548-4."""
    system, _, word = code.partition("|")
    return f"{SHORT_NAMES.get(system, system)} {word}".strip()


def plural(kind: str) -> str:
    """MedicationRequest -> medication requests."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind).strip() + "s"
