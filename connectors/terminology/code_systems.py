"""FHIR CodeSystem: its concepts, what is below what, and the properties that filters ask for.

https://hl7.org/fhir/R4/codesystem.html: concepts may hold concepts; properties called parent and child say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spinney.connectors.terminology.hierarchy import Hierarchy
from spinney.connectors.terminology.members import Members
from spinney.connectors.terminology.set_files import Resource, objects_in, text_in
from spinney.errors import StudyInvalid

NO_HIERARCHY = ("part-of",)
MOST_CONCEPTS = 5_000_000


@dataclass
class CodeSystem:
    """One code system, as far as its file has it."""

    system: str
    version: str | None = None
    complete: bool = True
    has_hierarchy: bool = True
    properties: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """By code and property, its values."""
    children: dict[str, set[str]] = field(default_factory=dict)

    def add(self, word: str, parents: Iterable[str] = ()) -> None:
        """A concept, and which are above it."""
        self.properties.setdefault(word, {})
        for parent in parents:
            self.children.setdefault(parent, set()).add(word)

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """What is below what; ask after the last concept."""
        return Hierarchy(self.children, self.properties)

    @property
    def every(self) -> Members:
        """All codes. StudyInvalid if the file has only some."""
        if not self.complete:
            raise StudyInvalid(
                [f"the CodeSystem {self.system} is not complete in its file, so not all codes are known"]
            )
        return Members.of(self.system, self.properties)

    def below(self, word: str) -> frozenset[str]:
        """Everything below a code, without it. StudyInvalid if the file does not have the code, or no hierarchy."""
        if word not in self.hierarchy:
            raise StudyInvalid(
                [f"{self.system} has no code {word} in its file; mend the code, or take another release"]
            )
        if not self.has_hierarchy:
            raise StudyInvalid([f"{self.system} says that what stands below a code is a part of it, not a kind of it"])
        return self.hierarchy.below(word)

    def is_inactive(self, word: str) -> bool:
        """Whether the concept is out of use."""
        said = self.properties.get(word, {})
        return "true" in said.get("inactive", ()) or bool({"retired", "inactive"} & {*said.get("status", ())})


def code_system(resource: Resource) -> CodeSystem:
    """The code system in a resource, or StudyInvalid with what is wrong in it."""
    found = CodeSystem(
        text_in(resource, "url", "the CodeSystem"),
        resource.get("version") if isinstance(resource.get("version"), str) else None,
        resource.get("content") == "complete",
        resource.get("hierarchyMeaning") not in NO_HIERARCHY,
    )
    if resource.get("content") == "supplement":
        raise StudyInvalid([f"the CodeSystem {found.system} only adds to another; take that one"])
    left: list[tuple[Resource, str | None]] = [(one, None) for one in objects_in(resource.get("concept"), "concept")]
    while left:
        concept, parent = left.pop()
        word = text_in(concept, "code", "a concept")
        found.add(word, () if parent is None else (parent,))
        for name, value in _properties(concept, word):
            found.properties[word].setdefault(name, []).append(value)
            if name == "parent":
                found.children.setdefault(value, set()).add(word)
            elif name == "child":
                found.children.setdefault(word, set()).add(value)
        left += [(one, word) for one in objects_in(concept.get("concept"), f"concept {word}")]
        if len(found.properties) > MOST_CONCEPTS:
            raise StudyInvalid([f"{found.system} has more than {MOST_CONCEPTS:,} concepts"])
    return found


def _properties(concept: Resource, word: str) -> Iterator[tuple[str, str]]:
    for one in objects_in(concept.get("property"), f"property of {word}"):
        for key, value in one.items():
            if key.startswith("value"):
                yield text_in(one, "code", f"a property of {word}"), _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, dict):  # a Coding
        return str(value.get("code", ""))
    return str(value).lower() if isinstance(value, bool) else str(value)
