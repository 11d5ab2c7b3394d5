"""The command line as a whole: help at once, exit codes, no colour where nobody wants it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml
from click.testing import CliRunner, Result
from rich.console import Console

from spinney.errors import StudyInvalid
from spinney.flows.cli import main
from tests.places import ROOT

ESCAPE = "\x1b["
STUDY = "name: heart\nfeatures:\n  - {name: smoker, kind: binary}\nlabel: {name: died}\n"


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def study_file(tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    return file


def test_a_wrong_option_is_exit_code_2_and_an_interruption_is_1() -> None:
    assert CliRunner().invoke(main, ["doctor", "--no-such-option"]).exit_code == 2
    assert CliRunner().invoke(main, ["coordinator", "approve"]).exit_code == 2
    assert CliRunner().invoke(main, ["site", "init", "--name", "ash"], input="").exit_code == 1


def test_colours_are_shown_where_wanted_and_not_with_no_color(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ESCAPE in CliRunner().invoke(main, ["doctor"], color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE not in CliRunner().invoke(main, ["doctor"], color=True).stdout


def test_tables_have_no_colours_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print("[red]wrong[/red]")
    assert captured.get() == "wrong\n"


def test_the_help_lists_every_command_and_the_exit_codes():
    answer = spinney("--help").output
    assert all(word in answer for word in ("demo", "simulate", "study", "Exit codes:"))


def test_the_version_is_that_of_the_package():
    assert spinney("--version").output.startswith("spinney, version 0.")


def test_an_unknown_command_is_wrong_usage():
    assert spinney("studdy").exit_code == 2


def test_debug_shows_where_an_error_comes_from(study_file):
    study_file.write_text("")
    assert isinstance(spinney("--debug", "study", "check", study_file).exception, StudyInvalid)


def test_no_color_is_respected(monkeypatch):
    module = ModuleType("painted")
    module.painted = click.Command("painted", callback=lambda: click.secho("red", fg="red"))
    monkeypatch.setitem(sys.modules, "spinney.flows.cli.painted", module)
    monkeypatch.setitem(main.lazy, "painted", ("painted", "Says red in red."))
    assert CliRunner().invoke(main, ["painted"], color=True).output == "\x1b[31mred\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert CliRunner().invoke(main, ["painted"], color=True).output == "red\n"


def test_a_command_that_is_nearly_right_is_named():
    answer = CliRunner().invoke(main, ["simulat"])
    assert answer.exit_code == 2
    assert "Did you mean simulate?" in answer.stderr
    assert "Did you mean" not in CliRunner().invoke(main, ["xyzzy"]).stderr


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (["model", "list"], "site.yaml: cannot be read (No such file or directory); make one: spinney site init"),
        (
            ["coordinator", "roster"],
            "coordinator.yaml: cannot be read (No such file or directory); make one: spinney coord",
        ),
        (["study", "check", "study.yaml"], "is that its name? From tables: spinney study infer TABLES --label NAME"),
    ],
)
def test_a_file_that_is_not_there_is_made_by_a_command_that_is(asked, advice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(main, asked)
    assert answer.exit_code == 2
    assert advice in answer.stderr


@pytest.mark.parametrize("house", ["site", "coordinator"])
def test_the_schema_of_a_house_s_file_knows_every_key_of_the_example(house):
    schema = json.loads(CliRunner().invoke(main, [house, "schema"]).stdout)
    example = yaml.safe_load((ROOT / f"deployments/examples/{house}.yaml").read_text(encoding="utf-8"))
    assert set(example) <= set(schema["properties"])


def test_up_asks_before_it_makes_a_world_in_a_folder_that_is_named(tmp_path):
    answer = CliRunner().invoke(main, ["up", "--out", str(tmp_path / "typo")], input="n\n")
    assert answer.exit_code == 1
    assert "typo is not there. Make a new world in it?" in answer.stderr
    assert not (tmp_path / "typo").exists()
