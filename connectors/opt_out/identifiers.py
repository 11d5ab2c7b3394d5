"""When an identifier on a list and one in a source mean the same patient: in one place, and nothing is guessed.

exact     blanks around it don't count, and a reference means what it refers to: `Patient/123`,
          `https://his.example/fhir/Patient/123/_history/4` and `123` are one patient. Everything else counts:
          upper and lower case, leading zeros, hyphens.
digits    only digits count, without leading zeros: `943 476 5919` and `9434765919` are one patient.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

from spinney.errors import SourceFailed

Compare = Literal["exact", "digits"]
LONGEST = 256
REFERENCE = re.compile(r"(?:^|/)Patient/([^/|#]+)(?:/_history/.*)?$")
URN = re.compile(r"^urn:(?:uuid|oid):([^/|]+)$")


class Named(NamedTuple):
    """What somebody is called: by the source's own id, or by an identifier of a system such as a national number."""

    system: str
    """Empty: the source's own id."""
    compare: Compare
    value: str


def plain_id(word: str) -> str:
    """An id without blanks around it and without what makes it a reference."""
    word = word.strip()
    found = REFERENCE.search(word) or URN.match(word)
    return found.group(1) if found else word


def digits(word: str) -> str:
    """The digits of an id, without leading zeros; empty where there are none."""
    return "".join(one for one in plain_id(word) if one.isdecimal()).lstrip("0")


def names_of(word: str, system: str = "") -> tuple[Named, ...]:
    """All that a patient of a source may be called on a list."""
    exact = word.strip() if system else plain_id(word)
    numbers = digits(word)
    return (Named(system, "exact", exact), *([Named(system, "digits", numbers)] if numbers else []))


def listed_name(word: str, system: str, compare: Compare, where: str) -> Named:
    """An entry of a list. SourceFailed if it can't be an identifier; `where` says which entry it is."""
    value = digits(word) if compare == "digits" else word.strip() if system else plain_id(word)
    if not value or len(value) > LONGEST or any(unicodedata.category(one) == "Cc" for one in value):
        kind = "has no digits" if compare == "digits" and word.strip() else "is no identifier of a patient"
        raise SourceFailed(f"{where} {kind}; mend the list: until then nobody is pulled")
    return Named(system, compare, value)
