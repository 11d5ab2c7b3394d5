"""Codes as a study writes them: exact, by their beginning, in any system, or a set of codes by its name.

`http://loinc.org|4548-4` is that code, `http://hl7.org/fhir/sid/icd-10|I50*` every code that begins so, `*|I50.9` that
word in whatever system, and `@heart-failure` the code set of that name, which the study carries with it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from spinney.base import Name, Settings

ANY_SYSTEM, STAR, SET = "*", "*", "@"
_LAST = "\U0010ffff"  # sorts behind every other letter
_SET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_DIGEST = r"^[0-9a-f]{64}$"


class Pattern(NamedTuple):
    """What one written code means."""

    system: str | None
    """None: any."""
    word: str
    begins: bool
    """Whether codes that begin with the word are meant, too."""

    @property
    def is_exact(self) -> bool:
        return self.system is not None and not self.begins


def pattern_of(code: str) -> Pattern:
    """What a written code (not the name of a set) means. ValueError says what is wrong with it."""
    system, bar, word = code.partition("|")
    if not (system and bar and word):
        raise ValueError(f"{code!r} is no code; write system|code, such as http://loinc.org|4548-4")
    begins = word.endswith(STAR)
    word = word.removesuffix(STAR)
    if STAR in word or (STAR in system and system != ANY_SYSTEM):
        raise ValueError(f"{code!r}: a star stands for any system or for the rest of a code, and nowhere else")
    if not word and system == ANY_SYSTEM:
        raise ValueError(f"{code!r} means every code; leave codes out instead")
    return Pattern(None if system == ANY_SYSTEM else system, word, begins)


def is_set(code: str) -> bool:
    """Whether this is the name of a code set."""
    return code.startswith(SET)


def is_exact(code: str) -> bool:
    """Whether this means one code of one system."""
    return not is_set(code) and pattern_of(code).is_exact


def _checked_code(code: str) -> str:
    if not is_set(code):
        pattern_of(code)
    elif not _SET_NAME.fullmatch(code.removeprefix(SET)):
        raise ValueError(f"{code!r} names no code set; write @ and the set's name, such as @heart-failure")
    return code


def _checked_exact(code: str) -> str:
    if not is_exact(code):
        raise ValueError(f"{code!r} is not one code; write system|code, such as http://snomed.info/sct|84114007")
    return code


Code = Annotated[str, AfterValidator(_checked_code)]
ExactCode = Annotated[str, AfterValidator(_checked_exact)]


def _checked_file(name: str) -> str:
    parts = name.split("/")
    if (
        not name
        or "\\" in name
        or ":" in name
        or any(part in ("", ".", "..") for part in parts)
        or not name.isprintable()
    ):
        raise ValueError(f"{name!r} is no file next to study.yaml; write a name such as codes/heart-failure.json")
    return name


SetFile = Annotated[str, AfterValidator(_checked_file)]


def _lines(words: object) -> object:
    return words.splitlines() if isinstance(words, str) else words


class CodeSet(Settings):
    """A set of codes that other files hold."""

    files: tuple[SetFile, ...] = Field(
        (),
        description="Next to study.yaml: a ValueSet or CodeSystem (FHIR JSON), or a CSV or Parquet file of codes; the "
        "others are those that the first one needs. Empty: ICD, ATC and OPS say by their codes what is below what.",
    )
    descendants_of: tuple[ExactCode, ...] = Field(
        (),
        description="These codes and everything below them in the files' hierarchy; empty: what the first file lists.",
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.files and not self.descendants_of:
            raise ValueError("a code set needs `files`, or `descendants_of`")
        return self


class PinnedSet(Settings):
    """What a code set means, with the digests of the files that said so. `spinney study pin` writes it."""

    files: dict[SetFile, Annotated[str, Field(pattern=_DIGEST)]] = Field({}, description="SHA-256 of every file.")
    descendants_of: tuple[ExactCode, ...] = Field((), description="As in the code set.")
    codes: dict[str, Annotated[tuple[str, ...], BeforeValidator(_lines)]] = Field(
        description="By system its codes, one in a line; a star means every code that begins so."
    )

    @model_validator(mode="after")
    def _codes_are_codes(self) -> Self:
        for code in self.written:
            pattern_of(code)
        if not self.written:
            raise ValueError("a pinned set has at least one code")
        return self

    @property
    def written(self) -> tuple[str, ...]:
        """The codes as a study writes them."""
        return tuple(f"{system}|{word}" for system, words in self.codes.items() for word in words)

    def says(self, code_set: CodeSet) -> bool:
        """Whether it was made for what the code set asks now."""
        return tuple(self.files) == code_set.files and self.descendants_of == code_set.descendants_of


CodeSets = dict[Name, CodeSet]
Pinned = dict[Name, PinnedSet]


def written_out(codes: Iterable[str], pinned: Mapping[str, PinnedSet]) -> tuple[str, ...]:
    """The same codes with every set replaced by what it holds."""
    out: dict[str, None] = {}
    for code in codes:
        out.update(dict.fromkeys(pinned[code.removeprefix(SET)].written if is_set(code) else (code,)))
    return tuple(out)


def code_set_mistakes(sets: CodeSets, pinned: Pinned, used: Iterable[str]) -> list[str]:
    """What keeps the sets from meaning the same everywhere."""
    asked = {code.removeprefix(SET) for code in used if is_set(code)}
    mistakes = [f"@{name}: code_sets has no {name}" for name in sorted(asked - sets.keys())]
    mistakes += [
        f"pinned: code_sets has no {name}; pin again: spinney study pin" for name in pinned.keys() - sets.keys()
    ]
    for name, one in sets.items():
        if name not in pinned:
            mistakes.append(f"code set {name} is not pinned, so sites can't know its codes; run spinney study pin")
        elif not pinned[name].says(one):
            mistakes.append(f"code set {name} was changed after it was pinned; run spinney study pin")
    return mistakes


class Vocabulary:
    """Codes that occur somewhere, ready to be asked which of them a pattern means."""

    def __init__(self, codes: Collection[str]) -> None:
        self._codes = sorted(codes)
        self._known = frozenset(codes)
        self._by_word: list[tuple[str, str]] | None = None  # most studies never ask for any system

    def meant_by(self, code: str) -> list[str]:
        """The codes that a written code means, sorted."""
        pattern = pattern_of(code)
        if pattern.system is None:
            return sorted(self._in_any_system(pattern))
        if not pattern.begins:
            return [code] if code in self._known else []
        start = f"{pattern.system}|{pattern.word}"
        return self._codes[bisect_left(self._codes, start) : bisect_left(self._codes, start + _LAST)]

    def _in_any_system(self, pattern: Pattern) -> list[str]:
        if self._by_word is None:
            self._by_word = sorted((code.partition("|")[2], code) for code in self._codes)
        low = bisect_left(self._by_word, (pattern.word, ""))
        high = (pattern.word + _LAST, "") if pattern.begins else (pattern.word, _LAST)
        return [code for _, code in self._by_word[low : bisect_left(self._by_word, high)]]
