"""Codes as people write them, and what each of them means."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spinney.study.codes import Pattern, PinnedSet, Vocabulary, pattern_of, written_out
from spinney.study.study import Study
from tests.spinney.study.definitions import study, weight

ICD, SNOMED = "http://hl7.org/fhir/sid/icd-10", "http://snomed.info/sct"
HERE = Vocabulary(
    [
        f"{ICD}|I50",
        f"{ICD}|I50.1",
        f"{ICD}|I509",
        f"{ICD}|I5",
        f"{ICD}|I51.0",
        "local|I50.1",
        f"{SNOMED}|84114007",
        "|x",
    ]
)
DIGEST = "0" * 64


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"{ICD}|I50", [f"{ICD}|I50"]),
        (f"{ICD}|I50*", [f"{ICD}|I50", f"{ICD}|I50.1", f"{ICD}|I509"]),
        (f"{ICD}|I50.*", [f"{ICD}|I50.1"]),
        (f"{SNOMED}|*", [f"{SNOMED}|84114007"]),
        ("*|I50.1", [f"{ICD}|I50.1", "local|I50.1"]),
        ("*|I50*", [f"{ICD}|I50", f"{ICD}|I50.1", f"{ICD}|I509", "local|I50.1"]),
        ("*|x", ["|x"]),
        (f"{ICD}|I50.9", []),
    ],
)
def test_a_written_code_means_these_of_the_codes_that_occur(written: str, meant: list[str]) -> None:
    assert HERE.meant_by(written) == meant


def test_what_is_meant_is_what_a_comparison_of_every_code_finds() -> None:
    alphabet = ["a", "b", "*", ".", "\U0010fffe"]
    words = {x + y + z for x in alphabet for y in ["", *alphabet] for z in ["", *alphabet]}
    codes = {f"{system}|{word}" for system in ("s", "st") for word in words}
    known = Vocabulary(codes)
    for system in ("s", "st", "*"):
        for word in ("a", "ab", "b.", "a*", "ab*", "\U0010fffe*", "c*"):
            start, begins = word.removesuffix("*"), word.endswith("*")
            expected = [
                code
                for code in codes
                if system in ("*", code.partition("|")[0])
                and (code.partition("|")[2].startswith(start) if begins else code.partition("|")[2] == word)
            ]
            assert known.meant_by(f"{system}|{word}") == sorted(expected)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("I50", "is no code"),
        ("|I50", "is no code"),
        ("icd|", "is no code"),
        ("icd|I*0", "a star stands for any system or for the rest"),
        ("icd*|I50", "a star stands for any system or for the rest"),
        ("*|*", "means every code; leave codes out"),
        ("@", "names no code set"),
        ("@heart failure", "names no code set"),
    ],
)
def test_what_is_no_code_is_refused_with_what_to_write(written: str, why: str) -> None:
    features = [weight(codes=[written])]
    with pytest.raises(ValidationError, match=why.replace("*", r"\*")):
        Study.model_validate(study(features=features))


def test_a_prefix_of_any_system_is_read_as_such() -> None:
    assert pattern_of("*|I50*") == Pattern(None, "I50", begins=True)


def test_a_set_is_written_out_as_the_codes_that_were_pinned() -> None:
    pinned = {"hf": PinnedSet(files={"hf.json": DIGEST}, codes={ICD: ("I50*", "I11.0")})}
    assert written_out(["a|1", "@hf"], pinned) == ("a|1", f"{ICD}|I50*", f"{ICD}|I11.0")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "@hf: code_sets has no hf"),
        ({"code_sets": {"hf": {"files": ["hf.json"]}}}, "code set hf is not pinned"),
        (
            {
                "code_sets": {"hf": {"files": ["hf.json", "more.json"]}},
                "pinned": {"hf": {"files": {"hf.json": DIGEST}, "codes": {ICD: ["I50"]}}},
            },
            "code set hf was changed after it was pinned",
        ),
        (
            {
                "code_sets": {"hf": {"files": ["hf.json"]}},
                "pinned": {"hf": {"files": {"hf.json": DIGEST}, "codes": {ICD: []}}},
            },
            "at least one code",
        ),
    ],
)
def test_a_set_that_sites_could_not_know_alike_makes_no_study(changes: dict, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Study.model_validate(study(features=[weight(codes=["@hf"])], **changes))


def test_what_a_set_means_is_part_of_the_digest_of_its_study() -> None:
    def digest(*codes: str) -> str:
        pinned = {"hf": {"files": {"hf.json": DIGEST}, "codes": {ICD: list(codes)}}}
        words = study(features=[weight(codes=["@hf"])], code_sets={"hf": {"files": ["hf.json"]}}, pinned=pinned)
        return Study.model_validate(words).digest

    assert digest("I50") == digest("I50")
    assert digest("I50") != digest("I50", "I11.0")
