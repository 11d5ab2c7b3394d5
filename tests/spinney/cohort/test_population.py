"""Who becomes a row: each rule of a population on a few patients whose fate is plain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spinney.errors import CohortRejected
from tests.made_up import RIPENER, coded, encounter, event, frame, observation, patient, pulled, study

HEART = "http://hl7.org/fhir/sid/icd-10|I50.9"
STAYS = [
    encounter("2023-02-01T10:00:00Z", "2023-02-03T10:00:00Z"),
    encounter("2023-05-01T10:00:00Z", "2023-05-01T16:00:00Z"),
]
FEBRUARY, MAY = "2023-02-03 10:00", "2023-05-01 16:00"


def index_times(folder: Path, rules: dict[str, Any], *more: Any, **cohort: Any) -> list[str]:
    rows = frame(
        folder, study(eligible=rules, **cohort), [patient(), *STAYS, RIPENER, observation("2022-01-05", 70.0), *more]
    )
    return [f"{time:%Y-%m-%d %H:%M}" for time in rows["index_time"]]


def had(code: str = HEART, **more: Any) -> dict[str, Any]:
    return {"kind": "Condition", "codes": [code], "name": "heart failure", **more}


def test_a_diagnosis_before_makes_a_row_and_one_afterwards_does_not(tmp_path: Path) -> None:
    assert index_times(tmp_path, {"before": [had()]}, event("Condition", "2023-03-01T10:00:00Z", HEART)) == [MAY]


def test_a_washout_takes_out_whom_a_diagnosis_was_made_in_it(tmp_path: Path) -> None:
    seen = event("Condition", "2023-01-01T10:00:00Z", HEART)
    assert index_times(tmp_path, {"none_before": [had(within="90d")]}, seen) == [MAY]


def test_a_diagnosis_that_was_entered_later_is_not_known_yet(tmp_path: Path) -> None:
    late = event("Condition", "2023-01-01T10:00:00Z", HEART, recordedDate="2023-02-10T10:00:00Z")
    assert index_times(tmp_path / "needed", {"before": [had()]}, late) == [MAY]
    assert index_times(tmp_path / "refused", {"none_before": [had()]}, late) == [FEBRUARY]


def test_a_diagnosis_of_a_day_is_known_at_its_end(tmp_path: Path) -> None:
    same_day = event("Condition", "2023-05-01", HEART)
    assert index_times(tmp_path, {"none_before": [had()]}, same_day) == [FEBRUARY, MAY]


def test_the_index_event_is_not_its_own_history(tmp_path: Path) -> None:
    earlier = {"kind": "Encounter", "classes": ["IMP"], "name": "stay"}
    assert index_times(tmp_path / "needed", {"before": [earlier]}) == [MAY]
    assert index_times(tmp_path / "refused", {"none_before": [earlier]}) == [FEBRUARY]


def test_history_ends_at_index_time_and_not_at_prediction_time(tmp_path: Path) -> None:
    between = event("Condition", "2023-02-03T12:00:00Z", HEART)
    assert index_times(tmp_path, {"none_before": [had(within="30d")]}, between, offset="1d") == [FEBRUARY, MAY]


def test_the_first_is_the_first_whatever_the_other_rules_say(tmp_path: Path) -> None:
    seen = event("Condition", "2023-03-01T10:00:00Z", HEART)
    assert index_times(tmp_path / "1", {"only": "first"}, seen) == [FEBRUARY]
    assert index_times(tmp_path / "2", {"only": "first-eligible", "before": [had()]}, seen) == [MAY]
    result = pulled(
        tmp_path / "3",
        study(eligible={"only": "first-eligible", "before": [had()]}),
        [patient(), *STAYS, encounter("2023-06-01", "2023-06-02"), RIPENER, seen, observation("2023-01-05", 70.0)],
    )
    assert result.report.left_out == {"no heart failure before": 1, "not the patient's first that is eligible": 1}


def test_the_first_is_looked_for_before_the_first_day_of_the_study_too(tmp_path: Path) -> None:
    after = study(eligible={"only": "first"}, since="2023-03-01")
    ben = [patient("ben"), encounter("2023-04-01", "2023-04-02", who="ben")]
    rows = frame(tmp_path, after, [patient(), *STAYS, *ben, RIPENER, observation("2023-01-05", 70.0)])
    assert [f"{time:%Y-%m-%d}" for time in rows["index_time"]] == ["2023-04-02"]


def test_who_was_not_in_sight_for_long_enough_is_no_row(tmp_path: Path) -> None:
    assert index_times(tmp_path / "1", {"observed": {"at_least": "60d"}}) == [MAY]
    weighed = {"at_least": "365d", "by": {"kind": "Observation"}}
    assert index_times(tmp_path / "2", {"observed": weighed}) == [FEBRUARY, MAY]


def test_a_stay_that_was_too_short_is_no_row(tmp_path: Path) -> None:
    assert index_times(tmp_path, {"minimum_stay": "1d"}) == [FEBRUARY]


def test_a_stay_that_goes_on_has_lasted_until_prediction_time(tmp_path: Path) -> None:
    index = {"kind": "Encounter", "classes": ["IMP"], "at": "start"}
    assert index_times(tmp_path, {"minimum_stay": "12h"}, index=index, offset="12h") == ["2023-02-01 10:00"]


def test_what_is_not_known_yet_at_prediction_time_is_no_rule() -> None:
    index = {"kind": "Encounter", "at": "start"}
    with pytest.raises(ValidationError, match="minimum_stay: 24h is not known yet at prediction time; say at: end"):
        study(index=index, eligible={"minimum_stay": "24h"})


def test_codes_of_rules_may_be_beginnings_too(tmp_path: Path) -> None:
    seen = event("Condition", "2023-03-01T10:00:00Z", HEART)
    assert index_times(tmp_path, {"before": [had("http://hl7.org/fhir/sid/icd-10|I50*")]}, seen) == [MAY]


def stay(
    name: str, start: str, end: str | None, kind: str = "IMP", within: str = "", home: str = "", **more: Any
) -> Any:
    part = {"partOf": {"reference": f"Encounter/{within}"}} if within else {}
    left = {"hospitalization": {"dischargeDisposition": coded(home)}} if home else {}
    return encounter(start, end, kind=kind) | {"id": name} | part | left | more


def times_of(folder: Path, index: dict[str, Any], *stays: Any, **cohort: Any) -> list[str]:
    of = study(index={"kind": "Encounter", **index}, **cohort)
    rows = frame(folder, of, [patient(), *stays, RIPENER, observation("2022-01-05", 70.0)])
    return [f"{time:%Y-%m-%d %H:%M}" for time in rows["index_time"] if time.month < 12]


EMERGENCY = stay("visit", "2023-02-01T08:00:00Z", "2023-02-01T12:00:00Z", "EMER", within="bed")
BED = stay("bed", "2023-02-01T11:00:00Z", "2023-02-04T10:00:00Z", within="whole")
WHOLE = stay("whole", "2023-02-01T08:00:00Z", "2023-02-05T10:00:00Z")


def test_a_visit_within_a_stay_is_found_however_deep_it_lies(tmp_path: Path) -> None:
    alone = stay("alone", "2023-03-01T08:00:00Z", "2023-03-01T12:00:00Z", "EMER")
    index = {"classes": ["EMER"], "part_of": {"classes": ["IMP"]}}
    assert times_of(tmp_path, index, EMERGENCY, BED, WHOLE, alone) == ["2023-02-01 08:00"]


def test_a_visit_is_part_of_a_stay_once_that_has_begun(tmp_path: Path) -> None:
    index = {"classes": ["EMER"], "part_of": {"classes": ["IMP"]}}
    with pytest.raises(CohortRejected, match="has index events"):
        times_of(tmp_path / "1", index, EMERGENCY, BED)
    assert times_of(tmp_path / "2", index | {"at": "end"}, EMERGENCY, BED) == ["2023-02-01 12:00"]


def test_a_visit_that_is_part_of_no_stay_yet_is_nobodys_first(tmp_path: Path) -> None:
    index, later = {"classes": ["EMER"], "part_of": {"classes": ["IMP"]}}, "2023-03-01T08:00:00Z"
    within = [stay("bed2", later, "2023-03-04T10:00:00Z"), stay("visit2", later, None, "EMER", within="bed2")]
    found = times_of(tmp_path, index, EMERGENCY, BED, *within, eligible={"only": "first"})
    assert found == ["2023-03-01 08:00"]


def test_a_visit_before_its_stay_is_not_the_first_visit_of_a_stay(tmp_path: Path) -> None:
    ward = stay("ward", "2023-05-01T08:00:00Z", "2023-05-03T12:00:00Z")
    later = stay("later", "2023-05-02T08:00:00Z", "2023-05-02T12:00:00Z", "EMER", within="ward")
    early = stay("early", "2023-04-30T08:00:00Z", "2023-04-30T12:00:00Z", "EMER", within="ward")
    index = {"classes": ["EMER"], "part_of": {"classes": ["IMP"]}}
    found = times_of(tmp_path, index, early, ward, later, eligible={"only": "first"})
    assert found == ["2023-05-02 08:00"]


def test_parts_of_stays_can_be_left_out(tmp_path: Path) -> None:
    assert times_of(tmp_path, {"classes": ["IMP"], "part_of": "nothing"}, EMERGENCY, BED, WHOLE) == ["2023-02-01 08:00"]


def test_only_who_went_home_is_a_row(tmp_path: Path) -> None:
    at_home = stay("1", "2023-02-01T08:00:00Z", "2023-02-02T12:00:00Z", home="way|home")
    elsewhere = stay("2", "2023-03-01T08:00:00Z", "2023-03-02T12:00:00Z", home="way|hosp")
    for number, code in enumerate(("way|home", "*|home", "way|ho*")):
        found = times_of(tmp_path / str(number), {"at": "end", "discharged_to": [code]}, at_home, elsewhere)
        assert found == ["2023-02-02 12:00", "2023-03-02 12:00"][: 2 if code == "way|ho*" else 1]


def test_stays_with_less_than_a_day_between_are_one(tmp_path: Path) -> None:
    stays = [
        stay("1", "2023-02-01T08:00:00Z", "2023-02-03T12:00:00Z", home="way|hosp"),
        stay("2", "2023-02-04T11:59:00Z", "2023-02-09T12:00:00Z", home="way|home"),
        stay("3", "2023-02-10T12:00:00Z", "2023-02-11T12:00:00Z", home="way|hosp"),
    ]
    index = {"at": "end", "merge_within": "24h"}
    assert times_of(tmp_path / "1", index, *stays) == ["2023-02-09 12:00", "2023-02-11 12:00"]
    assert times_of(tmp_path / "2", index | {"discharged_to": ["way|home"]}, *stays) == ["2023-02-09 12:00"]


def test_a_transfer_is_no_readmission(tmp_path: Path) -> None:
    stays = [
        stay("1", "2023-02-01T08:00:00Z", "2023-02-03T12:00:00Z"),
        stay("2", "2023-02-03T13:00:00Z", "2023-02-09T12:00:00Z"),
    ]
    outcomes = {}
    for name, more in {"single": {}, "merged": {"merge_within": "24h"}}.items():
        of = study(index={"kind": "Encounter", "classes": ["IMP"], **more})
        outcomes[name] = frame(tmp_path / name, of, [patient(), *stays, RIPENER, observation("2022-01-05", 70.0)])
    assert outcomes["single"]["outcome"].tolist() == [1, 0]
    assert outcomes["merged"]["outcome"].tolist() == [0]


def test_index_times_come_again_while_a_stay_lasts(tmp_path: Path) -> None:
    index = {"every": "12h", "up_to": "36h"}
    short = stay("1", "2023-02-01T00:00:00Z", "2023-02-02T00:00:00Z")
    long = stay("2", "2023-03-01T00:00:00Z", "2023-03-05T00:00:00Z")
    found = ["2023-02-01 00:00", "2023-02-01 12:00"]
    found += ["2023-03-01 00:00", "2023-03-01 12:00", "2023-03-02 00:00", "2023-03-02 12:00"]
    assert times_of(tmp_path / "1", index, short, long) == found
    assert times_of(tmp_path / "2", index, short, long, eligible={"only": "first"}) == found[:2]
    assert times_of(tmp_path / "3", index, short, long, eligible={"minimum_stay": "24h"}) == found[4:]


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ({"discharged_to": ["way|home"]}, "not known at the start; say at: end"),
        ({"every": "1h", "at": "end"}, "while the event lasts; say at: start"),
        ({"every": "0h"}, "0 is no time"),
        ({"kind": "Procedure", "part_of": "nothing"}, "belong to kind: Encounter"),
        ({"at": "end", "discharged_to": ["@home"]}, "code_sets has no home"),
    ],
)
def test_a_rule_that_can_t_be_applied_is_refused(index: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        study(index={"kind": "Encounter", **index})
