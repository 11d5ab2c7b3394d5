"""Seconds of whole nights under Prefect, and seconds and bytes of every step.

    python -m benchmarks.rounds --write      # 4 sites x 25 trees over a folder, 20 sites x 100 trees over S3
    python -m benchmarks.rounds --quick      # 3 sites x 5 trees over a folder

A Prefect server, and for S3 a SeaweedFS, are up before. Sites and coordinator are threads of one new process, and a
night lasts from that process's start until its last flow has ended, models registered and reports written. The first
night of a process is cold: it imports every library, and new houses make their registries. Those after it are warm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, Measured, command, table
from spinney.demo.federation import COORDINATOR, Village
from spinney.house.audit import Audit, AuditEntry
from spinney.house.channel import PARCEL
from spinney.house.envelopes import START, TAG_BYTES
from spinney.reports.facts import of_round, steps_in
from spinney.storage.files import installation_folder
from tests.federations import breast_study, breast_village, simulated
from tests.servers.prefect_server import PrefectServer, migrated_database
from tests.servers.seaweed import BUCKET, KEY, SECRET, Seaweed

PATIENCE = {"answer_minutes": 20, "opening_minutes": 20}


@dataclass(frozen=True)
class Case:
    """A federation of breast cancer data: how many processes are started, and how many nights each has."""

    sites: int
    trees: int
    store: str
    starts: int
    nights: int

    @property
    def name(self) -> str:
        return f"{self.sites} sites x {self.trees} trees over {'S3' if self.store == 's3' else 'a folder'}"

    def settings(self) -> dict[str, Any]:
        # a twentieth of 569 patients are 28: the floor of the study is lowered for the sake of many sites
        small = {"smallest_cohort": 10} if self.sites > 10 else {}
        return {"trees": self.trees, "privacy": {"epoch_nights": 1, **small}, "schedule": PATIENCE}


WHOLE = (Case(4, 25, "folder", starts=3, nights=3), Case(20, 100, "s3", starts=1, nights=2))
QUICK = (Case(3, 5, "folder", starts=1, nights=2),)


def run(asked: argparse.Namespace) -> Measured:
    """Every federation, one after the other, with one Prefect server."""
    figures: list[Figure] = []
    parts: list[str] = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "prefect").mkdir()
        database = migrated_database(installation_folder() or folder / "template")
        server = stack.enter_context(PrefectServer(folder / "prefect", database))
        for number, case in enumerate(QUICK if asked.quick else WHOLE):
            exchange, secrets = _store(folder, stack) if case.store == "s3" else (None, {})
            villages = []
            taken: list[list[float]] = []
            for start in range(case.starts):
                village = breast_village(
                    folder / f"{number}-{start}", _names(case.sites), _apart(exchange, start), **case.settings()
                )
                villages.append(village)
                taken.append(_nights(village, case, {**server.environment, **secrets}))
            figures += _figures(case, taken)
            parts += [_told(case, _figures(case, taken)), _steps(villages[-1], case.nights)]
            parts += [_bytes(villages[-1], case.nights)]
    return Measured(figures, "\n\n".join(parts))


def _names(sites: int) -> list[str]:
    return [f"site{number:02d}" for number in range(1, sites + 1)]


def _store(folder: Path, stack: ExitStack) -> tuple[dict[str, Any], dict[str, str]]:
    (folder / "weed").mkdir()
    store = stack.enter_context(Seaweed(folder / "weed"))
    exchange = {
        "url": f"s3://{BUCKET}",
        "options": {"endpoint_url": store.options()["endpoint_url"]},
        "secrets": {"key": "EXCHANGE_KEY", "secret": "EXCHANGE_SECRET"},
    }
    return exchange, {"EXCHANGE_KEY": KEY, "EXCHANGE_SECRET": SECRET}


def _apart(exchange: Mapping[str, Any] | None, start: int) -> dict[str, Any] | None:
    """The same bucket, a folder of it for each village."""
    return None if exchange is None else {**exchange, "url": f"{exchange['url']}/{start}"}


def _nights(village: Village, case: Case, environment: Mapping[str, str]) -> list[float]:
    """Seconds of a new process's nights; in each every site took part, and the first has the simulation's model."""
    words = [str(village.folder), village.study, str(case.nights), *village.sites]
    process = [sys.executable, "-m", "benchmarks.rounds_process", *words]
    log = village.folder / "log"
    times = [time.monotonic()]  # the same clock in all processes
    with log.open("wb") as errors:
        done = subprocess.run(process, env=dict(environment), stdout=subprocess.PIPE, stderr=errors, check=False)
    if done.returncode:
        raise SystemExit(f"{case.name} failed:\n{log.read_text(errors='replace')[-3000:]}")
    times += map(float, done.stdout.split())
    for night in range(1, case.nights + 1):
        _check(village, case, night)
    return [after - before for before, after in pairwise(times)]


def _check(village: Village, case: Case, night: int) -> None:
    result = json.loads((village.home(COORDINATOR) / "nights" / village.study / f"{night}.json").read_bytes())
    if result["absent"] or result["void"]:
        raise SystemExit(f"{case.name}, night {night}: void {result['void']!r}, absent {result['absent']}")
    # later, trees that tiny cohorts grow again are not scored again, and a simulation knows no earlier night
    if night == 1 and result["model"] != simulated(village, breast_study(**case.settings())).model_digest:
        raise SystemExit(f"{case.name}: the first night does not have the simulation's model")


def _figures(case: Case, taken: list[list[float]]) -> list[Figure]:
    warm = tuple(seconds for nights in taken for seconds in nights[1:])
    return [
        Figure(f"{case.name}/cold night", "s", tuple(nights[0] for nights in taken)),
        Figure(f"{case.name}/warm night", "s", warm),
    ]


def _told(case: Case, figures: list[Figure]) -> str:
    rows = [[figure.name.rpartition("/")[2], figure.told(",.1f"), str(len(figure.runs))] for figure in figures]
    return f"**{case.name}**\n\n" + table(["", "seconds", "nights"], rows)


def _steps(village: Village, night: int) -> str:
    """What the last night's steps took until the last answer, and what all houses put on the exchange for them."""
    size = dict.fromkeys(("opening", "over"), 0)
    for house in (COORDINATOR, *village.sites):
        for step, count in _sent(village, house, night):
            size[step] = size.get(step, 0) + count
    lines = of_round(Audit(village.home(COORDINATOR) / "audit.jsonl").lines(), village.study, night)
    rows = [[one.name, f"{one.seconds:.2f}", str(one.answers), f"{size.pop(one.name):,}"] for one in steps_in(lines)]
    rows += [[", ".join(size), "", "", f"{sum(size.values()):,}"]]
    return table(["step of the last warm night", "seconds", "answers", "bytes"], rows)


