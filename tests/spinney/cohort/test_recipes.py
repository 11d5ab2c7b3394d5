"""What a study wants of a source: every kind once, as far back as some feature looks, in the site's own codes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spinney.cohort.recipes import definition_of, event_features, unit_of, wanted_of
from spinney.connectors.sources import Wanted
from spinney.errors import StudyInvalid
from tests.made_up import GLUCOSE, NOW, WEIGHT, feature, plain_study, study

AGE = {"name": "age", "kind": "continuous", "range": [0, 120], "source": {"patient": "age"}}


def by_kind(wanted: list[Wanted]) -> dict[str, Wanted]:
    assert len({one.kind for one in wanted}) == len(wanted)
    return {one.kind: one for one in wanted}


def test_a_study_of_finished_tables_wants_no_events():
    with pytest.raises(StudyInvalid, match="so its sites need finished tables"):
        definition_of(plain_study())


def test_features_of_the_patient_are_read_from_no_event():
    assert list(event_features(study(AGE, feature("weight", "last")))) == [1]


def test_patients_are_always_asked_for_and_every_kind_once():
    wanted = by_kind(wanted_of(study(feature("weight", "last"), feature("sugar", "max", codes=[GLUCOSE])), {}, NOW))
    assert set(wanted) == {"Patient", "Encounter", "Observation"}
    assert wanted["Observation"].codes == tuple(sorted((WEIGHT, GLUCOSE)))
    assert wanted["Observation"].until == NOW


def test_a_site_is_asked_in_its_own_codes_too():
    codes = {"lab|GEW": WEIGHT, "lab|NA": "http://loinc.org|2951-2"}
    asked = by_kind(wanted_of(study(feature("weight", "last")), codes, NOW))
    assert asked["Observation"].codes == tuple(sorted((WEIGHT, "lab|GEW")))


def test_a_feature_of_all_events_of_a_kind_asks_for_all_of_them():
    of = study(feature("weight", "last"), feature("any", "count", codes=[]))
    assert by_kind(wanted_of(of, {}, NOW))["Observation"].codes == ()


@pytest.mark.parametrize("codes", [["http://loinc.org|29*"], ["*|29463-7"], [WEIGHT, "http://loinc.org|29*"]])
def test_codes_that_cannot_be_listed_are_not_asked_for_by_code(codes: list[str]):
    assert by_kind(wanted_of(study(feature("weight", "last", codes=codes)), {}, NOW))["Observation"].codes == ()


@pytest.mark.parametrize(
    ("windows", "since"),
    [
        (["10d"], datetime(2019, 12, 21, tzinfo=UTC)),  # ten days and one for time zones before 2020
        (["10d", "365d"], datetime(2018, 12, 31, tzinfo=UTC)),
        (["10d", None], None),
    ],
)
def test_a_kind_is_read_from_as_far_back_as_its_farthest_feature_looks(windows: list[str | None], since):
    features = [feature(f"x{place}", "last", window=window) for place, window in enumerate(windows)]
    assert by_kind(wanted_of(study(*features, since="2020-01-01"), {}, NOW))["Observation"].since == since


def test_a_stay_that_counts_by_its_end_may_have_begun_at_any_time():
    assert by_kind(wanted_of(study(since="2020-01-01"), {}, NOW))["Encounter"].since is None


def test_values_are_converted_before_their_statistic_and_counts_have_no_unit():
    of = study(feature("weight", "last"), feature("rise", "slope"), feature("often", "count"), AGE)
    assert [unit_of(of, place) for place in range(4)] == ["kg", "kg", None, None]
