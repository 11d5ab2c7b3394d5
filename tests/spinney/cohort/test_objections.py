"""Who has objected as of now, all lists together, and what stops a pull."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spinney.cohort.objections import ObjectionJudge, Objections, pull_objections
from spinney.connectors.opt_out.identifiers import Named
from spinney.errors import SourceFailed
from spinney.study.study import Study
from tests.made_up import NOW, patient, site, study, write
from tests.spinney.cohort.objectors import listing


def asked(folder: Path, *lists: dict[str, Any], of: Study | None = None) -> Objections:
    here = site(folder, opt_out=lists)
    return pull_objections(here.objections(), of or study(), here.vault, NOW)


def own(*names: str) -> frozenset[Named]:
    return frozenset(Named("", "exact", name) for name in names)


def consents(folder: Path, **answers: str) -> dict[str, Any]:
    scope = {"coding": [{"code": "research"}]}
    write(
        folder / "fhir",
        [
            {"resourceType": "Consent", "id": who, "status": "active", "scope": scope, "provision": {"type": answer}}
            | {"patient": {"reference": f"Patient/{who}"}}
            for who, answer in answers.items()
        ],
    )
    return {"kind": "consent"}


def test_all_lists_are_taken_together(tmp_path: Path) -> None:
    found = asked(tmp_path, listing(tmp_path, "ann", "bob"), consents(tmp_path, bob="deny", cy="deny", di="permit"))
    assert (found.objects, found.agrees) == (own("ann", "bob", "cy"), own("di"))


def test_the_hash_is_that_of_the_identifiers_in_any_order_and_of_no_others(tmp_path: Path) -> None:
    first = asked(tmp_path, listing(tmp_path, "ann", "bob")).digest
    assert asked(tmp_path, listing(tmp_path, "bob", "Patient/ann", "bob")).digest == first
    assert asked(tmp_path, listing(tmp_path, "ann")).digest != first
    assert len(first) == 64


def test_a_list_that_was_not_empty_the_night_before_and_is_stops_the_pull(tmp_path: Path) -> None:
    asked(tmp_path, listing(tmp_path, "ann", "bob"))
    with pytest.raises(SourceFailed, match=r"the list opt-out\.txt is empty and had 2 entries the night before; mend"):
        asked(tmp_path, listing(tmp_path))
    assert asked(tmp_path, {**listing(tmp_path), "may_be_empty": True}).objects == own()
    assert asked(tmp_path, listing(tmp_path)).objects == own()  # now it was empty the night before


def test_one_empty_list_of_two_stops_the_pull_though_the_other_is_not(tmp_path: Path) -> None:
    other = listing(tmp_path / "other", "cy")
    asked(tmp_path, other, listing(tmp_path, "ann"))
    with pytest.raises(SourceFailed, match="is empty and had 1 entries"):
        asked(tmp_path, other, listing(tmp_path))


def test_what_is_kept_of_a_list_are_lengths(tmp_path: Path) -> None:
    asked(tmp_path, listing(tmp_path, "ann", "bob"))
    kept = json.loads((tmp_path / "home" / "vault" / "objections" / "stays.json").read_bytes())
    assert (list(kept["lengths"].values()), kept["missing"], kept["agreed"]) == ([2], [], [])


def test_damaged_notes_of_the_night_before_are_told(tmp_path: Path) -> None:
    asked(tmp_path, listing(tmp_path, "ann"))
    (tmp_path / "home" / "vault" / "objections" / "stays.json").write_text("[]")
    with pytest.raises(SourceFailed, match="is damaged; delete it"):
        asked(tmp_path, listing(tmp_path, "ann"))


def test_a_study_that_wants_a_yes_is_stopped_where_no_list_says_who_agrees(tmp_path: Path) -> None:
    strict = Study.model_validate({**study().model_dump(mode="json"), "consent": "required"})
    with pytest.raises(SourceFailed, match="stays takes only patients who agree; say in site"):
        asked(tmp_path, listing(tmp_path, "ann"), of=strict)
    agreed = {**listing(tmp_path, "ann"), "means": "consent"}
    assert asked(tmp_path, agreed, of=strict).agrees == own("ann")


def test_only_those_who_agree_and_do_not_object_take_part_where_the_study_wants_a_yes() -> None:
    judge = ObjectionJudge(Objections(objects=own("bob"), agrees=own("ann", "bob"), required=True))
    assert [judge.out(who) for who in ("ann", "bob", "cy", "cy", "Patient/cy")] == [False, True, True, True, True]
    counts = judge.counts
    assert (counts.objecting, counts.unasked, counts.agreed, counts.unmatched) == (1, 1, 2, 0)


def test_a_patient_whom_the_source_does_not_describe_is_left_out_where_others_are_looked_up() -> None:
    judge = ObjectionJudge(Objections(objects=frozenset({Named("urn:mrn", "digits", "943476")})))
    judge.describe("ann", [("urn:mrn", "943 476")])
    judge.describe("bob", [("urn:other", "943 476")])
    assert [judge.out(who) for who in ("ann", "bob", "zoe")] == [True, False, True]
    assert (judge.counts.objecting, judge.counts.unknown, judge.counts.unmatched) == (1, 1, 0)


def test_reading_the_lists_leaves_nothing_of_anybody_in_the_house(tmp_path: Path) -> None:
    write(tmp_path / "fhir", [patient()])
    asked(tmp_path, listing(tmp_path, "canary-17"), consents(tmp_path, **{"canary-18": "deny"}))
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes()
