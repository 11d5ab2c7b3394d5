"""Words of a table that stand for numbers or groups: bands such as [70-80), and codes of the ICD by their chapters.

Bands are read as their middle, and those that are open on one side (80+, >=80, <20) as the bound that they have: trees
ask for an order only. https://www.cdc.gov/nchs/icd/icd9cm.htm and https://icd.who.int/browse10 name the chapters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_CLOSED = re.compile(rf"[\[(]?\s*{_NUMBER}\s*(?:-|\u2013|,|to|\.\.)\s*{_NUMBER}\s*[\])]?")
_OPEN = re.compile(rf"(?:>=?|<=?|\u2265|\u2264)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|and (?:over|older|more))")

ICD9_CHAPTERS = {
    1: "infectious",
    140: "neoplasms",
    240: "endocrine",
    280: "blood",
    290: "mental",
    320: "nervous",
    360: "eye-ear",
    390: "circulatory",
    460: "respiratory",
    520: "digestive",
    580: "genitourinary",
    630: "pregnancy",
    680: "skin",
    710: "musculoskeletal",
    740: "congenital",
    760: "perinatal",
    780: "symptoms",
    800: "injury",
}
"""By the first of their three-digit categories."""
ICD10_CHAPTERS = {
    "A00": "infectious",
    "C00": "neoplasms",
    "D50": "blood",
    "E00": "endocrine",
    "F00": "mental",
    "G00": "nervous",
    "H00": "eye-ear",
    "I00": "circulatory",
    "J00": "respiratory",
    "K00": "digestive",
    "L00": "skin",
    "M00": "musculoskeletal",
    "N00": "genitourinary",
    "O00": "pregnancy",
    "P00": "perinatal",
    "Q00": "congenital",
    "R00": "symptoms",
    "S00": "injury",
    "U00": "special",
    "V00": "external",
    "Z00": "health-status",
}
"""By the first of their categories."""


def edges(word: str) -> tuple[float, float] | None:
    """Both ends of a band, the same one twice if it is open; None for any other word."""
    word = word.strip()
    if closed := _CLOSED.fullmatch(word):
        low, high = float(closed[1]), float(closed[2])
        return (low, high) if low < high else None
    found = _OPEN.fullmatch(word)
    return None if found is None else (float(found[1] or found[2]),) * 2


def is_closed(word: str) -> bool:
    """Whether it is a band with two ends."""
    ends = edges(word)
    return ends is not None and ends[0] < ends[1]


def middle_of_band(word: str) -> float | None:
    """The number that a band, or a plain number among bands, is read as."""
    if ends := edges(word):
        return sum(ends) / 2
    plain = re.fullmatch(_NUMBER, word.strip())
    return None if plain is None else float(plain[1])


def chapter_of_icd9(code: str) -> str | None:
    """The chapter of 428.0, 4280, V45.81 or E849; leading zeros may be missing where a dot or three digits are not."""
    code = code.strip().upper()
    if re.fullmatch(r"V\d\d(\.?\d{1,2})?", code):
        return "health-status"
    if re.fullmatch(r"E\d{3}(\.?\d)?", code):
        return "external"
    if not re.fullmatch(r"\d{1,3}(\.\d{1,2})?|\d{4,5}", code):
        return None
    category = int(code.partition(".")[0][:3])
    return next((name for first, name in reversed(ICD9_CHAPTERS.items()) if category >= first), None)


def chapter_of_icd10(code: str) -> str | None:
    """The chapter of I50, I50.9 or I509; marks of the German modification behind a code don't count."""
    code = code.strip().upper().rstrip("!*+†")
    if not re.fullmatch(r"[A-Z]\d[0-9A-Z](\.?[0-9A-Z]{1,4})?\.?-?", code):
        return None
    return next(name for first, name in reversed(ICD10_CHAPTERS.items()) if code[:3] >= first)


READINGS: Mapping[str, Callable[[str], float | str | None]] = {
    "bands": middle_of_band,
    "icd-9-chapters": chapter_of_icd9,
    "icd-10-chapters": chapter_of_icd10,
}


def read_word(how: str, categories: tuple[str, ...] | None, word: str | None) -> float | str | None:
    """What a word of a table means; a word that is read already stays, and None stands for what means nothing."""
    if word is None or (categories is not None and word in categories):
        return word
    return READINGS[how](word)


def reader(how: str, categories: tuple[str, ...] | None) -> Callable[[str | None], float | str | None]:
    """`read_word` for all words of a column."""
    return partial(read_word, how, categories)
