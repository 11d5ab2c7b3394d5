"""Members of a group make rows, and others don't: in every source, at prediction time, whatever a group is called."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from spinney.cohort.pull_report import PullReport, PullResult
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings
from spinney.errors import CohortRejected, SourceFailed
from spinney.study.study import Study
from tests.made_up import (
    NOW,
    REGISTRY,
    RIPENER,
    coded,
    encounter,
    frame,
    group,
    member,
    observation,
    patient,
    pull_at,
    pulled,
    site,
    study,
    write,
)
from tests.servers.fhir_traps import FhirTraps
from tests.services.traces import Marks
from tests.spinney.cohort.objectors import MARK, fixed_ids, listing, people, site_at, source_of

EVENTS = [
    patient(),
    patient("bob"),
    encounter("2023-02-01T10:00:00Z", "2023-02-03T10:00:00Z"),
    encounter("2023-05-01T10:00:00Z", "2023-05-03T10:00:00Z"),
    encounter("2023-05-02T10:00:00Z", "2023-05-04T10:00:00Z", who="bob"),
    RIPENER,
    observation("2022-01-05", 70.0),
]
FEBRUARY, MAY, OF_BOB = "2023-02-03", "2023-05-03", "2023-05-04"
BY_CODE = "urn:kinds|registry"


def of(*rules: dict[str, Any], **cohort: Any) -> Study:
    return study(eligible={"member_of": [{"name": "the registry", **rule} for rule in rules]}, **cohort)


IN_REGISTRY = of({"identifiers": [REGISTRY]})


def days(folder: Path, asked: Study, *groups: Any, **more: Any) -> list[str]:
    rows = frame(folder, asked, [*EVENTS, *groups], **more)
    return [f"{time:%Y-%m-%d}" for time in rows["index_time"]]


def notes_of(folder: Path, *groups: Any) -> list[str]:
    told = pulled(folder, IN_REGISTRY, [*EVENTS, *groups]).report.notes
    return [one for one in told if one.startswith("the registry")]


def test_only_members_make_rows(tmp_path: Path) -> None:
    result = pulled(tmp_path, IN_REGISTRY, [*EVENTS, group("ann")])
    assert (result.report.rows, result.report.left_out) == (2, {"not in the registry": 1})
    assert result.report.read["Group"] == 1


@pytest.mark.parametrize(
    ("who", "found"),
    [
        (member("ann", "2023-03-01"), [MAY]),
        (member("ann", None, "2023-03-01"), [FEBRUARY]),
        (member("ann", "2023-05-03"), []),
        (member("ann", "2023-05-03T10:00:00Z"), [MAY]),
        (member("ann", "2023-05-03T10:00:01Z"), []),
        (member("ann", "2023-01-01", "2023-02-03"), [FEBRUARY]),
        (member("ann", "2023-01-01", "2023-02-03T09:59:59Z"), []),
        (member("ann", inactive=True), []),
        (member("ann", "2023-01-01", inactive=True), []),
        (member("ann", "2023-01-01", "2023-03-01", inactive=True), [FEBRUARY]),
        (member("ann", "2023-01-01", "2099-01-01", inactive=True), []),
        (member("ann", "2023-01-01", inactive=False), [FEBRUARY, MAY]),
    ],
)
def test_a_member_is_one_from_the_first_day_to_the_last_and_not_while_inactive(
    tmp_path: Path, who: dict[str, Any], found: list[str]
) -> None:
    assert days(tmp_path, IN_REGISTRY, group(who, "bob")) == [*found, OF_BOB]


def test_a_member_is_looked_for_at_prediction_time(tmp_path: Path) -> None:
    later = of({"identifiers": [REGISTRY]}, offset="1d")
    assert days(
        tmp_path, later, group(member("ann", "2023-02-04T09:00:00Z"), member("bob", None, "2023-05-05T09:00:00Z"))
    ) == [
        FEBRUARY,
        MAY,
    ]


def test_somebody_may_come_and_go_and_one_of_several_groups_is_enough(tmp_path: Path) -> None:
    two = of({"identifiers": [REGISTRY, "urn:trials|7"]})
    came, again = member("ann", "2023-02-01", "2023-02-28"), member("ann", "2023-05-01")
    assert days(tmp_path, two, group(came, again), group("bob", called="urn:trials|7")) == [FEBRUARY, MAY, OF_BOB]


def test_of_several_rules_each_has_to_hold(tmp_path: Path) -> None:
    both = of({"identifiers": [REGISTRY]}, {"identifiers": ["urn:trials|7"]})
    assert days(tmp_path, both, group("ann", "bob"), group("bob", called="urn:trials|7")) == [OF_BOB]


@pytest.mark.parametrize("written", [BY_CODE, "urn:kinds|reg*", "*|registry"])
def test_a_group_is_named_by_its_code_too(tmp_path: Path, written: str) -> None:
    other = group("bob", called="urn:x|1", code=coded("urn:kinds|trial"))
    assert days(tmp_path, of({"codes": [written]}), group("ann", called="urn:x|2", code=coded(BY_CODE)), other) == [
        FEBRUARY,
        MAY,
    ]


@pytest.mark.parametrize("theirs", ["local-7", "urn:ours|registry"])
def test_a_site_says_which_of_its_groups_is_meant(tmp_path: Path, theirs: str) -> None:
    own = group("ann", called="urn:ours|registry", id="local-7")
    names = {"group_names": {theirs: REGISTRY}}
    assert days(tmp_path, IN_REGISTRY, own, group("bob", called="urn:ours|other"), **names) == [FEBRUARY, MAY]


def test_a_code_of_the_site_is_mapped(tmp_path: Path) -> None:
    own = group("ann", called="urn:x|2", code=coded("ours|r"))
    assert days(tmp_path, of({"codes": [BY_CODE]}), own, codes={"ours|r": BY_CODE}) == [FEBRUARY, MAY]


def test_a_group_that_is_not_there_is_an_error_that_says_where_to_name_it(tmp_path: Path) -> None:
    with pytest.raises(
        CohortRejected, match=r"a group that is https://registry.example.org/groups\|hf \(the registry\)"
    ) as error:
        pulled(tmp_path, IN_REGISTRY, [*EVENTS, group("ann", called="urn:x|1")])
    assert "name the one that you have under group_names in site.yaml" in str(error.value)


def test_a_group_that_names_nobody_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(
        CohortRejected, match=r"it has 1: definitional: it describes, and names nobody; mend that Group"
    ):
        pulled(tmp_path, IN_REGISTRY, [*EVENTS, group(actual=False)])


def test_what_of_a_group_does_not_count_is_told(tmp_path: Path) -> None:
    members = group(member("ann", "2022-01-01"), "bob", member("eve", inactive=True), {"entity": {"display": "?"}})
    assert notes_of(tmp_path, members, group("bob", active=False)) == [
        "the registry: 1 groups are set aside, not active",
        "the registry: 1 of 4 members don't count, a member that is no patient",
        "the registry: 1 of 4 members are inactive, and nobody knows since when",
        "the registry: 2 of 4 members have no beginning, and count from ever on",
    ]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({}, "needs identifiers or codes of a group"),
        ({"identifiers": ["hf"]}, "is no identifier; write system|value"),
        ({"codes": ["hf"]}, "is no code; write system|code"),
        ({"codes": ["@hf"]}, "code_sets has no hf"),
    ],
)
def test_a_rule_that_names_no_group_is_a_mistake_of_the_study(rule: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        of(rule)
    assert says in str(error.value)


MEMBERS = (MARK, "p1", "p2", "p3", "p5", "p7", "p8", "p9")


def registered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same hospital with a group of those of its patients who are in the registry."""
    there = {one["id"] for one in rows if one["resourceType"] == "Patient"}
    whole = group(*(member(who, "2022-01-01") for who in MEMBERS if who in there), id="registry")
    return [*rows, {**whole, "text": {"status": "generated", "div": f"<div>{', '.join(there)}</div>"}}]


