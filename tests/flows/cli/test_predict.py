"""spinney predict: probabilities for the rows of a file."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner, Result

from spinney.flows.cli import main
from tests.federations import breast_table

pytestmark = pytest.mark.usefixtures("two_models")


def spinney(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def test_predict_scores_every_row_of_a_file(results):
    table = breast_table().drop(columns="malignant")
    table.to_csv("rows.csv", index=False)
    rows = list(csv.DictReader(io.StringIO(spinney("predict", "--model", "breast@champion", "rows.csv").stdout)))
    expected = results[0].outcomes["ash"].model.predict_proba(table)[:, 1]
    assert [float(row["probability"]) for row in rows] == pytest.approx(expected, abs=1e-12)
    assert [row["patient"] for row in rows] == table["patient"].tolist()
    assert {row["model"] for row in rows} == {"breast/1"}


def test_predict_with_a_version_by_number_as_json():
    breast_table().head(3).to_csv("rows.csv", index=False)
    rows = json.loads(spinney("predict", "--model", "breast/2", "rows.csv", "--json").stdout)
    assert [row["model"] for row in rows] == ["breast/2"] * 3
    assert set(rows[0]) == {"patient", "probability", "decision", "model"}


@pytest.mark.parametrize(
    ("model", "words"), [("breast@nobody", "there is no breast nobody in the registry"), ("a b", "write NAME@champion")]
)
def test_predict_with_a_model_that_is_not_there_says_so(model, words):
    breast_table().head(3).to_csv("rows.csv", index=False)
    assert words in spinney("predict", "--model", model, "rows.csv", code=2).stderr
