"""Files, resource types and features in lines for people."""

from __future__ import annotations

from collections import Counter

from spinney.cohort.pull_report import PullReport
from spinney.flows.cli.site_losses import A_FOLDER, NOT_READ, feature_lines, file_lines, kind_lines


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
