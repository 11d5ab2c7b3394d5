"""A table as a hospital has it becomes a study, and means the same to a simulation and to the hospital's own night."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings
from spinney.configuration.study_file import read_study
from spinney.connectors.tables import read_table
from spinney.flows.cli import main
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.rows.encode import columns_of, encode, encode_label
from spinney.study.study import Study
from tests.made_up import pull_at


def rows(count: int = 400) -> pd.DataFrame:
    """Stays as a well-known public table of readmissions has them, with its kinds of columns."""
    draw = random.Random(3)
    found = []
    for number in range(count):
        old = draw.randrange(10)
        found.append(
            {
                "encounter_id": 2278392 + 7 * number,
                "patient_nbr": 8222157 + number // 2,
                "race": draw.choice(["Caucasian", "AfricanAmerican", "?"]),
                "age": f"[{old * 10}-{old * 10 + 10})",
                "weight": draw.choice(["?", "[50-75)", "[75-100)", ">200"]),
                "admission_type_id": draw.choice([1, 2, 3, 6]),
                "time in hospital (days)": draw.randint(1, 14),
                "diag_1": draw.choice(["250.83", "428", "8", "V57", "E909", "414", "?"]),
                "max_glu_serum": draw.choice(["None", "Norm", ">200", ">300"]),
                "mean lactate": draw.choice(["None", "1.5", "2.25", "4"]),
                "glyburide-metformin": draw.choice(["No", "Steady", "Up"]),
                "diabetesMed": draw.choice(["Yes", "No"]),
                "readmitted?": draw.choice(["NO", "<30", ">30"]),
            }
        )
    return pd.DataFrame(found)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    rows().to_csv(tmp_path / "tables" / "north.csv", index=False)
    return tmp_path / "tables" / "north.csv"


@pytest.fixture
def study(table: Path, tmp_path: Path) -> Study:
    words = ("--label", "readmitted?", "--icd-chapters", "diag_1", "--name", "readmission", "-o", tmp_path / "s.yaml")
    done = CliRunner().invoke(main, ["study", "infer", *map(str, (table.parent, *words))])
    assert done.exit_code == 0, done.output
    assert "if they are amounts, say --numbers admission_type_id" in done.output
    return read_study(tmp_path / "s.yaml")


def pulled(table: Path, study: Study, home: Path) -> tuple[np.ndarray, np.ndarray]:
    """What the hospital's own pull makes of it, in the order of the values."""
    source = {"kind": "files", "table": table, "patient_column": "patient_nbr", "index_time_column": None}
    site = SiteSettings.model_validate({"name": "north", "home": home, "source": source})
    frame = Vault(home).read(pull_at(study, site).cohort).to_pandas()
    return encode(frame, columns_of(study.features))[0], encode_label(frame, study.label)


def in_order(X: np.ndarray, y: np.ndarray) -> list[str]:
    return sorted(map(repr, np.column_stack([X, y]).tolist()))


def simulated(table: Path, study: Study) -> Cohort:
    return cohort_from_frame(read_table(table), study)


def test_nothing_has_to_be_renamed_and_every_column_is_of_the_right_kind(study: Study) -> None:
    kinds = {one.column or one.name: one.read_as or one.kind for one in study.features}
    assert kinds == {
        "race": "categorical",
        "age": "bands",
        "weight": "bands",
        "admission_type_id": "categorical",
        "time in hospital (days)": "continuous",
        "diag_1": "icd-9-chapters",
        "max_glu_serum": "categorical",
        "mean lactate": "continuous",
        "glyburide-metformin": "categorical",
        "diabetesMed": "categorical",
    }
    by_name = {one.name: one for one in study.features}
    assert by_name["max_glu_serum"].categories == (">200", ">300", "None", "Norm")
    assert by_name["age"].range == (0, 100)
    assert study.label.column == "readmitted?"


def test_a_simulation_and_a_pull_read_the_same_numbers(table: Path, study: Study, tmp_path: Path) -> None:
    cohort = simulated(table, study)
    assert in_order(*pulled(table, study, tmp_path / "home")) == in_order(cohort.X, cohort.y)
    assert cohort.present.all()


def test_bands_are_read_in_their_order_and_none_is_an_answer(table: Path, study: Study) -> None:
    cohort, raw = simulated(table, study), rows()
    names = [column.name for column in cohort.columns]
    ages = cohort.X[:, names.index("age")] * 100
    assert ages.tolist() == pytest.approx([int(word[1:].partition("-")[0]) + 5 for word in raw["age"]])
    not_measured = cohort.X[:, names.index("max_glu_serum=None")]
    assert not_measured.tolist() == (raw["max_glu_serum"] == "None").tolist()
    lactate = cohort.X[:, [name.startswith("mean_lactate") for name in names].index(True)]
    assert np.isnan(lactate).tolist() == (raw["mean lactate"] == "None").tolist()
    heart = cohort.X[:, names.index("diag_1=circulatory")]
    assert (heart == 1).tolist() == raw["diag_1"].isin(["428", "414"]).tolist()
    assert np.isnan(heart).tolist() == (raw["diag_1"] == "?").tolist()


def test_a_band_in_a_column_of_plain_numbers_is_still_a_broken_value(table: Path, study: Study, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    lines[1] = lines[1].replace(f",{rows()['time in hospital (days)'][0]},", ",[1-3),", 1)
    table.write_text("\n".join(lines) + "\n")
    X, _ = pulled(table, study, tmp_path / "home")
    assert len(X) == len(rows()) - 1
