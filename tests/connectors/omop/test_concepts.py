"""Codes of a study as concepts, and concepts as codes."""

from __future__ import annotations

from sqlalchemy import column

from spinney.connectors.omop import concepts
from spinney.connectors.omop.concepts import EveryCode, ListedCodes, any_in, classes_of
from tests.connectors.omop.conftest import CONCEPTS, PERSON, Opened

DIABETES, ICD = "http://snomed.info/sct|44054006", "http://hl7.org/fhir/sid/icd-10-cm|E11.9"
OHDSI = "https://fhir-terminology.ohdsi.org|201826"


def test_a_row_is_called_as_the_study_calls_its_standard_or_its_source_concept(opened: Opened) -> None:
    with opened(*PERSON, *CONCEPTS) as model:
        codes = ListedCodes(model, [DIABETES, ICD, "omop|201826", OHDSI, "House|x", "omop-source|DM"])
    assert set(codes.of(201826, 45, "E11.9")) == {DIABETES, ICD, "omop|201826", OHDSI}
    assert codes.of(7, None, None) == ["House|x"]
    assert codes.of(0, 0, "DM") == ["omop-source|DM"]
    assert codes.of(201826, 0, "DM") != ["omop-source|DM"]
    assert codes.of(12, None, None) == []


def test_a_code_that_no_vocabulary_has_is_no_concept(opened: Opened) -> None:
    with opened(*PERSON, *CONCEPTS) as model:
        codes = ListedCodes(model, ["http://loinc.org|44054006", "omop|x", "Visit|'; DROP TABLE person"])
    assert codes.of(201826, 45, None) == []


def test_without_a_list_a_row_is_called_by_all_its_names() -> None:
    names = EveryCode().of(201826, 45, "E11.9", "SNOMED", "44054006", "ICD10CM", "E11.9")
    assert names == (DIABETES, "omop|201826", ICD, "omop|45")
    assert EveryCode().of(0, None, "DM", None, None, None, None) == ("omop-source|DM",)
    assert EveryCode().of(0, None, None, None, None, None, None) == (None,)
    assert EveryCode().of(9, 9, None, None, None, None, None) == ("omop|9",)


def test_many_values_are_asked_for_in_parts_that_every_database_takes() -> None:
    words = str(
        any_in(column("c"), range(3 * concepts.MOST_AT_ONCE + 1)).compile(compile_kwargs={"literal_binds": True})
    )
    assert words.count(" IN (") == 4
    assert max(part.count(",") for part in words.split(" IN ")) < 1_000
    assert " IN " not in str(any_in(column("c"), []))


def test_a_kind_of_visit_is_of_the_class_of_the_nearest_one_above_it(opened: Opened) -> None:
    rows = [(9201, 111, 2), (9203, 111, 1), (9201, 262, 1), (9202, 222, 1)]
    values = ", ".join(f"({above}, {below}, {levels})" for above, below, levels in rows)
    table = "CREATE TABLE concept_ancestor (ancestor_concept_id INTEGER, descendant_concept_id INTEGER, "
    with opened(
        *PERSON,
        *CONCEPTS,
        f"{table} min_levels_of_separation INTEGER)",
        f"INSERT INTO concept_ancestor VALUES {values}",
    ) as model:
        classes = classes_of(model)
    assert (classes[111], classes[222], classes[262], classes[9203]) == ("EMER", "AMB", "IMP", "EMER")
    assert 45 not in classes
