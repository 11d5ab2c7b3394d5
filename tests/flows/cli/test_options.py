"""Options that several commands share mean the same everywhere."""

from __future__ import annotations

import getpass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from spinney.flows.cli import options
from spinney.flows.cli.options import (
    by_option,
    coordinator_option,
    json_option,
    site_option,
    study_option,
    yes_option,
)


@click.command()
@site_option
@coordinator_option
@study_option
@by_option
@yes_option
@json_option
def shows(**given: object) -> None:
    click.echo("\n".join(f"{name}={value}" for name, value in sorted(given.items())))


def given(*words: str) -> dict[str, str]:
    answer = CliRunner().invoke(shows, words)
    assert answer.exit_code == 0, answer.output
    return dict(line.split("=", 1) for line in answer.stdout.splitlines())


def test_without_a_word_files_are_those_that_lie_here_and_people_are_asked():
    said = given()
    assert (said["site_file"], said["coordinator_file"]) == ("site.yaml", "coordinator.yaml")
    assert (said["yes"], said["as_json"], said["study"]) == ("False", "False", "None")


def test_who_decides_is_who_is_logged_in_unless_somebody_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "jo")
    assert given()["by"] == "jo"
    assert given("--by", "officer")["by"] == "officer"


@pytest.mark.parametrize("error", [OSError, KeyError])
def test_a_user_without_a_name_is_nobody_and_no_error(monkeypatch: pytest.MonkeyPatch, error: type[Exception]):
    def nameless() -> str:
        raise error("no such user")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert given()["by"] == ""


def test_a_printed_command_names_a_file_only_where_it_is_not_the_usual_one() -> None:
    assert options.given("--site", Path("site.yaml"), "site.yaml") == ""
    assert options.given("--site", Path("ash/site.yaml"), "site.yaml") == " --site ash/site.yaml"
    assert options.given("--site", Path("my site.yaml"), "site.yaml") == " --site 'my site.yaml'"
