"""How many index events each rule leaves out, and where a patient loses the last one; more of it in tests/oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from spinney.cohort.attrition import Attrition, Loss
from spinney.cohort.fates import attrition_of_table
from tests.made_up import encounter, event, observation, patient, pulled, study

HEART = "http://hl7.org/fhir/sid/icd-10|I50.9"
END = encounter("2023-12-20T10:00:00Z", "2023-12-20T12:00:00Z", who="end", kind="AMB")


def fate(folder: Path, records: list[Any], **cohort: Any) -> Attrition:
    found = pulled(folder, study(**cohort), [*records, END, observation("2022-01-05", 70.0)]).report.attrition
    assert found is not None
    return found


def stays(who: str, *months: int) -> list[Any]:
    return [encounter(f"2023-{month:02}-01T10:00:00Z", f"2023-{month:02}-03T10:00:00Z", who=who) for month in months]


def test_a_patient_is_lost_where_the_last_of_many_index_events_is(tmp_path: Path) -> None:
    people = [patient("ann"), patient("bob"), patient("cat", "2010-01-01"), patient("dan")]
    records = [*stays("ann", 1, 4, 8), *stays("bob", 1), *stays("cat", 4, 5), event("Condition", "2022-05-05", HEART)]
    found = fate(
        tmp_path,
        [*people, *records],
        since="2023-02-01",
        eligible={"age": [18, 110], "none_before": [{"name": "stay", "kind": "Encounter", "within": "100d"}]},
    )
    assert found.losses == (
        Loss("no index event of the study", 1, 2, 1),  # dan has none, and whoever came at the end another one
        Loss("before the first day of the study", 2, 1, 2),
        Loss("age unknown", 0, 0, 0),
        Loss("age", 2, 1, 1),
        Loss("stay before", 1, 0, 1),
        Loss("died before prediction time", 0, 0, 0),
        Loss("prediction time not reached", 0, 0, 0),
        Loss("died before the outcome could happen", 0, 0, 0),
        Loss("the outcome is still open", 0, 0, 0),
    )
    assert (found.rows, found.patients) == (1, 1)


def test_two_rules_of_one_name_are_two_steps(tmp_path: Path) -> None:
    seen = event("Condition", "2023-03-20T10:00:00Z", HEART)
    rule = {"name": "heart failure", "kind": "Condition"}
    rules = [{**rule, "codes": [HEART]}, {**rule, "within": "60d"}]
    found = fate(tmp_path, [patient(), *stays("ann", 1, 4, 8), seen], eligible={"before": rules})
    assert [(loss.reason, loss.events) for loss in found.losses[1:3]] == [("no heart failure before", 1)] * 2
    assert found.left_out == {"no heart failure before": 2}


def test_where_index_times_are_repeated_events_are_not_compared_with_them(tmp_path: Path) -> None:
    index = {"kind": "Encounter", "classes": ["IMP"], "every": "12h", "up_to": "24h"}
    found = fate(tmp_path, [patient(), *stays("ann", 1)], index=index)
    assert found.losses[0] == Loss("no index event of the study", None, 1, 0)
    assert (found.rows, found.patients, found.index_events) == (3, 1, 3)


def test_a_finished_table_loses_rows_whose_outcome_is_open() -> None:
    table = pa.table({"patient": ["a", "a", "b", "c", "c"], "ripe": [True, False, True, False, False]})
    assert attrition_of_table(table) == Attrition("", (Loss("the outcome is still open", 3, 1, 2),), 2, 2)
