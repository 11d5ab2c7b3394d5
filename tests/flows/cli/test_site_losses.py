"""Files, resource types and features in lines for people."""

from __future__ import annotations

from collections import Counter

from spinney.cohort.attrition import Attrition, Loss
from spinney.cohort.pull_report import PullReport
from spinney.flows.cli.site_losses import (
    A_FOLDER,
    NOT_READ,
    attrition_data,
    attrition_lines,
    feature_lines,
    file_lines,
    kind_lines,
)


def test_very_many_files_are_told_together_and_the_odd_ones_by_themselves() -> None:
    bundles = {f"bundle-{number}.json": {"Patient": 1, "Observation": 5} for number in range(200)}
    report = PullReport(read=Counter(Patient=200, Observation=1000), files={**bundles, "notes.docx": {}})
    assert file_lines(report) == [
        f"notes.docx: {NOT_READ}",
        "200 files such as bundle-0.json: 1,000 Observation, 200 Patient",
    ]


def test_a_folder_in_the_folder_is_not_looked_into_and_that_is_said() -> None:
    assert file_lines(PullReport(files={"older/": {}})) == [f"older/: {A_FOLDER}"]


def test_what_is_no_resource_and_what_nobody_asked_for_is_said() -> None:
    report = PullReport(read=Counter(Patient=2), files={"export.ndjson": {"Patient": 2, "Group": 3, "": 1}})
    assert file_lines(report) == ["export.ndjson: 3 Group (not asked for), 2 Patient, 1 that are no FHIR resource"]


def test_a_resource_type_is_told_with_every_reason_why_some_do_not_count() -> None:
    report = PullReport(
        read=Counter(Condition=5051),
        quarantined=Counter({("Condition", "no date"): 5051, ("source", "not a FHIR resource"): 2}),
        unused=Counter({("Condition", "in the future"): 7, ("Condition", "did not happen"): 9}),
    )
    assert kind_lines(report) == [
        "Condition: 5,051; in quarantine: no date 5,051; not used: did not happen 9, in the future 7",
        "source: not a resource type; in quarantine: not a FHIR resource 2",
    ]


def test_a_feature_is_told_with_what_counts_and_what_is_lost() -> None:
    lost = Counter({("hb", "no unit"): 3, ("hb", "in the future"): 8})
    report = PullReport(found=Counter(hb=1200, age=4), lost=lost)
    assert feature_lines(report) == ["hb: 1,200 count; in the future 8, no unit 3"]


MERGED = (
    Loss("no index event of the study", None, 3, 0),
    Loss("age", 1, 0, 1),
    Loss("died before prediction time", 2, 1, 2),
    Loss("the outcome is still open", 4, 2, 2),
)


def test_the_way_to_the_rows_is_told_as_it_was_and_what_can_t_be_compared_is_not() -> None:
    report = PullReport(attrition=Attrition("Encounter", MERGED, 1204, 900))
    assert attrition_lines(report, None) == [
        "found in the source: events not compared (906)",
        "- no index event of the study: events not compared (3)",
        "index events: 1,211 (903)",
        "- age: 1 (0); left 1,210 (903)",
        "- died before prediction time: 2 (1)",
        "rows: 1,208 (902)",
        "- the outcome is still open: 4 (2)",
        "rows with a known outcome: 1,204 (900)",
    ]
    steps = attrition_data(report, None)["attrition"]
    assert (steps[1]["left_out"], steps[1]["patients_left_out"]) == (None, 3)


def test_where_nobody_counted_index_events_there_is_no_way_to_tell() -> None:
    assert attrition_lines(PullReport(), None) == []
    assert attrition_data(PullReport(), None) == {"attrition": [], "parts": []}


def test_a_finished_table_has_only_rows() -> None:
    report = PullReport(attrition=Attrition("", (Loss("the outcome is still open", 4, 2, 2),), 60, 50))
    assert attrition_lines(report, None) == [
        "rows of the table: 64 (52)",
        "- the outcome is still open: 4 (2)",
        "rows with a known outcome: 60 (50)",
    ]
