"""What is promised to people on Windows: names that it can hold, and commands that need no house.

Nothing here runs on Windows. What it lacks is taken away from this machine.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from spinney.base import FileName, is_file_name
from spinney.configuration.site import SiteSettings
from spinney.connectors.mlflow import lineage_of
from spinney.house.roster import Invite
from tests.federations import breast_study, breast_table, breast_village, simulated
from tests.names import refused_by_windows
from tests.nights import others
from tests.places import ROOT
from tests.servers.migrated import registry_in

PRODUCT = ("spinney", "connectors", "tasks", "flows", "deployments")
WITHOUT = """
import sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # importing it fails from here on
from spinney.flows.cli import main
main(sys.argv[1:])
"""


def spinney(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command where those modules don't exist."""
    command = [sys.executable, "-c", WITHOUT, *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("name", ["con", "NUL", "aux.v2", "lpt1", "ash.", "a/b", "a:b", "a b", "", "1st"])
def test_neither_study_nor_house_can_have_a_name_that_windows_refuses(name: str) -> None:
    assert not is_file_name(name)
    with pytest.raises(ValidationError):
        TypeAdapter(FileName).validate_python(name)


@pytest.mark.parametrize("name", ["ash", "St.Marys-2", "console", "null", "com", "A"])
def test_other_names_are_names(name: str) -> None:
    assert TypeAdapter(FileName).validate_python(name) == name


@pytest.mark.parametrize(("model", "field"), [(SiteSettings, "name"), (Invite, "site"), (Invite, "study")])
def test_settings_and_documents_refuse_them(model: type, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate({field: "con"})
    words = {error["loc"]: error["msg"] for error in caught.value.errors()}
    assert "no device of Windows" in words[(field,)]


def test_a_study_that_is_called_like_a_device_is_refused_when_it_is_checked(tmp_path: Path) -> None:
    text = "name: nul\nfeatures:\n  - {name: age, kind: continuous, range: [0, 120]}\nlabel: {name: died}\n"
    (tmp_path / "study.yaml").write_text(text)
    answer = spinney("study", "check", "study.yaml", cwd=tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.startswith("study.yaml:1 name: folders are called so")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After a night of three sites, with a model in ash's registry."""
    folder = tmp_path_factory.mktemp("night")
    village = breast_village(folder, ("ash", "birch", "cedar"))
    with others(village) as running:
        assert all(one.result() for one in running.values())
    outcome = simulated(village, breast_study()).outcomes["ash"]
    registry = registry_in(village.home("ash"))
    registry.register(breast_study(), outcome, lineage_of(breast_study(), "ash", outcome.model, 1))
    registry.promote("breast", 1)
    return folder


def test_a_night_writes_no_name_that_windows_refuses(folder: Path) -> None:
    assert len(list(folder.rglob("*"))) > 100
    assert refused_by_windows(folder) == []


@pytest.mark.parametrize("name", ["a:b", "what?", "end.", "nul.txt", "Twin"])
def test_a_name_that_windows_refuses_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "twin").touch()
    (tmp_path / name).touch()
    assert name in refused_by_windows(tmp_path)


def test_studies_are_written_and_simulated_without_posix(tmp_path: Path) -> None:
    for line in (
        "demo data --out tables --sites 3 --patients 300",
        "study infer tables --label readmitted -o study.yaml",
        "study check study.yaml",
        "simulate study.yaml --data tables --json result.json",
    ):
        answer = spinney(*line.split(), cwd=tmp_path)
        assert answer.returncode == 0, f"{line}\n{answer.stderr}"
    assert (tmp_path / "result.json").stat().st_size > 0


def test_a_model_predicts_without_posix(folder: Path, tmp_path: Path) -> None:
    breast_table().head(5).to_csv(tmp_path / "new.csv", index=False)
    site = folder / "village/ash/site.yaml"
    answer = spinney("predict", "new.csv", "--model", "breast@champion", "--site", site, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == 6


def test_what_needs_a_house_says_in_one_line_that_it_does(tmp_path: Path) -> None:
    answer = spinney("keys", "new", "--home", "house", cwd=tmp_path)
    assert (answer.returncode, len(answer.stderr.splitlines())) == (2, 1)
    assert "Windows" in answer.stderr


def test_every_text_file_is_opened_with_its_encoding() -> None:
    """Windows would take its own."""
    found = [
        f"{file.relative_to(ROOT)}:{call.lineno}"
        for file in (file for room in PRODUCT for file in (ROOT / room).rglob("*.py"))
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and _opens_text(call)
    ]
    assert found == []


def _opens_text(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    says = {word.arg for word in call.keywords}
    if name in ("read_text", "write_text"):
        return "encoding" not in says
    modes = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    is_mode = any(set(mode) <= set("rwxa+t") for mode in modes if mode)
    remote = ast.unparse(call.func) == "self.ftp.open"  # paramiko's files take bytes
    return name in ("open", "fdopen") and is_mode and not remote and "encoding" not in says
