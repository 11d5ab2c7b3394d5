"""What people see of the demo: live progress, and afterwards what every hospital had, has and has sent."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spinney.choice.metrics import Figure
from spinney.choice.verdict import MARKS, verdict_of
from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import Registry
from spinney.demo.federation import COORDINATOR
from spinney.flows.demo.night import Doing
from spinney.flows.demo.setting import World
from spinney.house.audit import Audit, what_is

SIGNS = {"COMPLETED": "done", "FAILED": "failed", "CRASHED": "failed", "RUNNING": "", "PENDING": ""}


class NightProgress:
    """A table that moves on a terminal; elsewhere a line whenever something changes."""

    def __init__(self, world: World, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._world, self._quiet, self._began = world, quiet, time.monotonic()
        self._lines: list[str] = []
        self._doing: dict[str, Doing] = {}
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        if self._moves:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self._live.stop()
        if kind is KeyboardInterrupt and not self._quiet:
            self._console.print("stopped; nothing is left running. The same command goes on where it stopped.")

    @property
    def _moves(self) -> bool:
        return self._console.is_terminal and not self._quiet

    def tell(self, words: str) -> None:
        self._line(words)

    def show(self, doing: Mapping[str, Doing]) -> None:
        for house, now in doing.items():
            before = self._doing.get(house)
            if not self._moves and (before is None or _said(before) != _said(now)):
                self._line(f"{house:12s} {_said(now)}")
        self._doing.update(doing)
        self._draw()

    def _line(self, words: str) -> None:
        line = f"{time.monotonic() - self._began:5.0f} s  {words}"
        if self._moves:
            self._lines.append(line)
            self._draw()
        elif not self._quiet:
            self._console.print(line, soft_wrap=True)

    def _draw(self) -> None:
        if not self._moves:
            return
        table = Table(box=None, show_header=False, padding=(0, 2))
        for house in self._world.houses if self._doing else ():
            now = self._doing.get(house, Doing("waiting", "PENDING"))
            form = self._world.form(house) if house != COORDINATOR else ""
            table.add_row(house, form, _said(now))
        seconds = Text(f"{time.monotonic() - self._began:5.0f} s", style="dim")
        self._live.update(Group(*[Text(line) for line in self._lines], table, seconds))


def _said(doing: Doing) -> str:
    return SIGNS.get(doing.state) or doing.step


def gather_night(world: World, night: int, seconds: float | None = None) -> dict[str, Any]:
    """What came of a night, from the houses' own folders."""
    village = world.village
    return {
        "study": village.study,
        "night": night,
        "seconds": None if seconds is None else round(seconds, 1),
        "folder": str(world.folder),
        "sites": {site: _site(world, site, night) for site in village.sites},
        "coordinator": world.result(COORDINATOR, night),
        "reports": [str(path) for house in world.houses if (path := _report(world, house, night)).exists()],
    }


def _site(world: World, site: str, night: int) -> dict[str, Any]:
    home, study = world.village.home(site), world.village.study
    registry = Registry(home, RegistrySettings())
    version = next(one for one in registry.versions(study) if one.round == night)
    evidence = registry.evidence(version)
    lines = [line.entry for line in Audit(home / "audit.jsonl").lines()]
    sent = [entry for entry in lines if entry.direction == "sent" and (entry.study, entry.round) == (study, night)]
    bytes_of: Counter[str] = Counter()
    for entry in sent:
        bytes_of[entry.kind] += entry.bytes
    return {
        "data": world.form(site),
        "rows": evidence["rows"],
        "positives": evidence["positives"],
        "local": evidence["auroc_intervals"].get("local"),
        "chosen": evidence["auroc_intervals"].get("chosen"),
        "gain": evidence["gain"].get("auroc"),
        "verdict": _verdict(evidence),
        "choice": evidence["choice"]["model"],
        "version": version.number,
        "aliases": list(version.aliases),
        "sent": dict(bytes_of),
    }