EVERYBODY, OTHERS = (registered(fixed_ids(people(marked))) for marked in (True, False))


@pytest.mark.parametrize("kind", ["fhir-rest", "fhir-bulk", "ndjson", "bundle", "sql", "omop"])
def test_a_group_is_read_from_every_source_and_who_objects_is_in_none(tmp_path: Path, kind: str) -> None:
    names = {"group_names": {"7": REGISTRY}}
    with source_of(kind, tmp_path / "a", EVERYBODY) as everybody, source_of(kind, tmp_path / "b", OTHERS) as others:
        whole = pull_at(IN_REGISTRY, site_at(tmp_path / "whole", everybody, **names), now=NOW)
        listed = site_at(tmp_path / "listed", everybody, listing(tmp_path, MARK), **names)
        without = pull_at(IN_REGISTRY, listed, now=NOW)
        never = pull_at(IN_REGISTRY, site_at(tmp_path / "never", others, **names), now=NOW)
    assert whole.report.left_out["not in the registry"] == 5
    assert len(patients(tmp_path / "whole", whole)) == 8
    assert (without.cohort.digest, counts(without)) == (never.cohort.digest, counts(never))
    assert len(patients(tmp_path / "listed", without)) == 7
    hidden = listed.vault.pseudonyms(pa.array([MARK]))[0].as_py()
    marks = Marks({"identifier": MARK, "pseudonym": hidden}, 188.31337)
    assert marks.found_below([tmp_path / "listed"]) == {}


