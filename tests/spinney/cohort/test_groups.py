"""Which Groups name their members, which are set aside and why, and from when until when somebody is in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spinney.cohort.events import Staged, stage
from spinney.cohort.groups import wanted_groups
from spinney.connectors.duck import open_bench
from spinney.connectors.sources import Pulled, Wanted
from tests.made_up import REGISTRY, group, member, study


def staged(folder: Path, *groups: Any, timezone: str = "UTC") -> tuple[Staged, list[Any]]:
    """What becomes of Groups, and their members as (patient, since, till, inactive, reason)."""
    file = folder / "Group.ndjson"
    file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in groups))
    with open_bench(folder, timezone) as bench:
        found = stage(bench, Pulled({"Group": (file,)}), folder)
        said = "SELECT patient, CAST(since AS VARCHAR), CAST(till AS VARCHAR), inactive, reason FROM member ORDER BY 1"
        return found, bench.execute(said).fetchall()


WITHOUT = {name: one for name, one in group("ann").items() if name != "actual"}


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (group("ann", active=False), "not active"),
        (group("ann", actual=False), "definitional: it describes, and names nobody"),
        ({**WITHOUT, "membership": "definitional"}, "definitional: it describes, and names nobody"),
        ({**WITHOUT, "membership": "conceptual"}, "neither enumerated (actual) nor definitional"),
        (WITHOUT, "neither enumerated (actual) nor definitional"),
        (group(quantity=40), "it says how many (quantity), and names nobody"),
        (
            group("ann", characteristic=[{"exclude": False}, {"exclude": True}]),
            "it leaves members out by a characteristic (exclude)",
        ),
        (group("ann", {"entity": {"reference": "Group/7"}}), "groups are members of it"),
        ({**group("ann"), "id": None}, "no id"),
        ({"resourceType": "List", "id": "1"}, "another resource type"),
        ("{broken", "not a FHIR resource"),
    ],
)
def test_a_group_that_does_not_name_its_members_is_set_aside_by_name(tmp_path: Path, one: Any, reason: str) -> None:
    found, members = staged(tmp_path, one)
    assert (found.read["Group"], found.usable["Group"], members) == (1, 0, [])
    assert found.quarantined == {("Group", reason): 1}


@pytest.mark.parametrize(
    "one", [group("ann"), {**WITHOUT, "membership": "enumerated"}, group("ann", quantity=1, active=True)]
)
def test_groups_of_r4_and_of_r5_name_their_members(tmp_path: Path, one: Any) -> None:
    found, members = staged(tmp_path, one)
    assert (found.usable["Group"], members) == (1, [("ann", None, None, False, None)])


def test_the_first_day_of_a_member_counts_when_it_is_over_and_the_last_to_its_end(tmp_path: Path) -> None:
    _, (ann, bob) = staged(
        tmp_path,
        group(member("ann", "2023-03-26", "2023-03-27"), member("bob", "2023-03-26T10:00:00Z", "2023", inactive=True)),
        timezone="Europe/Berlin",
    )
    assert ann == ("ann", "2023-03-26 21:59:59.999999", "2023-03-27 21:59:59.999999", False, None)
    assert bob == ("bob", "2023-03-26 10:00:00", "2023-12-31 22:59:59.999999", True, None)


def test_a_member_that_is_no_patient_or_has_a_broken_date_is_told_so(tmp_path: Path) -> None:
    doctor = {"entity": {"reference": "Practitioner/7"}}
    _, members = staged(tmp_path, group(doctor, member("bob", "soon"), member("eve", end="32.1.2023")))
    assert [(one[0], one[4]) for one in members] == [
        ("bob", "broken date"),
        ("eve", "broken date"),
        (None, "a member that is no patient"),
    ]


def test_only_the_newest_version_of_a_group_counts(tmp_path: Path) -> None:
    old = group("ann", "bob", id="g", meta={"lastUpdated": "2023-05-31T23:00:00Z"})
    new = group("bob", id="g", meta={"lastUpdated": "2023-06-01T00:30:00+01:00"})
    found, members = staged(tmp_path, new, old)
    assert (found.read["Group"], [one[0] for one in members]) == (1, ["bob"])


def test_rows_of_a_query_are_members_of_the_group_that_they_name(tmp_path: Path) -> None:
    table = {"patient": ["ann", None, "eve"], "group": [REGISTRY, REGISTRY, None], "start": ["2023-01-01", None, None]}
    pq.write_table(pa.table(table), tmp_path / "Group.parquet")
    with open_bench(tmp_path) as bench:
        found = stage(bench, Pulled({"Group": (tmp_path / "Group.parquet",)}), tmp_path)
        rows = bench.execute("SELECT patient, CAST(since AS VARCHAR), till, reason FROM member ORDER BY 1").fetchall()
    assert rows == [
        ("ann", "2023-01-01 23:59:59.999999", None, None),
        ("eve", None, None, "no group"),
        (None, None, None, "a member that is no patient"),
    ]
    assert (found.read["Group"], found.quarantined) == (3, {("Group", "no group"): 1})


def test_groups_are_asked_for_only_if_the_study_asks() -> None:
    assert wanted_groups(study(), {"7": REGISTRY}) == []
    rule = {"name": "registry", "identifiers": [REGISTRY]}
    of_it = study(eligible={"member_of": [rule]})
    assert wanted_groups(of_it, {"7": REGISTRY, "8": "urn:other|1"}) == [Wanted("Group", ("7", REGISTRY))]
