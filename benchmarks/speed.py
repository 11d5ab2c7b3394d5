"""The same federated forest in spinney, in its peers, and in plain scikit-learn: from the command to the result.

    python -m benchmarks.speed                   # breast cancer, 4 sites x 25 trees
    python -m benchmarks.speed_large             # 100,000 x 30 made-up rows, 4 sites x 100 trees of depth 12

Every system is a command that reads CSV files, grows the trees of all sites and ends with a model; they take turns,
and who begins changes from turn to turn. Peers have environments of their own in build/peers/, made at the first run.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import CannotRun, Figure, Measured, command, table
from benchmarks.speed_cases import Case
from benchmarks.speed_peers import FLARE, FLOWER, ROOT, NotInstalled, Peer, versions
from benchmarks.speed_tree import Spent, spent

SMALL = Case("breast cancer", trees=25)
TURNS = 3
TIMEOUT = 900.0
NOT_OURS = re.compile(r"/(\.[^/]*|build|tests|docs|site)/")
SCRIPTS = Path(__file__).with_name("peers")
FLOOR, SIMULATE, ROUND = "scikit-learn, one process", "spinney simulate", "spinney round, five houses"
LAST = {"trees": ".0f", "auroc": ".3f"}
UNSCORED = {SIMULATE: f"{SIMULATE}, equal votes", ROUND: f"{ROUND}, equal votes"}


@dataclass(frozen=True)
class System:
    """One way to get the forest."""

    name: str
    words: tuple[str, ...]
    peer: Peer | None = None  # None: runs in this environment
    algorithm: str = ""


def systems() -> list[System]:
    """Words in braces stand for the case's folder and the file of the result."""
    ours = sys.executable
    simulate = (str(Path(ours).with_name("spinney")), "simulate", "{case}/study.yaml", "--data", "{case}/tables")
    houses = (ours, "-m", "benchmarks.peers.houses", "{case}", "{result}")
    peer = {
        one.name: (str(one.python), str(SCRIPTS / f"{one.name}.py"), "{case}", "{result}") for one in (FLOWER, FLARE)
    }
    return [
        System(FLOOR, (ours, str(SCRIPTS / "scikit.py"), "{case}", "{result}")),
        System(SIMULATE, (*simulate, "--json", "{result}"), algorithm="bofrf"),
        System(UNSCORED[SIMULATE], (*simulate, "--json", "{result}", "--algorithm", "fedrf"), algorithm="fedrf"),
        System(ROUND, (*houses, "bofrf"), algorithm="bofrf"),
        System(UNSCORED[ROUND], (*houses, "fedrf"), algorithm="fedrf"),
        System("Flower simulation", peer["flower"], FLOWER),
        System("NVIDIA FLARE simulator", peer["flare"], FLARE),
    ]


class Failed(Exception):
    """A system did not get to its end."""


@dataclass
class Results:
    """All turns of all systems."""

    spent: dict[str, list[Spent]] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def measured(self, case: Case) -> Measured:
        """Figures and tables."""
        if FLOOR not in self.spent:
            raise CannotRun("; ".join(self.missing))
        figures = [figure for name in self.spent for figure in self._figures(case, name)]
        head = ["", "wall s", "x floor", "processor s", "peak MiB", "sites send", "sites fetch", "trees", "AUROC"]
        told = f"{case.told}; {self._turns()}. {versions(FLOWER, FLARE)}"
        return Measured(figures, f"{told}\n\n{table(head, self._rows())}", self.missing)

    def _turns(self) -> str:
        turns = len(self.spent[FLOOR])
        return f"median of {turns} turns (smallest to largest)" if turns > 1 else "measured once"

    def _figures(self, case: Case, name: str) -> Iterator[Figure]:
        runs, told = self.spent[name], self.told[name]
        yield Figure(f"{case.name}/{name}/wall", "s", tuple(one.wall for one in runs))
        yield Figure(f"{case.name}/{name}/processor", "s", tuple(one.processor for one in runs))
        yield Figure(f"{case.name}/{name}/peak", "MiB", tuple(one.peak_mib for one in runs))
        for way in ("sent", "fetched"):
            if told.get(way) is not None:
                yield Figure(f"{case.name}/{name}/{way}", "B", (told[way],))
        if told["auroc"] is not None:
            yield Figure(f"{case.name}/{name}/AUROC", "AUROC", (told["auroc"],), "more")

    def _rows(self) -> Iterator[list[str]]:
        for name, runs in self.spent.items():
            told = self.told[name]
            pairs = zip(runs, self.spent[FLOOR], strict=True)
            times, ratios = [one.wall for one in runs], [one.wall / floor.wall for one, floor in pairs]
            cells = [_told(times, ".1f"), _told(ratios, ".1f"), _told([one.processor for one in runs], ".1f")]
            cells += [f"{statistics.median(one.peak_mib for one in runs):,.0f}"]
            cells += [_size(told.get("sent")), _size(told.get("fetched"))]
            cells += ["" if told[what] is None else f"{told[what]:{form}}" for what, form in LAST.items()]
            yield [name, *cells]


