"""A real round over a folder: a coordinator and the sites, each a process of its own that reads only its own rows.

Run by benchmarks/speed.py as `python -m benchmarks.peers.houses CASE RESULT ALGORITHM`. Keys, signatures, sealed
parcels, masked sums, the audit log and the memory of a round are the product's; Prefect, the pull from a clinical
system and the registry are not part of it (benchmarks/rounds.py times whole nights).
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

COORDINATOR = "coordinator"
PATIENCE = timedelta(minutes=20)


@dataclass(frozen=True)
class House:
    """What one house has: its name, its key, everybody's public keys, and where things are."""

    name: str
    key: bytes
    public: Mapping[str, bytes]
    case: Path
    folder: Path
    algorithm: str

    def run(self, results: Any) -> None:
        """In a process of its own; failures are told, too."""
        try:
            results.put((self.name, self._coordinate() if self.name == COORDINATOR else self._take_part()))
        except BaseException as error:
            results.put((self.name, error))
            raise

    def _coordinate(self) -> dict[str, Any]:
        from spinney.house.rounds import CoordinatorSession
        from spinney.storage.files import RoundState

        memory = RoundState(self.folder / self.name / "rounds" / "1")
        sites = [name for name in self.public if name != COORDINATOR]
        over = CoordinatorSession(self._study(), self._desk(), sites, memory, PATIENCE).run()
        return {"model": over.model, "void": over.void}

    def _take_part(self) -> dict[str, Any]:
        from spinney.connectors.tables import read_table
        from spinney.house.rounds import SiteSession
        from spinney.rows.cohort import cohort_from_frame
        from spinney.storage.files import RoundState, ScoredTrees

        study, channel, home = self._study(), self._desk(), self.folder / self.name
        cohort = cohort_from_frame(read_table(self.case / "tables" / f"{self.name}.csv"), study)
        memory, history = RoundState(home / "rounds" / "1"), ScoredTrees(home / "scored")
        part = SiteSession(study, channel, COORDINATOR, cohort, memory, history)
        part.run(PATIENCE)
        assert part.outcome is not None
        model, noted = part.outcome.model, [line.entry for line in channel.audit.lines()]
        sent, fetched = (sum(one.bytes for one in noted if one.direction == way) for way in ("sent", "received"))
        return {"auroc": self._auroc(model), "trees": len(model.owners_), "sent": sent, "fetched": fetched}

    def _auroc(self, model: Any) -> float:
        """On the rows that nobody got."""
        import pandas as pd

        from spinney.choice.metrics import auroc

        rows = pd.read_csv(self.case / "held_out.csv", names=["y", *(one.name for one in self._study().features)])
        return float(auroc(rows["y"].to_numpy(), model.predict_proba(rows)[:, 1]))

    def _study(self) -> Any:
        from spinney.configuration.study_file import read_study
        from spinney.plugins import ALGORITHMS

        study = read_study(self.case / "study.yaml")
        return study.model_copy(update={"algorithm": ALGORITHMS[self.algorithm].settings()})

    def _desk(self) -> Any:
        from spinney.connectors.exchange import Exchange, SystemClock
        from spinney.house.audit import Audit
        from spinney.house.channel import RoundChannel
        from spinney.house.envelopes import Rounds
        from spinney.house.keys import Identity

        home, study = self.folder / self.name, self._study()
        exchange = Exchange.open(str(self.folder / "exchange"))
        rounds = Rounds(home, study.name, self.name).enter(1)
        audit, me = Audit(home / "audit.jsonl"), Identity.from_pem(self.key, self.name)
        return RoundChannel(
            home, self.name, study.name, study.digest, 1, me, rounds, self.public, exchange, audit, SystemClock()
        )


def main() -> None:
    case, result, algorithm = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    from spinney.house.keys import Identity

    sites = json.loads((case / "case.json").read_text(encoding="utf-8"))["sites"]
    identities = {name: Identity.new() for name in (COORDINATOR, *(f"site-{n + 1}" for n in range(sites)))}
    public = {name: identity.public for name, identity in identities.items()}
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "exchange").mkdir()
        houses = [House(name, one.pem(), public, case, Path(folder), algorithm) for name, one in identities.items()]
        processes = [context.Process(target=house.run, args=(results,)) for house in houses]
        for process in processes:
            process.start()
        told = dict(results.get() for _ in processes)
        for process in processes:
            process.join()
    failed = {name: one for name, one in told.items() if isinstance(one, BaseException)}
    over = told.pop(COORDINATOR)
    if failed or over["void"]:
        raise SystemExit(f"the round came to nothing: {failed or over['void']}")
    mean = {name: sum(site[name] for site in told.values()) / len(told) for name in ("auroc", "trees")}
    total = {name: sum(site[name] for site in told.values()) for name in ("sent", "fetched")}
    result.write_text(json.dumps({**mean, **total, "model": over["model"]}), encoding="utf-8")


if __name__ == "__main__":
    main()
