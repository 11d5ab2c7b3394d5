"""`spinney site attack` says what the trees of a site would tell, in words and for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.flows.cli.stays import spinney

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")
STUDY = """
name: wood
features:
  - {name: age, kind: continuous, range: [0, 1]}
  - {name: weight, kind: continuous, range: [0, 1]}
label: {name: died}
forest: {trees: 5}
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A site with a table of enough patients."""
    rng = np.random.default_rng(0)
    X = rng.random((900, 2))
    died = (X[:, 0] + rng.random(900) > 1).astype(int)
    people = {"patient": [f"p{one}" for one in range(900)], "age": X[:, 0], "weight": X[:, 1], "died": died}
    people["index_time"] = "2024-03-01"
    pd.DataFrame(people).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "site.yaml").write_text("name: ash\nsource: {kind: files, table: table.csv}\n")
    return tmp_path


def attack(house: Path, *more: str):
    return spinney("site", "attack", house / "study.yaml", "--site", house / "site.yaml", *more)


def test_without_a_cohort_it_says_what_to_type(house: Path) -> None:
    answer = attack(house)
    assert answer.exit_code == 2
    assert "spinney site check STUDY" in answer.stderr


def test_it_tells_people_and_scripts_what_an_attack_finds(house: Path) -> None:
    assert spinney("site", "check", house / "study.yaml", "--site", house / "site.yaml").exit_code == 0
    said = attack(house, "--seconds", "1").stdout
    assert said.startswith("With leaves of 20 patients, an attack on the trees that this house lends tells")
    told = json.loads(attack(house, "--seconds", "1", "--json").stdout)
    assert told["lends"] is True
    assert told["leaf"] == 20
    assert told["advantage"]["low"] <= told["advantage"]["value"] <= told["advantage"]["high"]
    assert told["advantage"]["value"] == pytest.approx(2 * told["auc"]["value"] - 1)


def test_it_says_whether_the_study_lets_the_trees_go(house: Path) -> None:
    study = STUDY.replace("{trees: 5}", "{trees: 5, min_samples_leaf: 1, max_depth: 20}")
    strict = "privacy: {largest_advantage: 0.01, lent_leaf: 2, smallest_leaf: 2}\n"
    (house / "study.yaml").write_text(study + strict)
    assert spinney("site", "check", house / "study.yaml", "--site", house / "site.yaml").exit_code == 0
    assert "above it beyond doubt, so no trees are lent" in attack(house, "--seconds", "1").stdout