def run(case: Case, turns: int, wanted: Sequence[System], *, make: bool = True) -> Results:
    """Everybody in turns."""
    results = Results()
    compileall.compile_dir(str(ROOT), maxlevels=3, rx=NOT_OURS, quiet=2)  # as the others' packages are
    ready = [one for one in wanted if _installed(one, results, make)]
    with tempfile.TemporaryDirectory(prefix="speed-") as name:
        folder = case.write(Path(name) / "case")
        for turn in range(turns):
            for system in [*ready] if turn % 2 == 0 else [*reversed(ready)]:
                print(f"{case.name}, turn {turn + 1} of {turns}: {system.name}", file=sys.stderr, flush=True)
                try:
                    one, told = measured_once(system, folder, Path(name) / f"{turn}-{wanted.index(system)}")
                except Failed as reason:
                    if system.peer is None:
                        raise SystemExit(str(reason)) from None
                    results.missing.append(str(reason))
                    ready.remove(system)
                    continue
                results.spent.setdefault(system.name, []).append(one)
                results.told[system.name] = told
    _same_model(results.told)
    results.spent = {one.name: results.spent[one.name] for one in ready}
    return results


def measured_once(system: System, case: Path, folder: Path) -> tuple[Spent, dict[str, Any]]:
    """What one command costs, and what it says of its model."""
    folder.mkdir()
    result = folder / "result.json"
    words = [word.format(case=case, result=result) for word in system.words]
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "FLWR_HOME": str(folder / "flower")}
    env = {**os.environ, **quiet, "PYTHONWARNINGS": "ignore", "TMPDIR": str(folder)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody compiles all libraries anew at every start
    one = spent(words, folder / "log", cwd=ROOT, env=env, timeout=TIMEOUT)
    if one.code or not result.exists():
        said = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        print("\n".join(said[-20:]), file=sys.stderr)
        raise Failed(f"{system.name} ended with {one.code} and without a result")
    told = json.loads(result.read_text(encoding="utf-8"))
    return one, _of_simulation(told) if "model_digest" in told else told


def _of_simulation(told: Mapping[str, Any]) -> dict[str, Any]:
    """The command tells a digest; the model itself is that of the round with the same digest."""
    return {"model": told["model_digest"], "sent": told["bytes_between_sites"], "trees": None, "auroc": None}


def _same_model(told: dict[str, dict[str, Any]]) -> None:
    """A simulation's model is the round's, bit for bit; if it is not, its figures are left out."""
    for simulation, round_ in ((SIMULATE, ROUND), (UNSCORED[SIMULATE], UNSCORED[ROUND])):
        if simulation in told:
            other = told.get(round_, {})
            same = other.get("model") == told[simulation]["model"]
            told[simulation] |= {"auroc": other["auroc"], "trees": other["trees"]} if same else {}


def _installed(system: System, results: Results, make: bool) -> bool:
    if system.peer is None:
        return True
    try:
        system.peer.ready(make)
    except NotInstalled as reason:
        results.missing.append(str(reason))
        return False
    return True


def _told(runs: Sequence[float], form: str) -> str:
    return Figure("", "", tuple(runs)).told(form)


def _size(count: float | None) -> str:
    if count is None:
        return ""
    return f"{count / 1e6:,.2f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


def measure(asked: argparse.Namespace) -> Measured:
    """Breast cancer; a quick run does once what is installed, and leaves out equal votes."""
    if not asked.quick:
        return run(SMALL, TURNS, systems()).measured(SMALL)
    wanted = [one for one in systems() if one.name not in UNSCORED.values()]
    return run(SMALL, 1, wanted, make=False).measured(SMALL)


if __name__ == "__main__":
    command("speed", __doc__, measure)
