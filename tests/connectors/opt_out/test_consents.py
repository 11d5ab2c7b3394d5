"""FHIR Consent resources, one rule of the R4 page after the other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.opt_out.consents import ConsentList
from spinney.connectors.opt_out.identifiers import Named
from spinney.connectors.opt_out.lists import ListContent, Place
from spinney.connectors.sources import Surroundings
from spinney.connectors.sources.files import FilesSettings
from spinney.errors import SourceFailed

SCOPE = "http://terminology.hl7.org/CodeSystem/consentscope"
REASON = "http://terminology.hl7.org/CodeSystem/v3-ActReason"
ACT = "http://terminology.hl7.org/CodeSystem/v3-ActCode"
USE, STORE = "2.16.840.1.113883.3.1937.777.24.5.3.8", "2.16.840.1.113883.3.1937.777.24.5.3.7"
NOW = datetime(2024, 6, 15, 12, tzinfo=UTC)
ANN = Named("", "exact", "ann")


def consent(provision: Any = None, **more: Any) -> dict[str, Any]:
    provisions = {} if provision is None else {"provision": provision}
    scope = {"coding": [{"system": SCOPE, "code": "research"}]}
    about = {"resourceType": "Consent", "status": "active", "scope": scope, "patient": {"reference": "Patient/ann"}}
    return {**about, **provisions, **more}


def policy(code: str) -> dict[str, Any]:
    return {"coding": [{"system": "urn:oid:2.16.840.1.113883.3.1937.777.24.5.3", "code": code}]}


def rule(kind: str, *inner: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, **({"provision": [*inner]} if inner else {}), **more}


def read(folder: Path, *resources: Any, zone: str = "UTC", **how: Any) -> ListContent:
    lines = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in resources)
    (folder / "Consent.ndjson").write_text(lines)
    settings = ConsentList(source={"kind": "files", "path": folder}, **how)  # type: ignore[arg-type]
    (folder / "staging").mkdir(exist_ok=True)
    return settings.read(Place(folder / "staging", NOW, Surroundings(zone)))


def answer(folder: Path, *resources: Any, **how: Any) -> str:
    said = read(folder, *resources, **how)
    return "deny" if ANN in said.objects else "permit" if ANN in said.agrees else "unclear" if said.unclear else ""


@pytest.mark.parametrize("kind", ["deny", "permit"])
def test_the_root_provision_says_what_the_consent_is(tmp_path: Path, kind: str) -> None:
    assert answer(tmp_path, consent(rule(kind))) == kind


@pytest.mark.parametrize("status", ["draft", "proposed", "rejected", "inactive", "entered-in-error"])
def test_only_an_active_consent_counts(tmp_path: Path, status: str) -> None:
    assert answer(tmp_path, consent(rule("deny"), status=status)) == ""


def test_a_consent_of_another_scope_does_not_count(tmp_path: Path) -> None:
    treatment = consent(rule("deny"), scope={"coding": [{"system": SCOPE, "code": "treatment"}]})
    assert answer(tmp_path, treatment) == ""
    assert answer(tmp_path, treatment, scopes=[f"{SCOPE}|treatment"]) == "deny"


@pytest.mark.parametrize(("word", "said"), [("OPTIN", "permit"), ("OPTOUT", "deny")])
def test_without_a_type_the_policy_rule_is_the_base(tmp_path: Path, word: str, said: str) -> None:
    assert answer(tmp_path, consent(policyRule={"coding": [{"system": ACT, "code": word}]})) == said


def test_a_consent_that_says_neither_is_counted_as_unclear(tmp_path: Path) -> None:
    assert answer(tmp_path, consent()) == "unclear"


@pytest.mark.parametrize(
    ("period", "said"),
    [
        ({"start": "2024-06-15"}, "deny"),
        ({"start": "2024-06-16"}, ""),
        ({"end": "2024-06-15"}, "deny"),  # a day counts to its end
        ({"end": "2024-06"}, "deny"),
        ({"end": "2024"}, "deny"),
        ({"end": "2024-06-14"}, ""),
        ({"start": "2020", "end": "2054-01-31"}, "deny"),
        ({"end": "2024-06-15T13:00:00+02:00"}, ""),
        ({"end": "2024-06-15T15:00:00+02:00"}, "deny"),
        ({"start": "2023-12", "end": "2023-12"}, ""),
    ],
)
def test_it_counts_while_its_period_holds(tmp_path: Path, period: dict[str, str], said: str) -> None:
    assert answer(tmp_path, consent(rule("deny", period=period))).replace("unclear", "") == said


def test_a_time_without_an_offset_is_in_the_sites_time_zone(tmp_path: Path) -> None:
    until = consent(rule("deny", period={"end": "2024-06-15T13:30:00"}))
    assert answer(tmp_path, until) == "deny"
    assert answer(tmp_path, until, zone="Europe/Berlin") == "unclear"


def test_a_provision_within_another_is_an_exception_to_it(tmp_path: Path) -> None:
    assert answer(tmp_path, consent(rule("permit", rule("deny")))) == "deny"
    assert answer(tmp_path, consent(rule("deny", rule("permit")))) == "permit"
    assert answer(tmp_path, consent(rule("deny", rule("permit", rule("deny"))))) == "deny"


def test_an_exception_whose_period_is_over_changes_nothing(tmp_path: Path) -> None:
    over = {"period": {"end": "2024-01-01"}}
    assert answer(tmp_path, consent(rule("deny", rule("permit", **over)))) == "deny"
    assert answer(tmp_path, consent(rule("permit", rule("deny", **over)))) == "permit"


def test_of_two_exceptions_that_disagree_the_no_counts(tmp_path: Path) -> None:
    assert answer(tmp_path, consent(rule("permit", rule("permit"), rule("deny")))) == "deny"


def test_of_two_consents_that_disagree_both_are_told(tmp_path: Path) -> None:
    said = read(tmp_path, consent(rule("permit")), consent(rule("deny")))
    assert (said.objects, said.agrees, said.entries) == ({ANN}, {ANN}, 2)


def test_the_german_profile_denies_all_but_the_policies_that_it_permits(tmp_path: Path) -> None:
    german = consent(rule("deny", *(rule("permit", code=[policy(one)]) for one in (USE, STORE))))
    without = consent(rule("deny", rule("permit", code=[policy(STORE)])))
    assert answer(tmp_path, german, codes=[USE]) == "permit"
    assert answer(tmp_path, german, codes=[USE, STORE]) == "permit"
    assert answer(tmp_path, without, codes=[USE, STORE]) == "deny"
    assert answer(tmp_path, german) == "deny"  # nobody has said which policies mean this site


def test_a_provision_for_another_purpose_does_not_concern_the_site(tmp_path: Path) -> None:
    marketing, research = ({"purpose": [{"system": REASON, "code": word}]} for word in ("HMARKT", "HRESCH"))
    assert answer(tmp_path, consent(rule("permit", rule("deny", **marketing)))) == "permit"
    assert answer(tmp_path, consent(rule("permit", rule("deny", **research)))) == "deny"


@pytest.mark.parametrize("condition", ["actor", "action", "securityLabel", "class", "dataPeriod", "data", "code"])
def test_a_condition_that_nobody_can_judge_spoils_a_yes_and_not_a_no(tmp_path: Path, condition: str) -> None:
    narrow = {condition: [policy("anything")]}
    assert answer(tmp_path, consent(rule("deny", rule("permit", **narrow)))) == "deny"
    assert answer(tmp_path, consent(rule("permit", rule("deny", **narrow)))) == "deny"
    assert answer(tmp_path, consent(rule("permit", **narrow))) == "unclear"


def test_a_patient_may_be_named_by_an_identifier(tmp_path: Path) -> None:
    logical = consent(rule("deny"), patient={"identifier": {"system": "urn:mrn", "value": "7"}})
    assert read(tmp_path, logical).objects == {Named("urn:mrn", "exact", "7")}


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("Quibblewick", "1 are no Consent"),
        (consent(status="on"), "1 have no status of R4"),
        (consent(scope=None), "1 have no scope"),
        (consent([rule("deny")], decision="deny"), "1 are of FHIR R5, and R4 is needed"),
        (consent(rule("deny"), patient=None), "1 don't say whose they are"),
        (consent(rule("deny"), patient={"reference": "Group/1"}), "1 don't say whose they are"),
        (consent(rule("maybe")), "neither permits nor denies"),
        (consent(rule("deny", {"code": []})), "within another without a type"),
        (consent(rule("deny", period={"end": "Quibblewick"})), "broken period"),
    ],
)
def test_a_consent_that_is_not_understood_stops_the_pull(tmp_path: Path, broken: Any, words: str) -> None:
    with pytest.raises(SourceFailed, match=words) as error:
        read(tmp_path, consent(rule("deny")), broken)
    assert "1 of 2 can't be understood" in str(error.value)
    assert "Quibblewick" not in str(error.value)


def test_a_source_without_consents_stops_the_pull(tmp_path: Path) -> None:
    (tmp_path / "Patient.ndjson").write_text("")
    settings = ConsentList(source={"kind": "files", "path": tmp_path})  # type: ignore[arg-type]
    with pytest.raises(SourceFailed, match="holds no Consent"):
        settings.read(Place(tmp_path, NOW))


LATER = datetime(2131, 6, 15, 12, tzinfo=UTC)
OF_NOW, OF_LATER = {"start": "2024", "end": "2024"}, {"start": "2131", "end": "2131"}


@pytest.mark.parametrize(
    ("kind", "period", "own", "says"),
    [
        ("deny", OF_NOW, True, "deny"),
        ("deny", OF_LATER, True, "deny"),
        ("permit", OF_LATER, True, "permit"),
        ("permit", OF_NOW, True, ""),
        ("deny", OF_LATER, False, ""),
        ("permit", OF_NOW, False, "permit"),
    ],
)
def test_in_a_source_whose_dates_are_shifted_a_no_of_either_clock_counts_and_a_yes_of_the_later(
    tmp_path: Path, kind: str, period: dict[str, str], own: bool, says: str
) -> None:
    (tmp_path / "Consent.ndjson").write_text(json.dumps(consent(rule(kind, period=period))) + "\n")
    files = FilesSettings(path=tmp_path)
    settings = ConsentList(source=None if own else files)
    (tmp_path / "staging").mkdir()
    place = Place(tmp_path / "staging", NOW, Surroundings(), lambda: files.open(Surroundings()), LATER)
    said = settings.read(place)
    assert ("deny" if ANN in said.objects else "permit" if ANN in said.agrees else "") == says


def test_a_shift_into_the_past_brings_no_consent_back(tmp_path: Path) -> None:
    (tmp_path / "Consent.ndjson").write_text(json.dumps(consent(rule("permit", period={"end": "2023"}))) + "\n")
    (tmp_path / "staging").mkdir()
    files = FilesSettings(path=tmp_path)
    earlier = datetime(2020, 1, 1, tzinfo=UTC)
    said = ConsentList().read(
        Place(tmp_path / "staging", NOW, Surroundings(), lambda: files.open(Surroundings()), earlier)
    )
    assert said.agrees == frozenset()
