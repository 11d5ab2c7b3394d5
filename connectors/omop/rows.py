"""Rows of the tables as events and patients: the queries, and what their rows mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, null, or_, select

from spinney.connectors.omop.concepts import EveryCode, ListedCodes, any_in, classes_of
from spinney.connectors.omop.model import Model, has, needed, of
from spinney.connectors.omop.records import (
    COMPARATORS,
    DETAIL,
    DISPOSITION,
    DISPOSITIONS,
    OMOP,
    OMOP_URI,
    SEXES,
    STILL_PATIENT,
    VISIT,
    Record,
    birth,
    is_midnight,
    named,
    when,
)
from spinney.connectors.sources import Wanted

PATIENT = ("patient", "birth", "sex", "died")
EVENT = (
    "event", "patient", "code", "time", "until", "value", "comparator", "text", "unit", "status", "class", "encounter",
    "parent", "discharge",
)  # fmt: skip
MEMBER = ("patient", "group", "start", "end")
DAY = timedelta(days=1)

Rows = Iterator[Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class ReadingHabits:
    """How this database is to be read."""

    patient: str = "person_id"
    midnight_is_a_day: bool = True
    drug_types: Mapping[str, Sequence[int]] = field(default_factory=dict)
    classes: Mapping[int, str] = field(default_factory=dict)


def patients(model: Model, habits: ReadingHabits) -> Rows:
    """Rows of PATIENT."""
    person, death = model.person, model.tables.get("death")
    joined: Any = person
    died: Any = person
    if death is not None:
        died = _first_deaths(death)
        joined = person.outerjoin(died, died.c.person_id == needed(person, "person_id"))
    born = [of(person, f"{part}_of_birth") for part in ("year", "month", "day")]
    columns = [needed(person, habits.patient), of(person, "gender_concept_id"), *born, of(person, "birth_datetime")]
    asked = _numbered(*columns, of(died, "death_date"), of(died, "death_datetime")).select_from(joined)
    for batch in model.read(asked, "person"):
        yield [
            (who, birth(*born), SEXES.get(sex or 0), when(died_on, died_at, habits.midnight_is_a_day))
            for who, sex, *born, died_on, died_at in batch
        ]


def _first_deaths(death: Any) -> Any:
    """The first day of each person, and the last moment of it; more than one row is against the rules, and happens."""
    whose, day = needed(death, "person_id"), of(death, "death_date")
    first = select(whose.label("person_id"), func.min(day).label("death_date")).group_by(whose).subquery("first_day")
    same = and_(first.c.person_id == whose, or_(first.c.death_date == day, first.c.death_date.is_(None)))
    latest = func.max(of(death, "death_datetime")).label("death_datetime")
    asked = select(first.c.person_id, first.c.death_date, latest).select_from(death.join(first, same))
    return asked.group_by(first.c.person_id, first.c.death_date).subquery("died")


def members(model: Model, habits: ReadingHabits, cohorts: Sequence[int]) -> Rows:
    """Rows of MEMBER: who is in which cohort of the table `cohort`, and from which day to which."""
    cohort, person = model.cohort, model.person
    if cohort is None:
        return
    number, subject = needed(cohort, "cohort_definition_id"), needed(cohort, "subject_id")
    joined = cohort.join(person, needed(person, "person_id") == subject)
    days = [needed(cohort, f"cohort_{name}_date") for name in ("start", "end")]
    asked = _numbered(needed(person, habits.patient), number, *days).select_from(joined)
    for batch in model.read(asked.where(any_in(number, cohorts)), "cohort"):
        yield [(who, called, when(start, None, True), when(end, None, True)) for who, called, start, end in batch]


def events(
    model: Model, habits: ReadingHabits, records: Sequence[Record], wanted: Wanted, notes: dict[str, Counter[str]]
) -> Rows:
    """Rows of EVENT: one for each code that is wanted of each row of the tables. What people should know is noted."""
    codes = ListedCodes(model, wanted.codes) if wanted.codes else EveryCode()
    classes = {**classes_of(model), **habits.classes} if wanted.kind == "Encounter" else {}
    for record in records:
        read = _Reader(record, codes, classes, habits.midnight_is_a_day)
        for batch in model.read(_query(model, habits, record, wanted, codes), record.table):
            yield [event for row in batch for event in read.events(*row)]
        if read.midnights:
            words = (
                f"{record.table}: {{count}} begin at midnight, which OMOP has for a time that nobody knows, "
                "and count as days (midnight: moment in site.yaml if they are times)"
            )
            notes.setdefault(words, Counter()).update(read.midnights)


def _query(
    model: Model, habits: ReadingHabits, record: Record, wanted: Wanted, codes: ListedCodes | EveryCode
) -> Select[Any]:
    """The columns in the order of `_Reader.events`."""
    there = model.tables[record.table].alias(record.table)
    joined: Any = there
    started = needed(there, f"{record.start}_date")
    standard, own, word = (
        needed(there, record.concept),
        of(there, record.source_concept),
        of(there, record.source_value),
    )
    who = needed(there, "person_id")
    if habits.patient != "person_id":
        person = model.person.alias("person")
        joined = joined.join(person, needed(person, "person_id") == who)
        who = needed(person, habits.patient)

    def named_by(concept: ColumnElement[Any] | None, called: str) -> list[ColumnElement[Any]]:
        nonlocal joined
        if concept is None:
            return [null(), null()]
        meant = model.concept.alias(called)
        joined = joined.outerjoin(meant, needed(meant, "concept_id") == concept)
        return [needed(meant, "vocabulary_id"), needed(meant, "concept_code")]

    every = isinstance(codes, EveryCode)
    meant = [
        *named_by(standard if every else None, "standard"),
        *named_by(has(there, record.source_concept) if every else None, "own"),
    ]
    ended = [of(there, f"{record.end}_date"), of(there, f"{record.end}_datetime")] if record.end else [null(), null()]
    columns = [needed(there, record.primary), who, standard, own, word, *meant]
    columns += [started, of(there, f"{record.start}_datetime"), *ended]
    if record.valued:
        value, unit = has(there, "value_as_concept_id"), has(there, "unit_concept_id")
        columns += [of(there, "value_as_number"), of(there, "operator_concept_id"), of(there, "value_as_concept_id")]
        columns += [*named_by(value, "value"), of(there, "value_as_string"), of(there, "value_source_value")]
        columns += [*named_by(unit, "unit"), of(there, "unit_source_value")]
    else:
        columns += [null()] * 10
    if record in (VISIT, DETAIL):
        columns += [of(there, f"{record.table.replace('_occurrence', '')}_type_concept_id")]
        columns += [of(there, "discharged_to_concept_id", "discharge_to_concept_id")]
        columns += [of(there, "parent_visit_detail_id", "visit_detail_parent_id")]
    else:
        columns += [null()] * 3
    columns += [null() if record is VISIT else of(there, "visit_occurrence_id")]
    return _numbered(*columns).select_from(joined).where(*_conditions(model, habits, record, wanted, codes, there))


def _conditions(
    model: Model, habits: ReadingHabits, record: Record, wanted: Wanted, codes: ListedCodes | EveryCode, there: Any
) -> Iterator[ColumnElement[bool]]:
    day = needed(there, f"{record.start}_date")
    if wanted.since is not None:  # a day more on both sides, for time zones
        yield day >= _bound(model, wanted.since - DAY)
    if wanted.until is not None:
        yield day <= _bound(model, wanted.until + DAY)
    concepts = [one for one in (has(there, record.concept), has(there, record.source_concept)) if one is not None]
    if isinstance(codes, ListedCodes):
        yield codes.asked(concepts, has(there, record.source_value))
    elif wanted.kind == "Immunization":  # drug_exposure holds all drugs; a vaccine is what CVX has a code for
        cvx = select(needed(model.concept, "concept_id")).where(needed(model.concept, "vocabulary_id") == "CVX")
        yield or_(*(one.in_(cvx) for one in concepts))
    if types := habits.drug_types.get(wanted.kind):
        yield and_(any_in(needed(there, "drug_type_concept_id"), types))


def _bound(model: Model, moment: datetime) -> date | str:
    return moment.date() if model.connection.dialect.name != "sqlite" else moment.date().isoformat()


def _numbered(*columns: ColumnElement[Any]) -> Select[Any]:
    """A query whose columns have names that can't collide."""
    return select(*(column.label(f"c{place}") for place, column in enumerate(columns)))


