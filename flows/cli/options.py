"""Options that several commands share."""

from __future__ import annotations

import getpass
import shlex
from pathlib import Path

import click

from spinney.plugins import Offers


class Offered(click.Choice[str]):
    """One of what was found by itself; its names are known without importing it."""

    def __init__(self, offers: Offers) -> None:
        super().__init__(offers.names)


class HowMany(click.ParamType[int | str]):
    """A number from 1 on, or `auto`."""

    name = "number|auto"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "auto":
            return "auto"
        try:
            number = int(str(value))
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{value!r} is neither auto nor a number from 1 on", param, ctx)
        return number


def _whoever_is_logged_in() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return ""


def given(option: str, file: Path, usual: str) -> str:
    """How a printed command names a file, so that it can be pasted; nothing where the usual one is meant."""
    return "" if str(file) == usual else f" {option} {shlex.quote(str(file))}"


site_option = click.option(
    "--site", "site_file", type=click.Path(path_type=Path), default="site.yaml", show_default=True, help="Site's file."
)
coordinator_option = click.option(
    "--coordinator",
    "coordinator_file",
    type=click.Path(path_type=Path),
    default="coordinator.yaml",
    show_default=True,
    help="Coordinator's file.",
)
study_option = click.option("--study", help="Name of the study, where the house has several.")
by_option = click.option(
    "--by", default=_whoever_is_logged_in, show_default="who is logged in", help="Who decides, for the audit log."
)
yes_option = click.option("--yes", is_flag=True, help="Don't ask; for scripts.")
json_option = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
