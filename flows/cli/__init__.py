"""The command line. Commands are imported when they are called, so that help is there at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from spinney.errors import SpinneyError
from spinney.flows.cli.examples import with_examples

# Its name -> the module beside this one that has it, and what it is for.
COMMANDS = {
    "admission": ("admission", "Decide whether a federated model may be used at this site."),
    "audit": ("audit", "Show and verify what left this house and what came."),
    "completion": ("completion", "Print a script that completes commands in your shell."),
    "coordinator": ("coordinator", "Found a federation, invite and admit sites, dismiss them."),
    "demo": ("demo", "Make up hospitals, and let them run a night."),
    "doctor": ("doctor", "Look at everything that a night needs, and say what to do."),
    "down": ("up", "End the world that `spinney up` keeps running."),
    "house": ("house", "Look after everything that this house keeps."),
    "keys": ("keys", "Make, show and rotate this house's signing key."),
    "model": ("model", "List, compare, promote, roll back and export this site's models."),
    "predict": ("predict", "Score the rows of a file with a model of this site."),
    "simulate": ("simulate", "Run a whole federation in one process."),
    "site": ("site", "Look at a site's own data, join studies, approve them."),
    "study": ("study", "Write and check the study that all sites sign."),
    "up": ("up", "Keep the demo's world running, to click through it."),
}

EXIT_CODES = """\b
Exit codes:
  0  done
  1  interrupted, or a defect in Spinney (with a traceback)
  2  wrong usage or wrong input; what to do is on stderr
"""


class LazyGroup(click.Group):
    """Lists its commands without importing them."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(self.lazy)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.lazy:
            return None
        command: click.Command = getattr(import_module(f"{__name__}.{self.lazy[name][0]}"), name)
        return with_examples(command, name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if near := get_close_matches(args[0], self.lazy, n=2):
                ctx.fail(f"{error.message} Did you mean {' or '.join(near)}?")
            raise

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.lazy[name][1]) for name in sorted(self.lazy)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SpinneyError as error:
            if ctx.params["debug"]:
                raise
            click.echo(str(error), err=True)
            ctx.exit(2)


@click.command(cls=LazyGroup, lazy=COMMANDS, epilog=EXIT_CODES)
@click.version_option(package_name="spinney", prog_name="spinney")
@click.option("--debug", is_flag=True, help="Show where in the code an error comes from.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:  # noqa: ARG001 (read in LazyGroup.invoke)
    """Hospitals grow forests together, and no patient leaves the house."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
