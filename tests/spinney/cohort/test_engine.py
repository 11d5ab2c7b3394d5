"""From events to the table: statistics, windows, what was known when, labels and ripeness."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinney.cohort import engine
from spinney.cohort.vault import Vault
from spinney.errors import CohortRejected
from tests.made_up import (
    GLUCOSE,
    ORDERED,
    RIPENER,
    STAY,
    WEIGHT,
    WEIGHTS,
    coded,
    crowd,
    encounter,
    event,
    feature,
    frame,
    observation,
    patient,
    pulled,
    study,
)

VALUES = [70.0, 74.0, 71.0, 79.0]


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("last", 79.0),
        ("first", 70.0),
        ("mean", np.mean(VALUES)),
        ("median", np.median(VALUES)),
        ("min", 70.0),
        ("max", 79.0),
        ("slope", np.polyfit([0, 1, 2, 3], VALUES, 1)[0]),
        ("std", np.std(VALUES, ddof=1)),
        ("delta", 9.0),
        ("p10", np.quantile(VALUES, 0.1)),
        ("p90", np.quantile(VALUES, 0.9)),
        ("count", 4.0),
        ("exists", 1.0),
        ("days-since", 1.0),
    ],
)
def test_every_statistic_is_what_its_name_says(tmp_path: Path, statistic: str, expected: float) -> None:
    rows = frame(tmp_path, study(feature("x", statistic)), [patient(), STAY, RIPENER, *WEIGHTS])
    assert rows["x"].tolist() == [pytest.approx(expected, rel=1e-12)]


@pytest.mark.parametrize(
    ("statistic", "expected"), [("count", 0.0), ("exists", 0.0), ("days-since", None), ("last", None), ("std", None)]
)
def test_without_events_counts_are_zero_and_values_are_missing(
    tmp_path: Path, statistic: str, expected: float | None
) -> None:
    rows = frame(tmp_path, study(feature("x", statistic)), [patient(), STAY, RIPENER, observation("2023-05-01", 1.0)])
    assert rows["x"].isna().all() if expected is None else rows["x"].tolist() == [expected]


def test_a_window_looks_back_from_prediction_time_and_no_further(tmp_path: Path) -> None:
    of = study(feature("two_days", "count", window="2d"), feature("ever", "count"))
    rows = frame(tmp_path, of, [patient(), STAY, RIPENER, *WEIGHTS])
    assert rows[["two_days", "ever"]].to_numpy().tolist() == [[2.0, 4.0]]


def test_an_offset_moves_prediction_time_and_with_it_the_window(tmp_path: Path) -> None:
    of = study(feature("x", "last", window="1d"), offset="12h")
    later = observation("2023-01-10T21:00:00Z", 80.0)
    too_late = observation("2023-01-10T23:00:00Z", 90.0)
    rows = frame(tmp_path, of, [patient(), STAY, RIPENER, *WEIGHTS, later, too_late])
    assert rows["x"].tolist() == [80.0]


def test_what_was_entered_after_prediction_time_is_not_used_even_if_it_happened_before(tmp_path: Path) -> None:
    known = observation("2023-01-08T10:00:00Z", 71.0, issued="2023-01-08T12:00:00Z")
    entered_later = observation("2023-01-09T10:00:00Z", 99.0, issued="2023-01-11T08:00:00Z")
    rows = frame(tmp_path, study(), [patient(), STAY, RIPENER, known, entered_later])
    assert rows["weight"].tolist() == [71.0]


@pytest.mark.parametrize(
    ("when", "known"),
    [
        ("2023-01-09", True),
        ("2023-01-10", False),  # prediction time is at ten o'clock of this day
        ("2023-01-10T09:00:00Z", True),
        ("2022-12", True),
        ("2023-01", False),
        ("2022", True),
        ("2023", False),
    ],
)
def test_a_date_without_a_recording_time_is_known_from_its_end(tmp_path: Path, when: str, known: bool) -> None:
    table = frame(tmp_path, study(feature("weight", "last")), [patient(), STAY, RIPENER, observation(when, 70.0)])
    assert table["weight"].notna().tolist() == [known]


def test_the_length_of_a_stay_is_only_known_once_it_has_ended(tmp_path: Path) -> None:
    stay_days = feature("x", "last", kind="Encounter", codes=[], value="days")
    of = study({**stay_days, "unit": None}, index={"kind": "Encounter", "classes": ["IMP"], "at": "start"})
    first = encounter("2023-01-01T10:00:00Z", "2023-01-03T10:00:00Z")
    later = encounter("2023-02-01T10:00:00Z", "2023-02-05T10:00:00Z")
    rows = frame(tmp_path, of, [patient(), first, later, RIPENER])
    assert rows["x"].tolist() == [pytest.approx(np.nan, nan_ok=True), 2.0]


def test_values_of_the_same_moment_are_told_apart_by_recording_time_and_then_by_value(tmp_path: Path) -> None:
    at = "2023-01-08T10:00:00Z"
    earlier = observation(at, 90.0, issued="2023-01-08T11:00:00Z")
    later = observation(at, 71.0, issued="2023-01-08T12:00:00Z")
    same = observation(at, 72.0, issued="2023-01-08T12:00:00Z")
    for number, order in enumerate([[earlier, later, same], [same, later, earlier]]):
        rows = frame(tmp_path / str(number), study(), [patient(), STAY, RIPENER, *order])
        assert rows["weight"].tolist() == [72.0]


def test_an_event_with_two_codings_counts_once(tmp_path: Path) -> None:
    both = {"coding": [*coded(WEIGHT)["coding"], *coded(GLUCOSE)["coding"]]}
    of = study(feature("x", "count", codes=[WEIGHT, GLUCOSE]))
    rows = frame(tmp_path, of, [patient(), STAY, RIPENER, observation("2023-01-08", 1.0, code=WEIGHT) | {"code": both}])
    assert rows["x"].tolist() == [1.0]


@pytest.mark.parametrize("kind", ["count", "mean"])
def test_copies_of_one_version_that_say_unequally_much_are_one_event(tmp_path: Path, kind: str) -> None:
    one = observation("2023-01-08", 70.0, code=GLUCOSE)
    other = one | {"code": {"coding": [*coded(WEIGHT)["coding"], *coded(GLUCOSE)["coding"]]}}
    rest = [observation("2023-01-07", 80.0)]
    rows = frame(
        tmp_path, study(feature("x", kind, codes=[WEIGHT, GLUCOSE])), [patient(), STAY, RIPENER, one, other, *rest]
    )
    assert rows["x"].tolist() == [{"count": 2.0, "mean": 75.0}[kind]]


@pytest.mark.parametrize(("statistic", "expected"), [("count", 3.0), ("mean", 72.0), ("std", 3.4641016151377544)])
def test_events_that_are_equal_in_all_but_their_identity_are_several(
    tmp_path: Path, statistic: str, expected: float
) -> None:
    at = "2023-01-08T10:00:00Z"
    equal = [observation(at, 70.0), observation(at, 70.0), observation(at, 76.0)]
    rows = frame(tmp_path, study(feature("x", statistic)), [patient(), STAY, RIPENER, *equal])
    assert rows["x"].tolist() == [pytest.approx(expected)]


def test_two_orders_of_one_time_are_two_though_a_resource_that_is_delivered_twice_is_one(tmp_path: Path) -> None:
    order = event("MedicationRequest", "2023-01-08T10:00:00Z", "rx|1", status="active", intent="order")
    orders = feature("x", "count", kind="MedicationRequest", codes=["rx|1"])
    resources = [patient(), STAY, RIPENER, order, order, order | {"id": "another"}]
    assert frame(tmp_path, study(orders), resources)["x"].tolist() == [2.0]


def test_two_stays_that_end_at_one_time_are_two_rows(tmp_path: Path) -> None:
    result = pulled(tmp_path, study(), [patient(), STAY, STAY | {"id": "second"}, RIPENER, *WEIGHTS])
    assert (result.report.index_events, result.report.rows) == (2, 2)


def test_a_component_is_an_event_of_its_own(tmp_path: Path) -> None:
    pressure = observation(
        "2023-01-08",
        code="http://loinc.org|85354-9",
        component=[{"code": coded("http://loinc.org|8480-6"), "valueQuantity": {"value": 131, "code": "mm[Hg]"}}],
    )
    of = study(feature("x", "last", codes=["http://loinc.org|8480-6"], unit="mm[Hg]"))
    assert frame(tmp_path, of, [patient(), STAY, RIPENER, pressure])["x"].tolist() == [131.0]


def test_coded_values_become_the_categories_that_the_study_gives_them(tmp_path: Path) -> None:
    smoking = {
        "name": "smoking",
        "kind": "categorical",
        "categories": ["never", "current"],
        "source": {
            "kind": "Observation",
            "codes": ["http://loinc.org|72166-2"],
            "value": "text",
            "statistic": "last",
            "meaning": {"sct|1": "never", "sct|2": "current"},
        },
    }
    seen = [
        observation(day, code="http://loinc.org|72166-2", valueCodeableConcept=coded(value))
        for day, value in (("2023-01-02", "sct|1"), ("2023-01-05", "sct|2"))
    ]
    assert frame(tmp_path, study(smoking), [patient(), STAY, RIPENER, *seen])["smoking"].tolist() == ["current"]


def test_values_in_other_units_are_converted(tmp_path: Path) -> None:
    pounds = observation("2023-01-08", 150.0, unit="[lb_av]")
    sweet = feature("sugar", "last", codes=[GLUCOSE], molar_mass=180.156) | {"unit": "mg/dL"}
    sugar = observation("2023-01-08", 5.0, unit="mmol/L", code=GLUCOSE)
    rows = frame(tmp_path, study(feature("weight", "last"), sweet), [patient(), STAY, RIPENER, pounds, sugar])
    assert rows["weight"].tolist() == [pytest.approx(68.0388555)]
    assert rows["sugar"].tolist() == [pytest.approx(90.078)]


def test_two_features_may_ask_for_the_same_values_in_different_units(tmp_path: Path) -> None:
    grams = feature("grams", "last") | {"unit": "g", "range": [0, 1e6]}
    rows = frame(tmp_path, study(feature("weight", "last"), grams), [patient(), STAY, RIPENER, *WEIGHTS])
    assert rows[["weight", "grams"]].to_numpy().tolist() == [[79.0, 79000.0]]


def test_age_is_in_whole_years_at_index_time_and_sex_is_as_recorded(tmp_path: Path) -> None:
    age = {"name": "age", "kind": "continuous", "range": [0, 120], "source": {"patient": "age"}}
    sex = {"name": "sex", "kind": "categorical", "categories": ["female", "male"], "source": {"patient": "sex"}}
    people = [patient("ann", "1960-01-10"), patient("bob", "1960-01-11", "male")]
    stays = [STAY, encounter("2023-01-01", "2023-01-10T11:00:00Z", who="bob")]
    rows = frame(tmp_path, study(age, sex), [*people, *stays, RIPENER])
    assert rows[["age", "sex"]].to_numpy().tolist() == [[63.0, "female"], [62.0, "male"]]


def outcomes(folder: Path, label: dict[str, Any], *more: Any) -> list[int]:
    rows = frame(folder, study(label=label), [STAY, RIPENER, observation("2023-01-05", 1.0), *more])
    return rows["outcome"].tolist()


def test_a_readmission_within_the_horizon_makes_the_label_yes(tmp_path: Path) -> None:
    label = {"outcome": "index-event", "horizon": "30d"}
    ninth_of_february = "2023-02-09T10:00:00Z"
    assert outcomes(tmp_path / "in", label, patient(), encounter(ninth_of_february)) == [1]
    assert outcomes(tmp_path / "after", label, patient(), encounter("2023-02-09T10:00:01Z")) == [0]
    assert outcomes(tmp_path / "ambulant", label, patient(), encounter(ninth_of_february, kind="AMB")) == [0]
    assert outcomes(tmp_path / "other", label, patient(), encounter(ninth_of_february, who="bob")) == [0]
    assert outcomes(tmp_path / "plan", label, patient(), encounter(ninth_of_february, status="planned")) == [0]


def test_death_within_hours_makes_the_label_yes(tmp_path: Path) -> None:
    label = {"outcome": "death", "horizon": "8h"}
    died = [patient(deceasedDateTime=at) for at in ("2023-01-10T18:00:00Z", "2023-01-10T18:00:01Z")]
    assert outcomes(tmp_path / "in", label, died[0]) == [1]
    assert outcomes(tmp_path / "after", label, died[1]) == [0]


def died(tmp_path: Path, when: str, competing: str = "exclude", at: str = "end", **label: Any) -> tuple[list[int], Any]:
    """Outcomes, and who is left out, where ann dies at some time about her stay or after it."""
    words = {"outcome": "index-event", "horizon": "90d", "competing": competing, **label}
    index = {"kind": "Encounter", "classes": ["IMP"], "at": at}
    people = [patient(deceasedDateTime=when), patient("bob")]
    bobs = encounter("2023-02-01T10:00:00Z", "2023-02-03T10:00:00Z", who="bob")
    result = pulled(tmp_path, study(label=words, index=index), [*people, STAY, bobs, RIPENER, *WEIGHTS])
    outcomes = Vault(tmp_path / "home").read(result.cohort).to_pandas()["outcome"].astype(int).tolist()
    return sorted(outcomes), result.report.left_out


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("2023-01-10", "died before prediction time"),  # the day of the discharge: the stay ended in death
        ("2023-01-10T10:00:00Z", "died before prediction time"),
        ("2023-01-10T10:00:01Z", "died before the outcome could happen"),
        ("2023-01-11", "died before the outcome could happen"),
        ("2023-04-10", "died before the outcome could happen"),  # the day on which the horizon ends
    ],
)
def test_who_dies_before_a_readmission_could_happen_is_no_row(tmp_path: Path, when: str, why: str) -> None:
    assert died(tmp_path, when) == ([0], {why: 1})


@pytest.mark.parametrize("when", ["2023-04-11", "2023-04-10T10:00:01Z"])
def test_who_dies_after_the_horizon_was_not_readmitted(tmp_path: Path, when: str) -> None:
    assert died(tmp_path, when) == ([0, 0], {})


@pytest.mark.parametrize("when", ["2023-01-01", "2023-01-05", "2023-01-10", "2023-01-10T10:00:00Z", "2023-02-01"])
def test_a_study_may_call_a_death_within_stay_or_horizon_a_no(tmp_path: Path, when: str) -> None:
    assert died(tmp_path, when, "negative") == ([0, 0], {})


def test_who_was_dead_before_the_index_event_is_never_a_row(tmp_path: Path) -> None:
    assert died(tmp_path, "2022-12-31", "negative") == ([0], {"died before prediction time": 1})


def test_who_dies_on_the_day_of_the_admission_was_alive_when_it_began(tmp_path: Path) -> None:
    assert died(tmp_path, "2023-01-01", at="start") == ([0], {"died before the outcome could happen": 1})
    assert died(tmp_path / "death", "2023-01-01", at="start", outcome="death")[0] == [0, 1]


def test_a_readmission_before_the_death_is_one(tmp_path: Path) -> None:
    again = encounter("2023-01-20T10:00:00Z", "2023-01-22T10:00:00Z")
    ann, label = patient(deceasedDateTime="2023-01-22"), {"outcome": "index-event", "horizon": "90d"}
    result = pulled(tmp_path, study(label=label), [ann, STAY, again, RIPENER, *WEIGHTS])
    assert (result.report.rows, result.report.positive) == (1, 1)


def test_less_than_a_limit_is_no_value_unless_the_feature_takes_the_limit(tmp_path: Path) -> None:
    low = {"valueQuantity": {"value": 5, "comparator": "<", "code": "kg"}}
    of = study(
        feature("told", "min"),
        feature("limit", "min", censored="bound"),
        feature("times", "count"),
        feature("n", "last"),
    )
    resources = [patient(), STAY, RIPENER, *WEIGHTS, observation("2023-01-09T12:00:00Z", **low)]
    result = pulled(tmp_path, of, resources)
    row = Vault(tmp_path / "home").read(result.cohort).to_pandas().iloc[0]
    assert (row["told"], row["limit"], row["times"], row["n"]) == (70.0, 5.0, 5.0, 79.0)
    assert result.report.lost["told", "only a bound, such as < 5"] == 1
    assert ("limit", "only a bound, such as < 5") not in result.report.lost


def test_a_value_over_a_period_is_known_when_the_period_is_over(tmp_path: Path) -> None:
    urine = observation("2023-01-09T12:00:00Z", 60.0)
    del urine["effectiveDateTime"]
    urine["effectivePeriod"] = {"start": "2023-01-09T12:00:00Z", "end": "2023-01-10T12:00:00Z"}
    rows = frame(tmp_path, study(feature("x", "last")), [patient(), STAY, RIPENER, *WEIGHTS, urine])
    assert rows["x"].tolist() == [79.0]


def test_of_several_words_for_a_value_the_first_that_the_study_knows_counts(tmp_path: Path) -> None:
    smokes = {"kind": "categorical", "categories": ["no", "yes"]}
    source = {"kind": "Observation", "codes": [WEIGHT], "statistic": "last", "value": "text"}
    of = study({"name": "x", **smokes, "source": {**source, "meaning": {"sct|8": "no", "heavy smoker": "yes"}}})
    for number, (codings, said, expected) in enumerate(
        [(["local|1", "sct|8"], "?", "no"), (["local|1"], "heavy smoker", "yes"), (["local|1"], "yes", "yes")]
    ):
        concept = {"coding": [coded(one)["coding"][0] for one in codings], "text": said}
        word = observation("2023-01-09T12:00:00Z", valueCodeableConcept=concept)
        assert frame(tmp_path / str(number), of, [patient(), STAY, RIPENER, word])["x"].tolist() == [expected]


SAID = {
    "heavy smoker": {"text": "heavy smoker"},
    "yes": {"coding": [{"system": "sct", "code": "yes"}]},
    "no": {"coding": [{"system": "local", "code": "1"}, {"system": "sct", "code": "no"}]},
}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [([], 4), (["yes"], 1), (["sct|yes"], 1), (["loinc|yes"], 0), (["no"], 1), (["heavy smoker", "sct|no", "1"], 2)],
)
def test_only_observations_with_one_of_the_answers_count(tmp_path: Path, answers: list[str], expected: int) -> None:
    said = [observation("2023-01-09T12:00:00Z", valueCodeableConcept=concept) for concept in SAID.values()]
    people = [patient(), STAY, RIPENER, *said, observation("2023-01-09T12:00:00Z", 70.0)]
    asked = feature("x", "count", answers=answers)
    assert frame(tmp_path, study(asked, feature("y", "count")), people)["x"].tolist() == [expected]


def test_only_an_observation_with_one_of_the_answers_makes_the_label_yes_or_is_history(tmp_path: Path) -> None:
    asked = {"kind": "Observation", "codes": [WEIGHT], "answers": ["yes"]}
    label = {"outcome": "event", "events": asked, "horizon": "90d"}
    yes, no = (observation("2023-02-01", valueCodeableConcept=SAID[word]) for word in ("yes", "no"))
    assert outcomes(tmp_path / "yes", label, patient(), yes) == [1]
    assert outcomes(tmp_path / "no", label, patient(), no) == [0]
    of = study(eligible={"before": [{"name": "yes", **asked}]})
    earlier = [patient(), RIPENER, STAY, encounter("2023-03-01T10:00:00Z", "2023-03-02T10:00:00Z")]
    rows = frame(tmp_path / "before", of, [*earlier, yes, *WEIGHTS])
    assert [str(time)[:10] for time in rows["index_time"]] == ["2023-03-02"]


def test_age_is_that_of_the_day_in_the_hospital(tmp_path: Path) -> None:
    birthday = encounter("2022-12-31T20:00:00Z", "2022-12-31T23:30:00Z")  # a year later already in Berlin
    of = study(
        {"name": "age", "kind": "continuous", "range": [0, 130], "source": {"patient": "age"}}, feature("x", "last")
    )
    people = [patient(birth="1960-01-01"), birthday, RIPENER, *WEIGHTS]
    assert frame(tmp_path / "utc", of, people)["age"].tolist() == [62.0]
    assert frame(tmp_path / "berlin", of, people, timezone="Europe/Berlin")["age"].tolist() == [63.0]


def test_a_coded_event_within_the_horizon_makes_the_label_yes(tmp_path: Path) -> None:
    label = {"outcome": "event", "events": {"kind": "Condition", "codes": ["sct|22298006"]}, "horizon": "90d"}
    assert outcomes(tmp_path / "in", label, patient(), event("Condition", "2023-03-01", "sct|22298006")) == [1]
    assert outcomes(tmp_path / "other", label, patient(), event("Condition", "2023-03-01", "sct|1")) == [0]


def test_rows_whose_horizon_is_not_over_are_kept_apart_without_a_label(tmp_path: Path) -> None:
    late = encounter("2023-11-20T10:00:00Z", "2023-11-25T10:00:00Z")
    result = pulled(tmp_path, study(), [patient(), STAY, late, RIPENER, *WEIGHTS])
    vault = Vault(tmp_path / "home")
    assert (result.report.rows, result.report.unripe) == (1, 1)
    assert vault.read(result.unripe).column_names == ["patient", "index_time", "weight"]
    assert vault.read(result.unripe)["index_time"].to_pylist()[0].month == 11


def test_ripeness_goes_by_the_newest_data_and_not_by_the_calendar(tmp_path: Path) -> None:
    newest = observation("2023-02-09T09:59:59Z", 70.0)
    with pytest.raises(CohortRejected, match=r"the outcome is still open \(fewer than 5\)"):
        pulled(tmp_path / "one", study(), [patient(), STAY, newest])
    on_time = newest | {"effectiveDateTime": "2023-02-09T10:00:00Z"}
    assert pulled(tmp_path / "two", study(), [patient(), STAY, on_time]).report.rows == 1


def test_only_rows_with_at_least_one_value_of_each_are_eligible(tmp_path: Path) -> None:
    of = study(feature("weight", "last"), feature("n", "count", codes=[GLUCOSE]), eligible={"values": ["weight", "n"]})
    people = [patient("ann"), patient("bob")]
    stays = [STAY, encounter("2023-01-01", "2023-01-10", who="bob")]
    both = [observation("2023-01-05", 60.0, who=who) for who in ("ann", "bob")]
    one = observation("2023-01-05", 5.0, code=GLUCOSE, who="bob")
    result = pulled(tmp_path, of, [*people, *stays, RIPENER, *both, one])
    assert result.report.rows == 1
    assert result.report.left_out == {"without a value that makes eligible": 1}


def test_age_limits_and_the_first_day_of_the_study_leave_index_events_out_and_count_them(tmp_path: Path) -> None:
    people = [patient("ann"), patient("tim", "2010-01-01"), {"resourceType": "Patient", "id": "nob"}]
    stays = [encounter("2023-01-01", "2023-01-10", who=who) for who in ("ann", "tim", "nob")]
    old = encounter("2019-01-01", "2019-01-10")
    of = study(since="2020-01-01", eligible={"age": [18, 120]})
    report = pulled(tmp_path, of, [*people, *stays, old, RIPENER, *WEIGHTS]).report
    assert report.left_out == {"age": 1, "age unknown": 1, "before the first day of the study": 1}
    assert (report.index_events, report.rows) == (4, 1)


def test_a_patient_who_died_before_prediction_time_is_left_out(tmp_path: Path) -> None:
    people = [patient("ann", deceasedDateTime="2023-01-10T09:00:00Z"), patient("bob")]
    stays = [STAY, encounter("2023-01-01", "2023-01-10", who="bob")]
    report = pulled(tmp_path, study(), [*people, *stays, RIPENER, *WEIGHTS]).report
    assert report.left_out == {"died before prediction time": 1}


def test_the_order_of_the_files_does_not_matter_to_the_last_bit(tmp_path: Path) -> None:
    resources = crowd(60)
    digests = set()
    for number in range(3):
        random.Random(number).shuffle(resources)
        digests.add(pulled(tmp_path, study(*ORDERED), resources).cohort.digest)
        (tmp_path / "fhir").rename(tmp_path / f"fhir-{number}")
    assert len(digests) == 1


@pytest.mark.parametrize("limit", ["CHUNK_READINGS", "CHUNK_CELLS"])
def test_chunks_of_features_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    resources, of = crowd(40), study(*ORDERED, eligible={"values": [one["name"] for one in ORDERED[:2]]})
    whole = pulled(tmp_path, of, resources)
    monkeypatch.setattr(engine, limit, 1)
    (tmp_path / "fhir").rename(tmp_path / "once")
    in_parts = pulled(tmp_path, of, resources)
    assert in_parts.cohort.digest == whole.cohort.digest
    assert in_parts.report.left_out == whole.report.left_out


def test_a_table_that_does_not_fit_is_refused_before_it_is_built(tmp_path: Path) -> None:
    many = [feature(f"x{n}", "last", window=f"{n + 1}d") for n in range(3000)]
    people = [patient(f"p{n}") for n in range(50)]
    stays = [STAY | {"id": f"s{n}", "subject": {"reference": f"Patient/p{n}"}} for n in range(50)]
    with pytest.raises(
        CohortRejected, match=r"the table has at most 1 MiB.*50 rows and 3,000 features make 1 MiB.*raise"
    ):
        pulled(tmp_path, study(*many), [*people, *stays, RIPENER, observation("2023-01-01", 1.0)], largest_table_mib=1)


def test_without_any_index_event_the_message_says_where_to_look(tmp_path: Path) -> None:
    with pytest.raises(CohortRejected, match=r"index events \(Encounter\).*compare classes"):
        pulled(tmp_path, study(), [patient(), RIPENER, *WEIGHTS])


def test_words_for_yes_other_than_one_are_used_in_the_label_column(tmp_path: Path) -> None:
    of = study().model_dump(mode="json")
    of["label"]["positive"] = ["readmitted"]
    rows = frame(tmp_path, type(study()).model_validate(of), [patient(), STAY, RIPENER, *WEIGHTS])
    assert rows["outcome"].tolist() == ["no"]
