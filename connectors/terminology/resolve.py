"""What a code set of a study means, by its files: offline, bounded, and the same wherever the files are the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path

from spinney.connectors.terminology.code_systems import CodeSystem, code_system
from spinney.connectors.terminology.code_tables import CodeTable
from spinney.connectors.terminology.hierarchy import BY_BEGINNING, by_beginning
from spinney.connectors.terminology.members import STAR, CodeWords, Members
from spinney.connectors.terminology.set_files import file_digest, is_table, resource_in, set_file
from spinney.connectors.terminology.value_sets import Library, value_set_members
from spinney.errors import StudyInvalid
from spinney.study.codes import CodeSet, PinnedSet

MOST_CODES = 50_000


def resolve(name: str, code_set: CodeSet, folder: Path) -> PinnedSet:
    """The codes of a set, with the digests of its files. StudyInvalid says which file to mend, and how."""
    try:
        digests = {file: file_digest(set_file(folder, file)) for file in code_set.files}
        members = _members(code_set, folder)
        if not members:
            raise StudyInvalid(["its files leave no code in it"])
        if len(members) > MOST_CODES:
            raise StudyInvalid([f"{len(members):,} codes, and a study carries {MOST_CODES:,}; use beginnings"])
        if odd := sum(not _can_be_written(*one) for one in members.words.items()):
            raise StudyInvalid(
                [f"{odd:,} systems have codes with a star, a line end or another odd sign in them; take these out"]
            )
        return PinnedSet(files=digests, descendants_of=code_set.descendants_of, codes=members.written())
    except StudyInvalid as error:
        raise StudyInvalid([f"code set {name}: {mistake}" for mistake in error.mistakes]) from None


def _can_be_written(system: str, words: CodeWords) -> bool:
    if "|" in system or STAR in system or not system.isprintable():
        return False
    return all(word.isprintable() and word == word.strip() and STAR not in word for word in words.single | words.begin)


def _members(code_set: CodeSet, folder: Path) -> Members:
    library = Library()
    listed = [_read(folder / file, library) for file in code_set.files]  # the first may need what the others hold
    if code_set.descendants_of:
        return reduce(or_, (_with_all_below(code, library) for code in code_set.descendants_of))
    return listed[0]()


def _read(path: Path, library: Library) -> Callable[[], Members]:
    """Put what a file holds into the library; what it lists is told later."""
    if is_table(path):
        table = CodeTable(path)
        if table.has_parents:
            for system in table.code_systems().values():
                _add(system, library)
        return table.members
    resource = resource_in(path)
    if resource["resourceType"] == "CodeSystem":
        system = code_system(resource)
        _add(system, library)
        return lambda: system.every
    if isinstance(resource.get("url"), str):
        library.value_sets[resource["url"]] = resource
    return lambda: value_set_members(resource, library, tuple(filter(None, [resource.get("url")])))


def _add(system: CodeSystem, library: Library) -> None:
    if system.system in library.code_systems:
        raise StudyInvalid([f"two of its files have the code system {system.system}; keep one"])
    library.code_systems[system.system] = system


def _with_all_below(code: str, library: Library) -> Members:
    system, _, word = code.partition("|")
    there = library.code_systems.get(system)
    if there is not None:
        return Members.of(system, [word, *there.below(word)])
    found = by_beginning(system, word)
    if found is None:
        hint = " by its beginning; name a category" if system in BY_BEGINNING else "; add its CodeSystem to files"
        raise StudyInvalid([f"no file says what is below {code}{hint}"])
    return found
