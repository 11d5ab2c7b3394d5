"""The whole way from a site's data to its cohort: maps, validation, imputation, finished tables, what stays private."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from spinney.cohort.pull import pull
from spinney.cohort.pull_report import PullResult
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings, read_site
from spinney.errors import CohortRejected, SourceFailed, StudyInvalid
from spinney.rows.parts import Part, parts_by_hash
from spinney.study.study import Study
from tests.connectors.made_up import (
    NOW,
    RIPENER,
    STAY,
    coded,
    encounter,
    feature,
    frame,
    observation,
    patient,
    pulled,
    site,
    study,
    write,
)

WEIGHED = [patient(), STAY, RIPENER, observation("2023-01-05", 70.0)]


def test_a_pull_leaves_a_cohort_and_nothing_else(tmp_path: Path) -> None:
    result = pulled(tmp_path, study(), WEIGHED)
    assert result.report.read == {"Patient": 1, "Encounter": 2, "Observation": 1}
    assert (result.cohort.rows, result.unripe.rows) == (1, 0)
    left = {path.name for path in (tmp_path / "home" / "vault").rglob("*") if path.is_file()}
    refs = {result.cohort.path, result.unripe.path}
    kept = {ref.name for ref in refs} | {ref.with_suffix(".json").name for ref in refs}
    assert left == kept | {"key", "stays.lock"}


def test_no_identifier_or_other_column_of_the_source_is_anywhere_in_the_vault(tmp_path: Path) -> None:
    canary = "CANARY-17"
    named = [
        patient(canary, contact=[{"name": {"family": canary}}]),
        encounter("2023-01-01", "2023-01-10", who=canary),
        RIPENER,
        observation("2023-01-05", 70.0, who=canary, note=[{"text": canary}]),
    ]
    report = pulled(tmp_path, study(), named).report
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or canary.encode() not in path.read_bytes()
    assert canary not in repr(report)


def test_a_site_maps_its_own_codes(tmp_path: Path) -> None:
    sex = {"name": "sex", "kind": "categorical", "categories": ["female", "male"], "source": {"patient": "sex"}}
    local = [patient(sex="W"), STAY, RIPENER, observation("2023-01-05", 70.0, code="lab|GEW")]
    maps = {"codes": {"lab|GEW": "http://loinc.org|29463-7", "W": "female"}}
    rows = frame(tmp_path, study(feature("weight", "last"), sex), local, **maps)
    assert rows[["weight", "sex"]].to_numpy().tolist() == [[70.0, "female"]]


@pytest.mark.parametrize(("extent", "invalid", "checked"), [("all", 2, 4), ("sample", 1, 2), ("none", 0, None)])
def test_resources_that_are_no_valid_fhir_are_in_quarantine_as_far_as_one_looks(
    tmp_path: Path, extent: str, invalid: int, checked: int | None
) -> None:
    good = [observation(f"2023-01-0{day}", 70.0) for day in (1, 2)]
    bad = [observation(f"2023-01-0{day}", 70.0) | {"status": None, "nonsense": True} for day in (3, 4)]
    lines = [patient(), STAY, RIPENER, good[0], bad[0], good[1], bad[1]]
    report = pulled(tmp_path, study(), lines, validate=extent, validation_sample=2).report
    assert report.quarantined[("Observation", "not valid FHIR")] == invalid
    assert report.validated.get("Observation") == checked


def test_a_truncated_line_costs_one_observation_and_not_the_night(tmp_path: Path) -> None:
    half = json.dumps(observation("2023-01-06", 99.0))[:120]
    result = pulled(tmp_path, study(), [*WEIGHED, half])
    assert result.report.quarantined == {("Observation", "not a FHIR resource"): 1}
    assert result.report.rows == 1
    assert result.report.quarantined_share == pytest.approx(1 / 5)
    assert json.loads(json.dumps(result.report.plain()))["quarantined"] == {"Observation: not a FHIR resource": 1}


def many(people: int, every: int) -> list[Any]:
    """Two stays each; every so many people have a weight, and only before their first one."""
    resources: list[Any] = [RIPENER]
    for number in range(people):
        who = f"p{number}"
        stays = [encounter(f"2023-0{month}-01", f"2023-0{month}-05", who=who) for month in (1, 3)]
        weight = [observation("2023-01-02", 60.0 + number, who=who)] if number % every == 0 else []
        resources += [patient(who), *stays, *weight]
    return resources


def test_an_endless_line_costs_one_observation_and_not_the_night(tmp_path: Path) -> None:
    result = pulled(tmp_path, study(), [*WEIGHED, '{"resourceType": "Observation", "id": "' + "x" * (70 * 2**20)])
    assert result.report.quarantined == {("Observation", "not a FHIR resource"): 1}
    assert result.cohort.rows == 1


@pytest.mark.parametrize("mebibytes", [5, 40])
def test_a_resource_that_is_larger_than_most_counts_like_any_other(tmp_path: Path, mebibytes: int) -> None:
    long = observation("2023-01-06", 99.0) | {"note": [{"text": "x" * (mebibytes * 2**20)}]}
    assert frame(tmp_path, study(), [*WEIGHED, long])["weight"].tolist() == [99.0]


def test_missing_values_are_left_missing_unless_the_study_says_otherwise(tmp_path: Path) -> None:
    rows = frame(tmp_path, study(feature("weight", "last", window="10d")), many(40, 2))
    assert rows["weight"].isna().sum() == 60


def test_missing_values_are_filled_forward_and_then_with_the_median_of_training_rows(tmp_path: Path) -> None:
    of = study(feature("weight", "last", window="10d"), imputation="forward-fill-then-median")
    resources = many(40, 2)
    result = pulled(tmp_path, of, resources)
    vault = Vault(tmp_path / "home")
    rows = vault.read(result.cohort).to_pandas()
    trains = parts_by_hash(rows["patient"].tolist(), vault.key, of.split) == Part.TRAINING
    weighed = rows["patient"].isin(vault.pseudonyms(pa.array([f"p{n}" for n in range(0, 40, 2)])).to_pylist())
    assert result.report.filled["weight"] == (0.25, 0.5)
    assert rows["weight"][~weighed].unique().tolist() == [np.median(rows["weight"][weighed & trains])]


def test_what_is_found_wanting_is_noted(tmp_path: Path) -> None:
    lines = [STAY, RIPENER, observation("2023-01-05", valueString="heavy")]
    notes = pulled(tmp_path, study(), lines).report.notes
    assert "Patient: none in this source" in notes
    assert "1 index events are of patients whom the source does not describe" in notes
    assert "LOINC 29463-7: 1 observations, but none has a number" in notes


def test_progress_is_told_by_kind(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    write(tmp_path / "fhir", WEIGHED)
    pull(study(), site(tmp_path), now=NOW, progress=lambda *how_far: told.append(how_far))
    assert ("Encounter", 2, 2) in told


def test_times_of_a_site_without_offsets_are_in_its_time_zone(tmp_path: Path) -> None:
    stay = encounter("2023-01-01T10:00:00", "2023-01-10T10:00:00")
    # strictly, FHIR wants an offset, so validation would put the stay into quarantine
    rows = frame(tmp_path, study(), [patient(), stay, RIPENER], timezone="Europe/Berlin", validate="none")
    assert rows["index_time"].tolist() == [pd.Timestamp("2023-01-10T09:00:00")]


# Finished tables

TABLE = "patient,index_time,weight,outcome,surname\nann,2023-01-01,70.5,1,Meier\nbob,2023-01-02,?,0,Huber\n"


def plain_study() -> Study:
    weight = {"name": "weight", "kind": "continuous", "range": [0, 300]}
    height = {"name": "height", "kind": "continuous", "range": [0, 3]}
    return Study.model_validate({"name": "plain", "features": [weight, height], "label": {"name": "outcome"}})


def from_csv(folder: Path, text: str, **settings: Any) -> PullResult:
    (folder / "cohort.csv").write_text(text)
    source = {"kind": "files", "table": folder / "cohort.csv", **settings}
    return pull(plain_study(), SiteSettings(name="north", home=folder / "home", source=source), now=NOW)


def test_a_finished_csv_becomes_a_cohort_with_the_columns_of_the_study(tmp_path: Path) -> None:
    result = from_csv(tmp_path, TABLE)
    table = Vault(tmp_path / "home").read(result.cohort)
    assert table.column_names == ["patient", "index_time", "weight", "outcome"]
    assert sorted(table["outcome"].to_pylist()) == [0, 1]
    assert result.report.notes == ["height: no such column in the table"]
    assert result.cohort.watermark is not None


def test_csv_parquet_and_both_databases_give_the_same_finished_cohort(
    tmp_path: Path, sqlite: Callable[..., str], postgres: Callable[..., str]
) -> None:
    digests = {from_csv(tmp_path, TABLE).cohort.digest}
    pd.read_csv(tmp_path / "cohort.csv", na_values="?").to_parquet(tmp_path / "cohort.parquet")
    create = "CREATE TABLE c (patient TEXT, index_time DATE, weight NUMERIC, outcome INT, surname TEXT)"
    insert = "INSERT INTO c VALUES ('ann', '2023-01-01', 70.5, 1, 'Meier'), ('bob', '2023-01-02', NULL, 0, 'Huber')"
    for source in (
        {"kind": "files", "table": tmp_path / "cohort.parquet"},
        {"kind": "sql", "url": sqlite(create, insert), "table": "SELECT * FROM c"},
        {"kind": "sql", "url": postgres(create, insert), "table": "SELECT * FROM c"},
    ):
        own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
        digests.add(pull(plain_study(), own, now=NOW).cohort.digest)
    assert len(digests) == 1


def test_rows_of_a_finished_table_without_an_outcome_are_only_for_scoring(tmp_path: Path) -> None:
    result = from_csv(tmp_path, TABLE + "cyd,2023-02-01,60,,Maier\n")
    assert (result.cohort.rows, result.unripe.rows) == (2, 1)


def test_a_finished_row_with_a_broken_value_is_in_quarantine(tmp_path: Path) -> None:
    broken = "cyd,2023-02-01,heavy,1,Maier\ndan,31.2.2023,60,0,Mayer\n,2023-02-01,60,0,Mayr\neve,2023-02-01\n"
    result = from_csv(tmp_path, TABLE + broken)
    assert result.report.quarantined == {
        ("table", "value is not a number"): 1,
        ("table", "broken date"): 1,
        ("table", "no subject"): 1,
        ("table", "broken line"): 1,
    }
    assert result.cohort.rows == 2


@pytest.mark.parametrize(
    "outcomes", [("1.0", "0.0"), ("true", "false"), ("True", "False"), ("Yes", "no"), ("YES", "No"), (" 1", "0 ")]
)
def test_a_label_is_yes_or_no_however_it_is_written(tmp_path: Path, outcomes: tuple[str, str]) -> None:
    rows = "".join(f"p{n},2023-01-01,70,{word}\n" for n, word in enumerate(outcomes))
    result = from_csv(tmp_path, "patient,index_time,weight,outcome\n" + rows)
    table = Vault(tmp_path / "home").read(result.cohort).to_pandas()
    assert sorted(table["outcome"]) == [0, 1]
    assert result.report.positive == 1


@pytest.mark.parametrize("kind", ["float64", "bool", "boolean", "Int8", "object"])
def test_a_label_of_any_type_in_parquet_is_one_or_zero(tmp_path: Path, kind: str) -> None:
    frame = pd.DataFrame({"patient": ["a", "b", "c"], "index_time": "2023-01-01", "weight": 70.0})
    frame["outcome"] = pd.Series([1, 0, 1]).astype(kind)
    frame.to_parquet(tmp_path / "cohort.parquet")
    source = {"kind": "files", "table": tmp_path / "cohort.parquet"}
    own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
    result = pull(plain_study(), own, now=NOW)
    assert Vault(tmp_path / "home").read(result.cohort)["outcome"].to_pylist().count(1) == 2


def test_a_label_that_a_database_keeps_as_a_double_is_one_or_zero(tmp_path: Path, sqlite: Callable[..., str]) -> None:
    create = "CREATE TABLE c (patient TEXT, index_time TEXT, weight REAL, outcome REAL)"
    insert = "INSERT INTO c VALUES ('ann', '2023-01-01', 70.5, 2.0), ('bob', '2023-01-02', 1.0, 0.0)"
    source = {"kind": "sql", "url": sqlite(create, insert), "table": "SELECT * FROM c"}
    own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
    of = plain_study().with_settings(label={"positive": ["2"]})
    assert pull(of, own, now=NOW).report.positive == 1


def test_a_word_that_is_neither_yes_nor_no_is_not_taken_for_no(tmp_path: Path) -> None:
    with pytest.raises(CohortRejected, match=r"label outcome is yes or no.*label\.positive"):
        from_csv(tmp_path, "patient,index_time,weight,outcome\na,2023-01-01,70,dead\nb,2023-01-01,70,alive\n")


def test_a_csv_with_semicolons_and_decimal_commas_is_read_and_said_to_be(tmp_path: Path) -> None:
    text = "patient;index_time;weight;outcome\na;2023-01-01;70,5;1\nb;2023-01-01;1;0\n"
    result = from_csv(tmp_path, text)
    assert sorted(Vault(tmp_path / "home").read(result.cohort)["weight"].to_pylist()) == [1.0, 70.5]
    assert any("';' between columns and ',' before decimals" in note for note in result.report.notes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "patient,index_time,weight,outcome,weight\na,2023-01-01,1,0,2\n",
            "weight is the name of more than one column",
        ),
        (
            "patient,index_time,weight,outcome,Weight\na,2023-01-01,1,0,2\n",
            "weight is the name of more than one column",
        ),
        ('patient,index_time,weight,outcome\n"a,2023-01-01,1,0\nb,2023-01-01,1,0\n', "is not closed"),
    ],
)
def test_a_table_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SourceFailed, match=says):
        from_csv(tmp_path, text)


def test_two_columns_of_one_name_in_a_query_are_refused(tmp_path: Path, sqlite: Callable[..., str]) -> None:
    url = sqlite("CREATE TABLE c (patient TEXT, index_time TEXT, weight REAL, outcome REAL)")
    source = {"kind": "sql", "url": url, "table": "SELECT *, weight AS WEIGHT FROM c"}
    own = SiteSettings.model_validate({"name": "north", "home": tmp_path / "home", "source": source})
    with pytest.raises(SourceFailed, match="query for table: weight is the name of more than one column"):
        pull(plain_study(), own, now=NOW)


def test_a_table_without_patients_says_so_and_takes_every_row_for_one(tmp_path: Path) -> None:
    text = "weight,outcome\n70,1\n60,0\n"
    with pytest.raises(SourceFailed, match="column patient is missing"):
        from_csv(tmp_path, text)
    result = from_csv(tmp_path, text, patient_column=None, index_time_column=None)
    assert result.cohort.rows == 2
    assert any("every row counts as one" in note for note in result.report.notes)


def test_a_site_may_bring_a_finished_table_to_a_study_with_a_definition(tmp_path: Path) -> None:
    (tmp_path / "cohort.csv").write_text(TABLE)
    own = SiteSettings(name="n", home=tmp_path / "home", source={"kind": "files", "table": tmp_path / "cohort.csv"})
    assert pull(study(), own, now=NOW).cohort.rows == 2


def test_a_study_without_a_definition_cannot_read_events(tmp_path: Path) -> None:
    write(tmp_path / "fhir", WEIGHED)
    with pytest.raises(SourceFailed, match="this site needs `table`"):
        pull(plain_study(), site(tmp_path), now=NOW)


# site.yaml and its mistakes

SITE = "name: north\nsource: {kind: files, path: fhir}\n"


def test_paths_in_a_site_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    write(tmp_path / "fhir", WEIGHED)
    own = read_site(tmp_path / "site.yaml")
    assert own.vault.folder == tmp_path / "vault"
    assert pull(study(), own, now=NOW).cohort.rows == 1


def test_a_database_file_in_a_site_file_is_relative_to_it(tmp_path: Path) -> None:
    text = "name: north\nsource: {kind: sql, url: 'sqlite:///his.db', table: SELECT 1}\n"
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(SourceFailed) as failed:
        pull(study(), read_site(tmp_path / "site.yaml"), now=NOW)
    assert str(tmp_path / "his.db") in str(failed.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: north\n", "source: is missing"),
        ("name: north\nsource: {kind: file, path: x}\n", "did you mean files?"),
        (SITE + "unit: {a: b}\n", "unit: unknown key; did you mean units?"),
        (SITE + "validate: some\n", "validate: must be"),
        ("name: n\nsource: {kind: sql, url: 'postgresql://u:p@h/d', table: x}\n", "password_env"),
        ("name: n\nsource: {kind: sql, url: 'postgresql://u@h/d'}\n", "either events"),
        ("name: n\nsource: {kind: sql, url: 'sqlite:///x', events: {Observations: x}}\n", "did you mean Observation?"),
    ],
)
def test_a_mistake_in_a_site_file_is_one_line_that_says_what_to_write(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(StudyInvalid) as invalid:
        read_site(tmp_path / "site.yaml")
    assert any(says in mistake for mistake in invalid.value.mistakes), invalid.value.mistakes


def test_a_source_without_a_matching_event_says_so(tmp_path: Path) -> None:
    write(tmp_path / "fhir", [patient(), observation("2023-01-01", 1.0, code="x|1") | {"code": coded("x|1")}])
    with pytest.raises(CohortRejected, match=r"map local codes in site\.yaml"):
        pull(study(), site(tmp_path), now=NOW)
