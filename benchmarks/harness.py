"""What all benchmarks share: figures with their spread, the machine that they were taken on, tables, JSON.

A part is a module that measures and tells:

    def measure(asked: argparse.Namespace) -> Measured: ...

    if __name__ == "__main__":
        command("speed", __doc__, measure)

`python -m benchmarks.speed` prints its tables; `--write` puts them into README.md between `<!-- speed:begin -->` and
`<!-- speed:end -->`; `--json FILE` keeps every run of every figure for `benchmarks.compare`. A part whose data or peers
are not on this machine raises `CannotRun`; one that lacks only some of them tells so in `missing`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

README = Path(__file__).with_name("README.md")
CANNOT_RUN = 3  # exit code


class CannotRun(Exception):
    """What a part needs is not here; the message says what that is and how to get it."""


@dataclass(frozen=True)
class Figure:
    """One measured quantity with all its runs, so that whoever compares it later knows the noise."""

    name: str  # from the general to the special: "breast cancer/spinney simulate/wall"
    unit: str
    runs: tuple[float, ...]
    better: Literal["less", "more", "neither"] = "less"

    @property
    def median(self) -> float:
        """Of the runs."""
        return statistics.median(self.runs)

    def told(self, form: str = ",.2f") -> str:
        """The median and, where it was measured more than once, the smallest and the largest run."""
        if len(self.runs) == 1:
            return f"{self.median:{form}}"
        return f"{self.median:{form}} ({min(self.runs):{form}} to {max(self.runs):{form}})"


@dataclass(frozen=True)
class Measured:
    """What a part found: figures for machines, Markdown for people."""

    figures: Sequence[Figure]
    told: str
    missing: Sequence[str] = ()  # what was left out, and why


def command(
    part: str,
    doc: str | None,
    measure: Callable[[argparse.Namespace], Measured],
    more: Callable[[argparse.ArgumentParser], None] | None = None,
    arguments: Sequence[str] | None = None,
    page: Path = README,
) -> None:
    """Run one part as a command; `more` adds its own options, `page` is where its tables stand."""
    parser = argparse.ArgumentParser(
        prog=f"benchmarks.{part}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer runs: does it run, and roughly?")
    parser.add_argument("--data", type=Path, help="folder with public data sets, for parts that want real ones")
    parser.add_argument("--json", type=Path, help="write every run of every figure here")
    parser.add_argument("--write", action="store_true", help=f"replace this part's tables in {page.name}")
    if more:
        more(parser)
    asked = parser.parse_args(arguments)
    if asked.write and asked.quick:
        parser.error("--write is for the whole run")
    try:
        found = measure(asked)
    except CannotRun as reason:
        print(f"benchmarks.{part} can't run: {reason}", file=sys.stderr)
        raise SystemExit(CANNOT_RUN) from None
    told = "\n\n".join([machine(), found.told, *(f"Not measured: {reason}." for reason in found.missing)])
    print(told)
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(_plain(part, asked.quick, found), indent=1) + "\n", encoding="utf-8")
    if asked.write:
        write_block(page, f"<!-- {part}:begin -->", f"<!-- {part}:end -->", told)


def machine() -> str:
    """What the figures were taken on."""
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "pandas", "scikit-learn", "prefect", "spinney")
    )
    return f"Python {platform.python_version()}, {versions}; {hardware()}."


def hardware() -> str:
    """The part of it that doesn't change with what is installed."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return ", ".join(filter(None, [f"{platform.system()} {platform.machine()}", named, f"{os.cpu_count()} cores"]))


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write_block(file: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two markers."""
    before, _, rest = file.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{file.name} has no block {begin} {end}")
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _plain(part: str, quick: bool, found: Measured) -> dict[str, Any]:
    return {
        "part": part,
        "machine": machine(),
        "hardware": hardware(),
        "quick": quick,
        "figures": [asdict(one) for one in found.figures],
        "missing": list(found.missing),
    }
