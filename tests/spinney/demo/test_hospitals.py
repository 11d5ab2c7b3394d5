"""Tables of made-up hospitals: the same every time, and different from each other."""

from __future__ import annotations

import pytest

from spinney.cohort.infer import infer_study
from spinney.connectors.tables import read_tables
from spinney.demo.site import world_study, write_tables

LABEL = world_study().label.name


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_tables(folder, sites=5, patients=1500, seed=1)
    return read_tables(folder)


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    first = write_tables(tmp_path / "a", sites=2, patients=200, seed=7)
    second = write_tables(tmp_path / "b", sites=2, patients=200, seed=7)
    assert [file.read_bytes() for file in first.values()] == [file.read_bytes() for file in second.values()]


def test_another_seed_writes_other_patients(tmp_path):
    first = write_tables(tmp_path / "a", sites=2, patients=200, seed=1)
    second = write_tables(tmp_path / "b", sites=2, patients=200, seed=2)
    assert first["ash"].read_bytes() != second["ash"].read_bytes()


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