def _bytes(village: Village, nights: int) -> str:
    """All that was put on the exchange in each night, compared with one copy of the compact trees per recipient."""
    lines = []
    for night in range(1, nights + 1):
        entries = [entry for house in (COORDINATOR, *village.sites) for entry in _entries(village, house, night)]
        stored = sum(entry.bytes for entry in entries)
        forests = [entry.bytes for entry in entries if entry.step.startswith(PARCEL)]
        compact = sum(forests) - len(forests) * _around_a_forest(village, nights)
        ratio = stored / (compact * (len(village.sites) - 1))
        lines.append(
            f"night {night}: {stored:,} bytes on the exchange, {compact:,} bytes of compact trees: "
            f"{ratio:.2f} times the trees per recipient"
        )
    return "\n".join(["```", *lines, "```"])


def _around_a_forest(village: Village, night: int) -> int:
    """Bytes that an envelope adds to a forest, the same for every site; the last night's are still in the outbox."""
    outbox = village.home(village.sites[0]) / "outbox" / village.study / str(night)
    (sealed,) = (path.read_bytes() for path in outbox.glob(f"{PARCEL}*"))
    *_, size = START.unpack_from(sealed)
    return len(sealed) - (size - TAG_BYTES)


def _sent(village: Village, house: str, night: int) -> Iterator[tuple[str, int]]:
    for entry in _entries(village, house, night):
        step = "grow" if entry.step.startswith(PARCEL) else entry.step
        yield step.partition("-")[2] if step.startswith("ask") else step, entry.bytes


def _entries(village: Village, house: str, night: int) -> Iterator[AuditEntry]:
    lines = of_round(Audit(village.home(house) / "audit.jsonl").lines(), village.study, night)
    return (line.entry for line in lines if line.entry.direction == "sent")


if __name__ == "__main__":
    command("rounds", __doc__, run)
