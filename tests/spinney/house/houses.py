"""A coordinator, three sites and a folder between them, without papers or flows; houses can be started again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from spinney.connectors.exchange import Clock, Exchange, SystemClock
from spinney.house.audit import Audit
from spinney.house.channel import RoundChannel
from spinney.house.envelopes import Rounds
from spinney.house.keys import Identity
from spinney.house.rounds import CoordinatorSession, SiteSession
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.storage.files import RoundState, ScoredTrees
from spinney.study.study import Study

SITES = ("ash", "birch", "cedar")
PATIENCE = timedelta(seconds=120)


def small_study() -> Study:
    """Five features, eight trees per site."""
    features = [{"name": f"x{n}", "kind": "continuous", "range": [-5, 5]} for n in range(5)]
    settings = {"forest": {"trees": 8}, "choice": {"bootstrap": 100}}
    return Study.model_validate({"name": "fever", "features": features, "label": {"name": "y"}, **settings})


def small_cohorts(study: Study, sites: tuple[str, ...] = SITES) -> dict[str, Cohort]:
    """A hundred and sixty made-up patients each."""
    made = {}
    for number, site in enumerate(sites):
        rng = np.random.default_rng(number)
        table = pd.DataFrame(rng.normal(size=(160, 5)), columns=[f"x{n}" for n in range(5)])
        table["y"] = (table["x0"] + rng.normal(size=160) > 0).astype(int)
        made[site] = cohort_from_frame(table, study)
    return made


class World:
    """Houses that know each other's keys."""

    def __init__(self, folder: Path, study: Study, cohorts: Mapping[str, Cohort]) -> None:
        self.folder, self.study, self.cohorts = folder, study, cohorts
        self.sites = tuple(cohorts)
        self.place.mkdir(parents=True)
        self.identities = {name: Identity.new() for name in ("coordinator", *cohorts)}
        self.roster = {name: identity.public for name, identity in self.identities.items()}
        self.clocks: dict[str, Clock] = {}
        self.patience = timedelta(minutes=2)  # with an exchange that is away

    @property
    def place(self) -> Path:
        """The exchange."""
        return self.folder / "exchange"

    def home(self, name: str) -> Path:
        return self.folder / name

    def channel(self, name: str, number: int = 1) -> RoundChannel:
        return RoundChannel(
            self.home(name),
            name,
            self.study.name,
            self.study.digest,
            number,
            self.identities[name],
            Rounds(self.home(name), self.study.name, name).enter(number),
            self.roster,
            Exchange.open(str(self.place)),
            self.audit(name),
            self.clocks.get(name, SystemClock()),
            self.patience,
        )

    def audit(self, name: str) -> Audit:
        return Audit(self.home(name) / "audit.jsonl")

    def refusals(self, name: str) -> list[str]:
        """What a house has refused, by kind."""
        self.audit(name).verify()
        return [line.entry.kind for line in self.audit(name).lines() if line.entry.direction == "refused"]

    def coordinator(self, patience: timedelta = PATIENCE, channel: RoundChannel | None = None) -> CoordinatorSession:
        channel = channel or self.channel("coordinator")
        memory = RoundState(self.home("coordinator") / "rounds" / str(channel.round))
        return CoordinatorSession(self.study, channel, self.sites, memory, patience)

    def site(self, name: str, channel: RoundChannel | None = None) -> SiteSession:
        channel = channel or self.channel(name)
        memory = RoundState(self.home(name) / "rounds" / str(channel.round))
        history = ScoredTrees(self.home(name) / "scored")
        return SiteSession(self.study, channel, "coordinator", self.cohorts[name], memory, history)

    def night(self, run: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        """All at once; the first trouble is raised when all have ended."""
        with ThreadPoolExecutor(len(run)) as pool:
            started = {name: pool.submit(work) for name, work in run.items()}
            return {name: future.result() for name, future in started.items()}

    def honest(self, *names: str) -> dict[str, Callable[[], object]]:
        """The nights of some sites."""
        return {name: lambda name=name: self.site(name).run(PATIENCE) for name in names}  # type: ignore[misc]
