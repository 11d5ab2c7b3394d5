"""The library's simulation: frames as they are, and the same answer as the command's."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer

import spinney
from spinney.configuration.study_file import write_study
from spinney.errors import CohortRejected, StudyInvalid
from spinney.flows.cli import main
from spinney.library import simulated


def ward(seed: int, rows: int = 160) -> pd.DataFrame:
    """Text, booleans, categories, missing values and names with blanks, as in life."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 95, rows).round()
    smokes = rng.random(rows) < 0.3
    died = rng.random(rows) < 1 / (1 + np.exp(-(0.06 * (age - 60) + smokes)))
    return pd.DataFrame(
        {
            "Age (years)": np.where(rng.random(rows) < 0.05, np.nan, age),
            "smokes?": smokes,
            "unit": pd.Categorical(rng.choice(["medicine", "surgery"], rows)),
            "died": np.where(died, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return {name: ward(seed) for seed, name in enumerate(("ash", "beech", "cedar"))}


@pytest.fixture(scope="module")
def result(tables) -> spinney.FederationResult:
    return spinney.simulate(tables, label="died", repeats=2)


def test_frames_are_taken_as_they_are(result, tables):
    assert [feature.column or feature.name for feature in result.study.features] == ["Age (years)", "smokes?", "unit"]
    assert list(result.frame.index) == sorted(tables)
    assert result.frame.loc["ash", "positives"] == (tables["ash"]["died"] == "yes").sum()


def test_the_answer_has_a_sentence_per_site(result):
    assert str(result) == result.verdict
    lines = result.verdict.splitlines()
    assert [line.split()[1] for line in lines] == ["ash:", "beech:", "cedar:"]
    assert {one.word for one in result.verdicts.values()} <= {"yes", "no", "no harm", "can't tell yet"}


def test_models_predict_on_frames_of_that_kind(result, tables):
    risk = result.models["beech"].predict_proba(tables["ash"])[:, 1]
    assert risk.shape == (160,)
    died = (tables["ash"]["died"] == "yes").to_numpy()
    assert risk[died].mean() > risk[~died].mean()


def test_pictures_are_shown_and_pages_are_written(result, tmp_path):
    assert result.plot()._repr_svg_().startswith("<svg")
    result.plot().save(tmp_path / "gain.svg")
    result.report(tmp_path / "answer.html")
    assert "cedar" in (tmp_path / "gain.svg").read_text()
    assert "would bofrf help?" in (tmp_path / "answer.html").read_text()


def test_the_command_says_the_same_of_the_same_tables(result, tables, tmp_path):
    for name, table in tables.items():
        (tmp_path / "tables").mkdir(exist_ok=True)
        table.to_parquet(tmp_path / "tables" / f"{name}.parquet")
    write_study(result.study, tmp_path / "study.yaml", ())
    words = ["simulate", str(tmp_path / "study.yaml"), "--data", str(tmp_path / "tables"), "--repeats", "2"]
    answer = CliRunner().invoke(main, [*words, "--json", "-"], catch_exceptions=False)
    assert json.loads(answer.stdout) == json.loads(json.dumps(result.data))


def test_a_study_stands_instead_of_a_guess(tables, result, tmp_path):
    write_study(result.study, tmp_path / "study.yaml", ())
    again = spinney.simulate(tables, study=tmp_path / "study.yaml", repeats=1)
    assert again.simulations[0].model_digest == result.simulations[0].model_digest


def test_scikit_learn_s_own_frame_works_at_the_first_try():
    frame = load_breast_cancer(as_frame=True).frame
    said = spinney.simulate({f"h{part}": frame[part::3] for part in range(3)}, label="target", repeats=1)
    assert (said.frame["chosen"] > 0.95).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"label": None}, StudyInvalid, "say which column is the outcome"),
        ({"repeats": 0}, ValueError, "at least 1"),
        ({"label": "magic"}, StudyInvalid, "magic"),
        ({"tables": {"ash": [1, 2]}}, StudyInvalid, "ash: give a pandas data frame"),
    ],
)
def test_what_is_wrong_is_said_in_words(tables, change, error, words):
    with pytest.raises(error, match=words):
        spinney.simulate(**{"tables": tables, "label": "died", **change})


def test_a_table_that_does_not_fit_is_named(tables, result):
    with pytest.raises(CohortRejected, match="beech: label died is a column"):
        spinney.simulate({**tables, "beech": tables["beech"].drop(columns="died")}, study=result.study)


def test_the_examples_in_the_docstrings_run():
    assert doctest.testmod(simulated).failed == 0
    assert Path(simulated.__file__).name == "simulated.py"
