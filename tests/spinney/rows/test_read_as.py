"""Bands as numbers, and codes of the ICD by their chapters."""

from __future__ import annotations

import pytest

from spinney.rows.read_as import chapter_of_icd9, chapter_of_icd10, edges, is_closed, middle_of_band, read_word


@pytest.mark.parametrize(
    ("word", "ends", "middle"),
    [
        ("[70-80)", (70, 80), 75),
        ("(70, 80]", (70, 80), 75),
        ("70-80", (70, 80), 75),
        ("18.5 \u2013 25", (18.5, 25), 21.75),
        ("40 to 49", (40, 49), 44.5),
        ("-5--2", (-5, -2), -3.5),
        ("80+", (80, 80), 80),
        (">=80", (80, 80), 80),
        ("<20", (20, 20), 20),
        ("90 and over", (90, 90), 90),
        ("72", None, 72),
        ("120-80", None, None),
        ("Norm", None, None),
        ("1-2-3", None, None),
        ("2020-01-02", None, None),
        ("", None, None),
    ],
)
def test_a_band_is_its_middle_or_its_only_bound(word, ends, middle):
    assert edges(word) == ends
    assert is_closed(word) is (ends is not None and ends[0] < ends[1])
    assert middle_of_band(word) == middle


@pytest.mark.parametrize(
    ("chapter", "codes"),
    [
        ("circulatory", "428 428.0 4280 459.9"),
        ("endocrine", "250.83 25083 240"),
        ("infectious", "8 8.45 038 0389 139.8"),
        ("injury", "999.9 800"),
        ("health-status", "V45.81 V4581 V57 v57"),
        ("external", "E849 E849.0"),
        (None, "? 0 E11.9 12345678 I50 1.234"),
    ],
)
def test_codes_of_icd_9_are_known_with_and_without_their_dot(chapter, codes):
    assert {chapter_of_icd9(code) for code in codes.split()} == {chapter}


@pytest.mark.parametrize(
    ("chapter", "codes"),
    [
        ("circulatory", "I50.9 I50 I509 i50.01"),
        ("neoplasms", "C00 D49 C7A.0"),
        ("blood", "D50 D89.9"),
        ("eye-ear", "H59 H60"),
        ("injury", "S72.0! T98.3* S72.001A"),
        ("external", "V01 Y98 W19XXXA"),
        ("health-status", "Z51.11"),
        ("special", "U07.1"),
        (None, "428 I I5 I50.99999 heart"),
    ],
)
def test_codes_of_icd_10_are_known_with_and_without_their_dot(chapter, codes):
    assert {chapter_of_icd10(code) for code in codes.split()} == {chapter}


def test_what_is_read_already_stays():
    assert read_word("icd-9-chapters", ("circulatory",), "circulatory") == "circulatory"
    assert read_word("bands", None, "75.0") == 75
    assert read_word("bands", None, None) is None
