"""Which code is below which: in a file, or by how ICD and ATC write their codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from spinney.connectors.terminology.members import Members
from spinney.errors import StudyInvalid

# Codes of these systems begin like the code that they are below, from these forms on; chapters and blocks do not.
ICD_10 = re.compile(r"[A-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?")
ICD_9 = re.compile(r"([0-9]{3}|V[0-9]{2}|E[0-9]{3})(\.?[0-9]{1,2})?")
ATC = re.compile(r"[A-Z]([0-9]{2}([A-Z]([A-Z]([0-9]{2})?)?)?)?")
OPS = re.compile(r"[0-9]-[0-9]{2}[0-9a-z](\.[0-9a-z]{1,2})?")
BY_BEGINNING = {
    "http://hl7.org/fhir/sid/icd-10": ICD_10,
    "http://hl7.org/fhir/sid/icd-10-cm": ICD_10,
    "http://hl7.org/fhir/sid/icd-10-de": ICD_10,
    "http://hl7.org/fhir/sid/icd-10-nl": ICD_10,
    "http://hl7.org/fhir/sid/icd-10-us": ICD_10,
    "http://fhir.de/CodeSystem/bfarm/icd-10-gm": ICD_10,
    "http://hl7.org/fhir/sid/icd-9-cm": ICD_9,
    "http://www.whocc.no/atc": ATC,
    "http://fhir.de/CodeSystem/bfarm/atc": ATC,
    "http://fhir.de/CodeSystem/bfarm/ops": OPS,
}


class Hierarchy:
    """Parents and children of the codes of one system."""

    def __init__(self, children: Mapping[str, Iterable[str]], known: Iterable[str]) -> None:
        self._children = {word: frozenset(below) for word, below in children.items()}
        self._parents: dict[str, set[str]] = {}
        for word, below in self._children.items():
            for child in below:
                self._parents.setdefault(child, set()).add(word)
        self._known = frozenset(known)

    def __contains__(self, word: object) -> bool:
        return word in self._known

    def children(self, word: str) -> frozenset[str]:
        return self._children.get(word, frozenset())

    def parents(self, word: str) -> frozenset[str]:
        return frozenset(self._parents.get(word, ()))

    def below(self, word: str) -> frozenset[str]:
        """Everything below a code, without the code. StudyInvalid where that leads back to it."""
        return self._reached(word, self._children)

    def above(self, word: str) -> frozenset[str]:
        """Everything above a code, without the code."""
        return self._reached(word, self._parents)

    def _reached(self, word: str, steps: Mapping[str, Iterable[str]]) -> frozenset[str]:
        seen: set[str] = set()
        left = [word]
        while left:
            for other in steps.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        if word in seen:
            raise StudyInvalid([f"the hierarchy goes in a circle: {word} is below itself"])
        return frozenset(seen)


def by_beginning(system: str, word: str) -> Members | None:
    """A code and everything below it, where a system's codes tell that by their beginning; None: they don't."""
    form = BY_BEGINNING.get(system)
    return Members.of(system, begin=[word]) if form is not None and form.fullmatch(word) else None
