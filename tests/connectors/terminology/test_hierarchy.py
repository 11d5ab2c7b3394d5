"""What is below what."""

from __future__ import annotations

import pytest

from spinney.connectors.terminology.hierarchy import Hierarchy, by_beginning
from spinney.errors import StudyInvalid

ICD = "http://hl7.org/fhir/sid/icd-10"


def test_everything_below_a_code_is_found_once_however_many_ways_lead_there() -> None:
    tree = Hierarchy({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["e"]}, "abcdef")
    assert tree.below("a") == {*"bcde"}
    assert tree.above("e") == {*"abcd"}
    assert tree.below("f") == frozenset()


def test_a_hierarchy_that_leads_back_is_refused() -> None:
    with pytest.raises(StudyInvalid, match="goes in a circle: b is below itself"):
        Hierarchy({"a": ["b"], "b": ["c"], "c": ["b"]}, "abc").below("b")


def test_a_chain_of_a_hundred_thousand_is_walked() -> None:
    assert len(Hierarchy({str(n): [str(n + 1)] for n in range(100_000)}, ()).below("0")) == 100_000


@pytest.mark.parametrize(
    ("system", "word", "written"),
    [
        (ICD, "I50", "I50*"),
        (ICD, "I50.1", "I50.1*"),
        ("http://hl7.org/fhir/sid/icd-9-cm", "428", "428*"),
        ("http://hl7.org/fhir/sid/icd-9-cm", "V58.6", "V58.6*"),
        ("http://www.whocc.no/atc", "B", "B*"),
        ("http://www.whocc.no/atc", "B01AB", "B01AB*"),
        ("http://fhir.de/CodeSystem/bfarm/ops", "5-361", "5-361*"),
    ],
)
def test_icd_atc_and_ops_say_by_their_beginning_what_is_below(system: str, word: str, written: str) -> None:
    found = by_beginning(system, word)
    assert found is not None
    assert found.written() == {system: (written,)}


@pytest.mark.parametrize(
    ("system", "word"),
    [
        (ICD, "I30-I52"),
        (ICD, "IX"),
        (ICD, "I5"),
        ("http://hl7.org/fhir/sid/icd-9-cm", "42"),
        ("http://www.whocc.no/atc", "B0"),
        ("http://www.whocc.no/atc", "B01AB0"),
        ("http://snomed.info/sct", "84114007"),
    ],
)
def test_chapters_blocks_halves_and_other_systems_do_not(system: str, word: str) -> None:
    assert by_beginning(system, word) is None
