"""What a set of codes means: single codes, and beginnings that mean every code that begins so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

STAR = "*"


class Unsayable(ValueError):
    """A set that single codes and beginnings can't say."""


class CodeWords(NamedTuple):
    """Codes of one system."""

    single: frozenset[str] = frozenset()
    begin: frozenset[str] = frozenset()
    """Every code that begins so; the empty text is every code of the system."""

    def begins(self, word: str) -> bool:
        """Whether one of the beginnings means this word."""
        return any(word[:end] in self.begin for end in range(len(word) + 1)) if self.begin else False

    def holds(self, word: str) -> bool:
        """Whether it means this word."""
        return word in self.single or self.begins(word)

    def tidy(self) -> CodeWords:
        """The same without what a shorter beginning means anyway."""
        begin = frozenset(one for one in self.begin if not any(one[:end] in self.begin for end in range(len(one))))
        kept = CodeWords(begin=begin)
        return CodeWords(frozenset(word for word in self.single if not kept.begins(word)), begin)

    def __or__(self, other: CodeWords) -> CodeWords:
        return CodeWords(self.single | other.single, self.begin | other.begin).tidy()

    def __and__(self, other: CodeWords) -> CodeWords:
        single = {word for word in self.single if other.holds(word)} | {w for w in other.single if self.holds(w)}
        begin = {word for word in self.begin if other.begins(word)} | {w for w in other.begin if self.begins(w)}
        return CodeWords(frozenset(single), frozenset(begin)).tidy()

    def minus(self, other: CodeWords) -> CodeWords:
        """Without the other's. Unsayable where that would leave a hole in a beginning."""
        begin = frozenset(word for word in self.begin if not other.begins(word))
        left = CodeWords(begin=begin)
        if hole := next((word for word in sorted(other.single | other.begin) if left.begins(word)), None):
            raise Unsayable(f"every code that begins so but {hole!r}")
        return CodeWords(frozenset(word for word in self.single if not other.holds(word)), begin)


class Members:
    """Codes of any number of systems."""

    def __init__(self, words: Mapping[str, CodeWords] | None = None) -> None:
        self.words = {system: one for system, one in sorted((words or {}).items()) if one.single or one.begin}

    @classmethod
    def of(cls, system: str, single: Iterable[str] = (), begin: Iterable[str] = ()) -> Members:
        """Of one system."""
        return cls({system: CodeWords(frozenset(single), frozenset(begin)).tidy()})

    def __or__(self, other: Members) -> Members:
        systems = {*self.words, *other.words}
        return Members({one: self.words.get(one, CodeWords()) | other.words.get(one, CodeWords()) for one in systems})

    def __and__(self, other: Members) -> Members:
        return Members({one: self.words[one] & other.words[one] for one in self.words.keys() & other.words.keys()})

    def __sub__(self, other: Members) -> Members:
        """Without the other's. Unsayable says what single codes and beginnings can't."""
        try:
            return Members({one: words.minus(other.words.get(one, CodeWords())) for one, words in self.words.items()})
        except Unsayable as hole:
            raise Unsayable(f"the set is {hole}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self.words == other.words

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return sum(len(words.single) + len(words.begin) for words in self.words.values())

    def written(self) -> dict[str, tuple[str, ...]]:
        """By system, as a study writes them: beginnings with a star."""
        return {
            system: tuple(sorted([*words.single, *(word + STAR for word in words.begin)]))
            for system, words in self.words.items()
        }
