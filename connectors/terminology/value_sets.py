"""FHIR ValueSet: what it holds, by its expansion or by its definition, as far as files tell.

https://hl7.org/fhir/R4/valueset.html and https://hl7.org/fhir/valueset.html: an include is what its system, its value
sets and its filters all have; includes add up, and excludes are taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from spinney.connectors.terminology.code_systems import CodeSystem
from spinney.connectors.terminology.hierarchy import by_beginning
from spinney.connectors.terminology.members import CodeWords, Members, Unsayable
from spinney.connectors.terminology.set_files import Resource, objects_in, text_in
from spinney.errors import StudyInvalid

MOST_NESTED = 100
PARTIAL = ("valueset-toocostly", "valueset-unclosed")
EXPAND = "let a terminology server expand the ValueSet ($expand), and take that file"
HIERARCHICAL = ("concept", "code")


@dataclass
class Library:
    """The resources that value sets may refer to, by their canonical addresses."""

    value_sets: dict[str, Resource] = field(default_factory=dict)
    code_systems: dict[str, CodeSystem] = field(default_factory=dict)
    _known: dict[str, Members] = field(default_factory=dict)

    def value_set(self, address: str, within: tuple[str, ...]) -> Members:
        """What the value set at an address holds. StudyInvalid where no file has it, or where it holds itself."""
        url, _, version = address.partition("|")
        if url in within:
            raise StudyInvalid([f"the ValueSet {url} includes itself, by {' and '.join(within)}"])
        if len(within) > MOST_NESTED:
            raise StudyInvalid([f"ValueSets include each other more than {MOST_NESTED} deep"])
        resource = self.value_sets.get(url)
        if resource is None:
            raise StudyInvalid([f"no file has the ValueSet {url}; add its file, or {EXPAND}"])
        _same_version(f"ValueSet {url}", version, resource.get("version"))
        if url not in self._known:
            self._known[url] = value_set_members(resource, self, (*within, url))
        return self._known[url]


def value_set_members(resource: Resource, library: Library, within: tuple[str, ...] = ()) -> Members:
    """What a value set holds; an expansion that somebody has made counts before the definition."""
    what = f"the ValueSet {resource.get('url') or resource.get('id') or ''}".strip()
    if isinstance(resource.get("expansion"), dict):
        return _expanded(resource["expansion"], what)
    compose = resource.get("compose")
    if not isinstance(compose, dict) or not compose.get("include"):
        raise StudyInvalid([f"{what} has neither an expansion nor an include"])
    active = compose.get("inactive") is False
    parts = [_chosen(one, library, within, what, active) for one in objects_in(compose["include"], f"{what}: include")]
    found = reduce(lambda one, other: one | other, parts)
    for one in objects_in(compose.get("exclude"), f"{what}: exclude"):
        try:
            found = found - _chosen(one, library, within, what, active)
        except Unsayable as hole:
            raise StudyInvalid([f"{what}: {hole}, which needs the file of its CodeSystem; or {EXPAND}"]) from None
    return found


def _expanded(expansion: Resource, what: str) -> Members:
    found: dict[str, set[str]] = {}
    entries, left = 0, list(objects_in(expansion.get("contains"), f"{what}: contains"))
    while left:
        one = left.pop()
        entries += 1
        if "code" in one and one.get("abstract") is not True:
            system = text_in(one, "system", f"{what}: an entry of the expansion")
            found.setdefault(system, set()).add(text_in(one, "code", f"{what}: an entry of the expansion"))
        left += objects_in(one.get("contains"), f"{what}: contains")
    total = expansion.get("total")
    if isinstance(total, int) and total > entries:
        raise StudyInvalid([f"{what}: the expansion has {entries:,} of {total:,} codes; take it whole"])
    odd = {
        str(one.get("url", "")).rpartition("/")[2]
        for one in objects_in(expansion.get("extension"), f"{what}: extension")
    }
    if odd & {*PARTIAL}:
        raise StudyInvalid([f"{what}: the server says that the expansion is not all of it; take it whole"])
    return Members({system: CodeWords(frozenset(words)) for system, words in found.items()})


def _chosen(one: Resource, library: Library, within: tuple[str, ...], what: str, active: bool) -> Members:
    parts: list[Members] = []
    if "system" in one:
        parts.append(_of_system(one, library, what, active))
    elif one.get("concept") or one.get("filter"):
        raise StudyInvalid([f"{what}: an include with codes or filters, but without a system"])
    addresses = one.get("valueSet", [])
    if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
        raise StudyInvalid([f"{what}: valueSet is no list of addresses"])
    parts += [library.value_set(address, within) for address in addresses]
    if not parts:
        raise StudyInvalid([f"{what}: an include with neither a system nor a ValueSet"])
    return reduce(and_, parts)


def _of_system(one: Resource, library: Library, what: str, active: bool) -> Members:
    system = text_in(one, "system", what)
    there = library.code_systems.get(system)
    if there is not None:
        _same_version(f"{what}: CodeSystem {system}", one.get("version"), there.version)
    listed = [text_in(concept, "code", f"{what}: a concept") for concept in objects_in(one.get("concept"), what)]
    filters = objects_in(one.get("filter"), f"{what}: filter")
    if listed and filters:
        raise StudyInvalid([f"{what}: an include has either codes or filters"])
    if filters:
        found = reduce(and_, [_filtered(system, each, there, what) for each in filters])
    elif listed:
        found = Members.of(system, listed)
    else:
        found = Members.of(system, begin=[""]) if there is None else there.every
    if active and there is not None:
        found = found - Members.of(system, filter(there.is_inactive, there.properties))
    elif active and not listed:
        raise StudyInvalid([f"{what}: which codes of {system} are in use stands in its CodeSystem; add its file"])
    return found


def _filtered(system: str, how: Resource, there: CodeSystem | None, what: str) -> Members:
    name, op, value = (text_in(how, key, f"{what}: a filter") for key in ("property", "op", "value"))
    if name in HIERARCHICAL and op == "is-a" and there is None and (found := by_beginning(system, value)) is not None:
        return found
    if op == "regex" or op not in OPERATORS:
        raise StudyInvalid([f"{what}: the filter {name} {op} {value[:80]} can't be answered from files; {EXPAND}"])
    if there is None:
        raise StudyInvalid(
            [f"{what}: the filter {name} {op} {value[:80]} needs the CodeSystem {system}; add its file, or {EXPAND}"]
        )
    return Members.of(system, OPERATORS[op](there, name, value))


def _is_a(there: CodeSystem, _name: str, value: str) -> set[str]:
    return {value, *there.below(value)}


def _children(there: CodeSystem, _name: str, value: str) -> set[str]:
    return {*there.below(value)} & there.hierarchy.children(value)


def _leaves(there: CodeSystem, _name: str, value: str) -> set[str]:
    return {word for word in there.below(value) if not there.hierarchy.children(word)}


def _generalizes(there: CodeSystem, _name: str, value: str) -> set[str]:
    there.below(value)
    return {value, *there.hierarchy.above(value)}


def _in(there: CodeSystem, name: str, value: str) -> set[str]:
    wanted = {one.strip() for one in value.split(",")}
    return {word for word in _all(there) if wanted & _values(there, name, word)}


def _all(there: CodeSystem) -> frozenset[str]:
    return there.every.words[there.system].single if there.properties else frozenset()


def _values(there: CodeSystem, name: str, word: str) -> set[str]:
    if name in HIERARCHICAL:
        return {word}
    if name in ("parent", "child"):
        return {*(there.hierarchy.parents(word) if name == "parent" else there.hierarchy.children(word))}
    return {*there.properties[word].get(name, ())}


OPERATORS: Mapping[str, Callable[[CodeSystem, str, str], set[str]]] = {
    "is-a": _is_a,
    "descendent-of": lambda there, _name, value: {*there.below(value)},
    "child-of": _children,
    "descendent-leaf": _leaves,
    "generalizes": _generalizes,
    "is-not-a": lambda there, name, value: {*_all(there)} - _is_a(there, name, value),
    "=": lambda there, name, value: {word for word in _all(there) if value in _values(there, name, word)},
    "in": _in,
    "not-in": lambda there, name, value: {*_all(there)} - _in(there, name, value),
    "exists": lambda there, name, value: {
        word for word in _all(there) if bool(_values(there, name, word)) == (value == "true")
    },
}


def _same_version(what: str, wanted: object, there: object) -> None:
    if wanted and there and wanted != there:
        raise StudyInvalid([f"{what} is wanted in version {wanted}, and its file has {there}; take that release"])