def patients(home: Path, result: PullResult) -> set[str]:
    return {*Vault(home).read(result.cohort)["patient"].to_pylist()}


def counts(result: PullResult) -> dict[str, Any]:
    return {name: value for name, value in result.report.plain().items() if name != "objections"}


def test_servers_are_asked_for_groups_only_if_the_study_asks(tmp_path: Path) -> None:
    with FhirTraps(EVERYBODY, ("combo-code",)) as server:
        source = {"kind": "fhir-rest", "base_url": server.base_url}
        pull_at(study(), site_at(tmp_path / "a", source), now=NOW)
        assert not server.asked("/Group")
        pull_at(IN_REGISTRY, site_at(tmp_path / "b", source), now=NOW)
        assert server.asked("/Group")


def test_a_query_for_groups_needs_its_columns(tmp_path: Path, sqlite: Callable[..., str]) -> None:
    url = sqlite(
        "CREATE TABLE stay (patient, time, until)", "INSERT INTO stay VALUES ('ann', '2023-01-01', '2023-01-02')"
    )
    stays = {"Encounter": "SELECT *, 'IMP' AS class, 'finished' AS status FROM stay"}
    source: dict[str, Any] = {"kind": "sql", "url": url, "events": stays}
    with pytest.raises(SourceFailed, match=r"query for Group: column group is missing"):
        pull_at(IN_REGISTRY, site_at(tmp_path, {**source, "groups": "SELECT 'ann' AS patient"}), now=NOW)
    report = PullReport()
    with pytest.raises(CohortRejected, match="name the one that you have under group_names"):
        pull_at(IN_REGISTRY, site_at(tmp_path, source), now=NOW, report=report)
    assert "Group: no query for it in site.yaml" in report.notes


def test_a_finished_table_has_no_groups() -> None:
    source = {"kind": "sql", "url": "sqlite:///x", "table": "SELECT 1", "groups": "SELECT 1"}
    with pytest.raises(ValidationError, match="a finished table has its population already"):
        SiteSettings.model_validate({"name": "x", "source": source})


def test_an_omop_without_cohorts_says_where_they_may_be(tmp_path: Path) -> None:
    with source_of("omop", tmp_path / "a", OTHERS) as source:
        with closing(sqlite3.connect(tmp_path / "a" / "omop.db")) as database:
            database.execute("DROP TABLE cohort")
        report = PullReport()
        with pytest.raises(CohortRejected, match="name the one that you have under group_names"):
            pull_at(IN_REGISTRY, site_at(tmp_path / "b", source), now=NOW, report=report)
    assert "Group: there is no table cohort; say where under results_schema in site.yaml" in report.notes


@pytest.mark.parametrize("member_", [{"entity": {"reference": f"Patient/{MARK}"}}, 7, [[f"Patient/{MARK}"]]])
def test_a_group_of_another_shape_that_names_who_objects_is_not_kept(tmp_path: Path, member_: Any) -> None:
    strange = {**group(id="strange"), "member": member_}
    with source_of("fhir-bulk", tmp_path / "a", [*EVERYBODY, strange]) as source:
        listed = site_at(tmp_path / "listed", source, listing(tmp_path, MARK))
        pull_at(IN_REGISTRY, listed, now=NOW)
    assert Marks({"identifier": MARK}, 188.31337).found_below([tmp_path / "listed"]) == {}


def test_a_group_whose_members_all_object_is_empty_and_no_mistake(tmp_path: Path) -> None:
    write(tmp_path / "fhir", [*EVENTS, group(member("ann"), quantity=1), group("bob")])
    result = pull_at(IN_REGISTRY, site(tmp_path, opt_out=[listing(tmp_path, "ann")]), now=NOW)
    assert (result.report.rows, result.report.quarantined) == (1, {})