def _verdict(evidence: Mapping[str, Any]) -> dict[str, str]:
    """Did it help tonight? In words."""
    gain = evidence["gain"].get("auroc")
    known = gain is not None and gain["value"] is not None
    verdict = verdict_of(Figure(**gain) if known else None, evidence["patients"])
    return {"word": verdict.word, "sentence": verdict.sentence}


def _report(world: World, house: str, night: int) -> Path:
    return world.village.home(house) / "reports" / world.village.study / f"round-{night}.html"


def show(told: Mapping[str, Any], *, already: bool) -> None:
    """The table, what left, and where to look next."""
    console = Console(highlight=False, width=None if Console().is_terminal else 118)
    if already:
        console.print(f"night {told['night']} is done; the next one: make demo NIGHT={told['night'] + 1}\n")
    _show_gains(console, told)
    for site, one in told["sites"].items():
        console.print(f"  {MARKS[one['verdict']['word']]} {site}: {one['verdict']['sentence']}.")
    console.print()
    _show_sent(console, told)
    _show_places(console, told)


def _show_gains(console: Console, told: Mapping[str, Any]) -> None:
    table = _gains(told, wide=True)
    if console.measure(table, options=console.options.update(max_width=1000)).maximum > console.width:
        table = _gains(told, wide=False)
    console.print(table)


def _gains(told: Mapping[str, Any], *, wide: bool) -> Table:
    """What every hospital had and has; not wide: in 80 columns."""
    title = f"{told['study']}, night {told['night']}: AUROC on patients who trained nothing"
    form: dict[str, Any] = {"box": box.SIMPLE_HEAD} if wide else {"box": None, "pad_edge": False}
    table = Table(title=title, title_justify="left", title_style="bold", **form)
    table.add_column("hospital", no_wrap=True)
    if wide:
        table.add_column("data")
    for column in ("stays", "back", "had (own)" if wide else "had", "has now" if wide else "has", "gain (95 %)"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("in use", no_wrap=wide, overflow="fold")
    for site, one in told["sites"].items():
        table.add_row(
            site,
            *([one["data"]] if wide else []),
            f"{one['rows']:,}",
            f"{one['positives']:,}",
            _value(one["local"]),
            _value(one["chosen"]),
            _gain(one["gain"]),
            f"{one['choice']} v{one['version']}",
        )
    return table


def _value(figure: Mapping[str, float] | None) -> str:
    return "too few" if figure is None or figure["value"] is None else f"{figure['value']:.3f}"


def _gain(figure: Mapping[str, float] | None) -> str:
    if figure is None or figure["value"] is None:
        return ""
    return f"{figure['value']:+.3f} ({figure['low']:+.2f} to {figure['high']:+.2f})"


def _show_sent(console: Console, told: Mapping[str, Any]) -> None:
    sites = list(told["sites"])
    table = Table(title="what left each house, in bytes", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("")
    for site in sites:
        table.add_column(site, justify="right")
    for kind in dict.fromkeys(kind for one in told["sites"].values() for kind in one["sent"]):
        table.add_row(what_is(kind), *(f"{told['sites'][site]['sent'].get(kind, 0):,}" for site in sites))
    console.print(table)


def _show_places(console: Console, told: Mapping[str, Any]) -> None:
    folder = Path(told["folder"])
    shown = _near(folder)
    if told["seconds"] is not None:
        console.print(f"The night took {told['seconds']:.0f} s after everything was set up. Nothing runs any more.")
    for report in told["reports"]:
        console.print(f"  report     {_near(Path(report))}", soft_wrap=True)
    first, spinney = next(iter(told["sites"])), _as_called()
    console.print(f"  sent       {spinney} audit show --home {shown}/{first}/home", soft_wrap=True)
    console.print(
        f"  look       {spinney} up --out {shown}      (Prefect UI and MLflow; `down` ends it)", soft_wrap=True
    )
    console.print(f"  next       {spinney} demo night --night {told['night'] + 1} --out {shown}", soft_wrap=True)


def _as_called() -> str:
    """How this program can be called here: `make demo` puts it on nobody's path."""
    return "spinney" if shutil.which("spinney") else _near(Path(sys.argv[0]).absolute())


def _near(path: Path) -> str:
    """Relative to where we are, if it is below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
