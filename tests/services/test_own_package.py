"""The recipes of CONTRIBUTING, followed to the letter: a source and an algorithm in a package of somebody else's."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from spinney.testing.source import CODE, PATIENTS
from tests.places import ROOT
from tests.servers.installed import Installed, installed

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]

EXAMPLE = re.compile(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
STUDY = f"""
name: weights
cohort:
  index: {{kind: Observation, codes: ["{CODE}"], at: start}}
features:
  - name: weight
    kind: continuous
    range: [20, 300]
    unit: kg
    source: {{kind: Observation, codes: ["{CODE}"], statistic: last}}
label: {{name: heavier, source: {{outcome: index-event, horizon: 40d}}}}
privacy: {{smallest_cohort: 10}}
"""


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Spinney's wheel, and beside it the package of the recipes."""
    folder = tmp_path_factory.mktemp("hospital")
    here = installed(folder)
    for name, text in EXAMPLE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        path = folder / "our-forest" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "our-forest/our_forest/__init__.py").touch()
    here.add(folder / "our-forest")
    return here


def run(command: list[object], folder: Path, code: int = 0) -> str:
    there = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))}
    done = subprocess.run([*map(str, command)], cwd=folder, env=there, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def weighed(folder: Path) -> None:
    """Two years of the laboratory's files."""
    folder.mkdir()
    (folder / "patients.csv").write_text("patient\n" + "\n".join(PATIENTS) + "\n")
    rows = [
        f"{name},{CODE},202{year}-0{month}-01T08:00:00Z,{50 + number + month},kg"
        for number, name in enumerate(PATIENTS)
        for year in (2, 3)
        for month in (1, 2, 6)
        if (number + month) % 3
    ]
    (folder / "observations.csv").write_text("patient,code,time,value,unit\n" + "\n".join(rows) + "\n")


def test_a_site_reads_its_patients_from_the_new_source(hospital: Installed, tmp_path: Path) -> None:
    weighed(tmp_path / "lab")
    (tmp_path / "study.yaml").write_text(STUDY)
    init = ["site", "init", "--name", "oak", "--kind", "lab-csv", "--folder", "lab"]
    assert "site.yaml is written" in run([hospital.spinney, *init], tmp_path)
    assert "lab-csv" in run([hospital.spinney, "site", "init", "--help"], tmp_path)
    assert f"2 files in {tmp_path / 'lab'}" in run([hospital.spinney, "doctor"], tmp_path)
    checked = json.loads(run([hospital.spinney, "site", "check", "study.yaml", "--json"], tmp_path))
    assert checked["cohort"]["rows"] > 100


def test_a_mistake_in_its_settings_has_its_line(hospital: Installed, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "site.yaml").write_text("name: oak\nsource:\n  kind: lab-csv\n  folde: lab\n")
    told = run([hospital.spinney, "site", "check", "study.yaml"], tmp_path, code=2)
    assert "site.yaml:4 source.folde: unknown key; did you mean folder?" in told


def test_a_federation_is_simulated_with_the_new_algorithm(hospital: Installed, tmp_path: Path) -> None:
    spinney = hospital.spinney
    run([spinney, "demo", "data", "--out", "tables", "--sites", "4", "--patients", "300"], tmp_path)
    run([spinney, "study", "infer", "tables", "--label", "readmitted", "-o", "study.yaml"], tmp_path)
    simulate = ["simulate", "study.yaml", "--data", "tables", "--algorithm", "by-size", "--json", "out.json"]
    run([spinney, *simulate], tmp_path)
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["algorithm"] == "by-size"
    assert len(result["sites"]) == 4
    assert "by-size" in run([spinney, "simulate", "--help"], tmp_path)
    assert "BySize" in run([spinney, "study", "schema"], tmp_path)


def test_both_hold_the_contracts_that_are_shipped(hospital: Installed, tmp_path: Path) -> None:
    tests = hospital.folder.parent / "our-forest" / "tests"
    told = run(
        [hospital.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tests], tmp_path
    )
    assert re.search(r"\b\d\d passed", told)


def test_what_can_t_be_loaded_costs_nobody_else_anything(hospital: Installed, tmp_path: Path) -> None:
    site = hospital.folder / "lib"
    broken = next(site.glob("python*/site-packages")) / "broken-1.0.dist-info"
    broken.mkdir()
    try:
        (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
        (broken / "entry_points.txt").write_text("[spinney.sources]\nnowhere = nobody.knows:SOURCE\n")
        weighed(tmp_path / "lab")
        (tmp_path / "site.yaml").write_text("name: oak\nsource: {kind: lab-csv, folder: lab}\n")
        told = run([hospital.spinney, "doctor"], tmp_path)
        assert "the source nowhere of broken can't be loaded" in told
        (tmp_path / "study.yaml").write_text(STUDY)
        run([hospital.spinney, "site", "check", "study.yaml"], tmp_path)
    finally:
        for file in broken.iterdir():
            file.unlink()
        broken.rmdir()
