"""How the made-up hospitals differ: size, outcome, what they measure and how they write it down."""

from __future__ import annotations

import pytest

from spinney.cohort.infer import infer_study
from spinney.connectors.tables import read_tables
from spinney.demo.history import make_history
from spinney.demo.hospitals import make_hospitals
from spinney.demo.site import world_study, write_tables

LABEL = world_study().label.name


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_tables(folder, sites=5, patients=1500, seed=1)
    return read_tables(folder)


def test_the_first_hospital_is_small_and_measures_least(tables):
    sizes = {site: len(table) for site, table in tables.items()}
    missing = {site: table["creatinine"].isna().mean() for site, table in tables.items()}
    assert min(sizes, key=sizes.get) == "alder"
    assert max(missing, key=missing.get) == "alder"


def test_in_one_hospital_the_outcome_is_rare(tables):
    shares = {site: table[LABEL].mean() for site, table in tables.items()}
    assert min(shares, key=shares.get) == "ash"
    assert shares["ash"] < 0.12


def test_one_hospital_lacks_a_laboratory_value(tables):
    assert [site for site, table in tables.items() if "nt_probnp" not in table] == ["beech"]


def test_every_column_but_patient_time_and_label_becomes_a_feature(tables):
    inferred = infer_study(tables, LABEL, "demo")
    kinds = {feature.name: feature.kind for feature in inferred.study.features}
    assert sorted(kinds) == sorted(feature.name for feature in world_study().features)
    assert inferred.patient == "patient"
    assert kinds["nyha"] == "categorical"
    assert kinds["diabetes"] == "binary"


def test_hospitals_write_in_their_own_way() -> None:
    alder, ash, beech, _ = (make_history(one, 5).events["Observation"] for one in make_hospitals(4, 700, 5))
    assert set(ash["unit"].dropna()) >= {"mm[Hg]", "mg/dL"}
    assert set(beech["unit"].dropna()) >= {"mmHg", "umol/L"}
    assert beech["code"].str.startswith("urn:beech:laboratory|").any()
    assert alder.loc[alder["code"] == "http://loinc.org|2823-3", "unit"].isna().all()