@dataclass
class _Reader:
    """What the rows of one table mean."""

    record: Record
    codes: ListedCodes | EveryCode
    classes: Mapping[int, str]
    midnight_is_a_day: bool
    midnights: Counter[str] = field(default_factory=Counter)

    def events(
        self, key: Any, who: Any, standard: Any, own: Any, word: Any, standard_in: Any, standard_code: Any, own_in: Any,
        own_code: Any, start_day: Any, start: Any, end_day: Any, end: Any, number: Any, operator: Any, value: Any,
        value_in: Any, value_code: Any, said: Any, value_word: Any, unit_in: Any, unit: Any, unit_word: Any, type_: Any,
        discharged: Any, parent: Any, visit: Any,
    ) -> Iterator[Sequence[Any]]:  # fmt: skip
        """Rows of EVENT that one row makes."""
        table = self.record.table
        if self.midnight_is_a_day and is_midnight(start):
            self.midnights[str(who)] += 1
        started, ended = when(start_day, start, self.midnight_is_a_day), when(end_day, end, self.midnight_is_a_day)
        within = None if visit is None else f"{VISIT.table}/{visit}"
        status, class_, above = self.record.status, None, None
        if self.record in (VISIT, DETAIL):
            ended = None if type_ == STILL_PATIENT else ended
            status = "finished" if ended else "in-progress"
            class_ = self.classes.get(standard, f"{OMOP}|{standard}") if standard else None
            above, within = within if parent is None else f"{DETAIL.table}/{parent}", None
        measured = unit if unit_in == "UCUM" else unit_word or unit
        written = said or (None if number is not None else value_word)
        names = self.codes.of(standard, own, word, standard_in, standard_code, own_in, own_code)
        for code, discharge in product(names, _dispositions(discharged)):
            text = _concept(value, named(value_in, value_code), code) if value else written
            yield (
                f"{table}/{key}", who, code, started, ended, number, COMPARATORS.get(operator), text, measured, status,
                class_, within, above, discharge,
            )  # fmt: skip


def _concept(concept: int, name: str | None, beside: str | None) -> str:
    """A value that is a concept: by its number where its code is one, or where its vocabulary is not known."""
    system = (beside or "").partition("|")[0]
    if system in (OMOP, OMOP_URI):
        return f"{system}|{concept}"
    return name or f"{OMOP}|{concept}"


def _dispositions(concept: int | None) -> Sequence[str | None]:
    if not concept:
        return (None,)
    by_number = f"{OMOP}|{concept}"
    return (by_number, f"{DISPOSITION}|{DISPOSITIONS[concept]}") if concept in DISPOSITIONS else (by_number,)
