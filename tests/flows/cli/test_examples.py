"""What every command has in common: help with examples, completion, exit codes, no colour where nobody wants it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from spinney.flows.cli import main
from spinney.flows.cli.examples import EXAMPLES
from tests.places import ROOT

SPINNEY = [sys.executable, "-c", "from spinney.flows.cli import main; main(prog_name='spinney')"]
ESCAPE = "\x1b["


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its full name."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    ctx = click.Context(command)
    for name in command.list_commands(ctx):
        below = command.get_command(ctx, name)
        assert below is not None
        yield from leaves(below, (*path, name))


COMMANDS = dict(leaves(main))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_commands_help_ends_with_an_example(name: str) -> None:
    answer = CliRunner().invoke(main, [*name.split(), "--help"])
    assert answer.exit_code == 0
    assert f"\n    spinney {name}" in answer.stdout


def test_the_page_names_every_command_that_answers_a_script() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z][a-z -]+)`", page.partition("## For scripts")[2].partition("\n## ")[0]))
    assert {name for name, command in COMMANDS.items() if any("--json" in one.opts for one in command.params)} == named


def test_every_example_is_of_a_command_that_exists() -> None:
    assert set(EXAMPLES) <= set(COMMANDS)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_is_understood(name: str) -> None:
    for line in EXAMPLES[name]:
        words = shlex.split(line.partition(" > ")[0])[1 + len(name.split()) :]
        command = COMMANDS[name]
        command.make_parser(click.Context(command)).parse_args(args=words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(shell: str) -> None:
    answer = CliRunner().invoke(main, ["completion", shell])
    assert answer.exit_code == 0
    assert "_SPINNEY_COMPLETE" in answer.stdout


def test_the_script_for_bash_is_understood_by_bash(tmp_path: Path) -> None:
    (tmp_path / "spinney").write_text(CliRunner().invoke(main, ["completion", "bash"]).stdout)
    subprocess.run(["bash", "-n", tmp_path / "spinney"], check=True)


def test_commands_and_options_are_completed() -> None:
    def completed(*words: str) -> str:
        line = {"COMP_WORDS": "spinney " + " ".join(words), "COMP_CWORD": str(len(words))}
        environment = {**os.environ, **line, "_SPINNEY_COMPLETE": "bash_complete"}
        return subprocess.run(SPINNEY, env=environment, capture_output=True, text=True, check=True).stdout

    assert "plain,doctor" in completed("doc")
    assert "plain,--least-gib" in completed("doctor", "--le")


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
