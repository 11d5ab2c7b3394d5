"""Codes of a study as concepts of OMOP, and concepts as codes of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, bindparam, false, or_, select

from spinney.connectors.omop.model import Model, needed
from spinney.connectors.omop.records import CLASSES, LOCAL, OMOP, OMOP_URI, named, vocabulary

MOST_AT_ONCE = 500  # Oracle takes lists of 1,000 values
MOST_REMEMBERED = 100_000


class ListedCodes:
    """Those that a study asks for, looked up once."""

    def __init__(self, model: Model, wanted: Iterable[str]) -> None:
        self._by_concept: dict[int, list[str]] = {}
        self._by_word: dict[str, list[str]] = {}
        written: dict[tuple[str, str], list[str]] = {}
        for code in wanted:
            system, _, word = code.partition("|")
            if system in (OMOP, OMOP_URI):
                if word.isdecimal():
                    self._by_concept.setdefault(int(word), []).append(code)
            elif system == LOCAL:
                self._by_word.setdefault(word, []).append(code)
            else:
                written.setdefault((vocabulary(system), word), []).append(code)
        for concept, vocabulary_id, word in _looked_up(model, written):
            self._by_concept.setdefault(concept, []).extend(written.get((vocabulary_id, word), []))

    def of(self, concept: int | None, source: int | None, word: str | None, *_concepts: str | None) -> Sequence[str]:
        codes = [*self._by_concept.get(concept or 0, ()), *self._by_concept.get(source or 0, ())]
        if word is not None and not concept and not source:
            codes += self._by_word.get(word, ())
        return codes if len(codes) < 2 else list(dict.fromkeys(codes))

    def asked(self, concepts: Iterable[ColumnElement[Any]], word: ColumnElement[Any] | None) -> ColumnElement[bool]:
        """The condition for rows with one of them."""
        any_of = [any_in(concept, self._by_concept) for concept in concepts]
        return or_(*any_of, false() if word is None else any_in(word, self._by_word))


class EveryCode:
    """All that a row may be called."""

    def __init__(self) -> None:
        self._known: dict[tuple[int | None, int | None], Sequence[str]] = {}

    def of(
        self, concept: int | None, source: int | None, word: str | None, *concepts: str | None
    ) -> Sequence[str | None]:
        """Standard concept, source concept, the source's word, and vocabulary and code of both concepts."""
        if not concept and not source:
            return (f"{LOCAL}|{word}" if word else None,)
        codes = self._known.get((concept, source))
        if codes is None:
            codes = tuple(dict.fromkeys(_names(concept, source, *concepts)))
            if len(self._known) < MOST_REMEMBERED:
                self._known[concept, source] = codes
        return codes


def _names(concept: int | None, source: int | None, *concepts: str | None) -> Iterator[str]:
    for id, vocabulary_id, code in zip((concept, source), concepts[0::2], concepts[1::2], strict=True):
        if id:
            if (name := named(vocabulary_id, code)) is not None:
                yield name
            yield f"{OMOP}|{id}"


def _looked_up(model: Model, codes: Iterable[tuple[str, str]]) -> Iterator[Sequence[Any]]:
    """Concept, vocabulary and code of those that the vocabularies have."""
    concept, system, word = (needed(model.concept, name) for name in ("concept_id", "vocabulary_id", "concept_code"))
    by_vocabulary: dict[str, list[str]] = {}
    for vocabulary_id, code in codes:
        by_vocabulary.setdefault(vocabulary_id, []).append(code)
    for vocabulary_id, words in by_vocabulary.items():
        for some in some_of(words):
            yield from model.rows(
                select(concept, system, word).where(system == vocabulary_id, word.in_(some)), "concept"
            )


def any_in(there: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
    """Whether a column has one of these values; in parts, and numbers written out, since databases bound both."""
    parts = [
        there.in_(bindparam(None, some, expanding=True, literal_execute=isinstance(some[0], int)))
        for some in some_of(values)
    ]
    return or_(false(), *parts)


def some_of(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Values, a few hundred at a time."""
    left = iter(values)
    while some := list(islice(left, MOST_AT_ONCE)):
        yield some


def classes_of(model: Model) -> dict[int, str]:
    """Encounter classes by visit concept; a concept that is below one that is known is of its class."""
    classes: dict[int, tuple[int, str]] = {}
    if model.ancestor is not None:
        above, below, far = (
            needed(model.ancestor, name)
            for name in ("ancestor_concept_id", "descendant_concept_id", "min_levels_of_separation")
        )
        for ancestor, concept, levels in model.rows(
            select(above, below, far).where(any_in(above, CLASSES)), "concept_ancestor"
        ):
            classes[concept] = min(classes.get(concept, (levels, CLASSES[ancestor])), (levels, CLASSES[ancestor]))
    return {concept: name for concept, (_, name) in classes.items()} | CLASSES
