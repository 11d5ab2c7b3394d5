"""Every command has an example below its help, and every example is understood."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from spinney.flows.cli import main
from spinney.flows.cli.examples import EXAMPLES
from tests.places import ROOT


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
