"""When two words mean one patient."""

from __future__ import annotations

import pytest

from spinney.connectors.opt_out.identifiers import Named, digits, listed_name, names_of, plain_id
from spinney.errors import SourceFailed


@pytest.mark.parametrize(
    "word",
    ["123", " 123\t", "Patient/123", "Patient/123/_history/4", "https://his.example/fhir/Patient/123", "urn:uuid:123"],
)
def test_a_reference_means_what_it_refers_to(word: str) -> None:
    assert plain_id(word) == "123"


@pytest.mark.parametrize("other", ["0123", "123a", "A123", "1-23"])
def test_everything_else_counts_where_the_comparison_is_exact(other: str) -> None:
    assert plain_id(other) == other
    assert {*names_of(other)}.isdisjoint({listed_name("123", "", "exact", "it")})


@pytest.mark.parametrize("word", ["943 476 5919", "9434765919", "943-476-5919", "Patient/9434765919", "09434765919"])
def test_only_digits_count_where_the_list_says_so(word: str) -> None:
    assert listed_name("943 476 5919", "", "digits", "it") in names_of(word)
    assert digits(word) == "9434765919"


def test_identifiers_of_two_systems_are_never_the_same() -> None:
    assert listed_name("7", "urn:mrn", "exact", "it") == Named("urn:mrn", "exact", "7")
    assert listed_name("7", "urn:mrn", "exact", "it") not in (*names_of("7"), *names_of("7", "urn:other"))


@pytest.mark.parametrize(("word", "compare"), [("", "exact"), ("  ", "exact"), ("a\0b", "exact"), ("x" * 300, "exact")])
def test_what_can_be_no_identifier_stops_the_pull_without_being_quoted(word: str, compare: str) -> None:
    with pytest.raises(SourceFailed, match="line 3 is no identifier of a patient; mend the list") as error:
        listed_name(word, "", compare, "line 3")  # type: ignore[arg-type]
    assert not word.strip() or word not in str(error.value)


def test_an_entry_without_digits_is_none_where_only_digits_count() -> None:
    with pytest.raises(SourceFailed, match="line 3 has no digits"):
        listed_name("Smith", "", "digits", "line 3")
