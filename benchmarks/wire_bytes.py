"""Bytes and seconds of a round over a folder, house by house: what is stored, and what one site sends and fetches.

    python -m benchmarks.wire_bytes                      # the federations of the table in README.md
    python -m benchmarks.wire_bytes --sites 8 --trees 50 --rows 1000

The yardstick is the compact size of the trees: the bytes of the packed forests before they are sealed. A site needs the
forests of all others, so what it fetches is compared with the sum of those.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np

from benchmarks.federations import breast_cancer, made_up
from benchmarks.harness import README, table, write_block
from connectors.audit import Audit
from connectors.desk import PARCEL, Desk
from connectors.exchange import Address, Exchange, SystemClock
from connectors.keys import Identity
from connectors.memory import History, Memory
from connectors.rounds import CoordinatorRound, SiteRound
from connectors.security import Rounds
from spinney.cohort import Cohort
from spinney.simulate import simulate
from spinney.study import Study

COORDINATOR = "coordinator"
PATIENCE = timedelta(minutes=20)


class CountedExchange(Exchange):
    """An exchange that counts what goes through it, by kind of message."""

    sent: Counter[str]
    fetched: Counter[str]

    @classmethod
    def counted(cls, folder: Path) -> CountedExchange:
        exchange = cls.open(str(folder))
        exchange.sent, exchange.fetched = Counter(), Counter()
        return exchange

    def put(self, address: Address, data: bytes) -> None:
        super().put(address, data)
        self.sent[_kind(address.step)] += len(data)

    def get(self, address: Address, limit: int) -> bytes | None:
        data = super().get(address, limit)
        self.fetched[_kind(address.step)] += len(data or b"")
        return data


@dataclass(frozen=True)
class Measured:
    """One round."""

    name: str
    seconds: float
    compact: int  # bytes of all packed forests
    sealed: int  # the same on the exchange
    sent: Mapping[str, Counter[str]]  # house -> kind -> bytes
    fetched: Mapping[str, Counter[str]]
    same_digest: bool

    @property
    def sites(self) -> list[str]:
        return [house for house in self.sent if house != COORDINATOR]

    @property
    def stored(self) -> int:
        """Everything that lies on the exchange when the round is over."""
        return sum(counts.total() for counts in self.sent.values())

    @property
    def needed(self) -> float:
        """Compact bytes of the forests that one site needs, on average."""
        return self.compact * (len(self.sites) - 1) / len(self.sites)

    @property
    def stored_ratio(self) -> float:
        """Of all that is stored, to the trees times their recipients."""
        return self.stored / (self.compact * (len(self.sites) - 1))

    @property
    def fetched_ratio(self) -> float:
        """Of all that a site fetches, letters included, to the trees that it needs."""
        return float(np.mean([self.fetched[site].total() for site in self.sites])) / self.needed

    @property
    def traffic_ratio(self) -> float:
        """Of all that a site fetches and sends, its hidden counts included, to the trees that it needs."""
        both = [self.fetched[site].total() + self.sent[site].total() for site in self.sites]
        return float(np.mean(both)) / self.needed


def measure(name: str, study: Study, cohorts: Mapping[str, Cohort], *, check: bool = True) -> Measured:
    """One round of all houses, in threads of this process, over a folder."""
    with tempfile.TemporaryDirectory() as folder:
        houses = _Houses(Path(folder), study, cohorts)
        begin = time.perf_counter()
        with ThreadPoolExecutor(len(cohorts) + 1) as pool:
            over = pool.submit(houses.coordinator().run)
            parts = [pool.submit(houses.site(site).run, PATIENCE) for site in cohorts]
            result = over.result()
            for part in parts:
                part.result()
        seconds = time.perf_counter() - begin
    if result.void:
        raise SystemExit(f"{name}: the round is void: {result.void}")
    same = not check or result.model == simulate(study, cohorts).model_digest
    sent = {house: exchange.sent for house, exchange in houses.exchanges.items()}
    fetched = {house: exchange.fetched for house, exchange in houses.exchanges.items()}
    sealed = sum(counts["forests"] for counts in sent.values())
    return Measured(name, seconds, sum(houses.compact), sealed, sent, fetched, same)


class _Houses:
    def __init__(self, folder: Path, study: Study, cohorts: Mapping[str, Cohort]) -> None:
        self.folder, self.study, self.cohorts = folder, study, cohorts
        (folder / "exchange").mkdir()
        self.identities = {name: Identity.new() for name in (COORDINATOR, *cohorts)}
        self.exchanges = {name: CountedExchange.counted(folder / "exchange") for name in self.identities}
        self.compact: list[int] = []

    def coordinator(self) -> CoordinatorRound:
        memory = Memory(self.folder / COORDINATOR / "rounds" / "1")
        return CoordinatorRound(self.study, self._desk(COORDINATOR), list(self.cohorts), memory, PATIENCE)

    def site(self, name: str) -> SiteRound:
        home = self.folder / name
        memory, history = _Watched(home / "rounds" / "1", self.compact), History(home / "scored")
        return SiteRound(self.study, self._desk(name), COORDINATOR, self.cohorts[name], memory, history)

    def _desk(self, name: str) -> Desk:
        home = self.folder / name
        return Desk(
            home,
            name,
            self.study.name,
            self.study.digest,
            1,
            self.identities[name],
            Rounds(home, self.study.name, name).enter(1),
            {house: identity.public for house, identity in self.identities.items()},
            self.exchanges[name],
            Audit(home / "audit.jsonl"),
            SystemClock(),
        )


class _Watched(Memory):
    """A round's memory that tells the size of the forest that was grown."""

    def __init__(self, folder: Path, compact: list[int]) -> None:
        super().__init__(folder)
        self.compact = compact

    def __setitem__(self, key: str, value: object) -> None:
        if key == "forest" and isinstance(value, bytes):
            self.compact.append(len(value))
        super().__setitem__(key, value)


def _kind(step: str) -> str:
    if step.startswith(PARCEL):
        return "forests"
    return "asks" if step.startswith("ask") else "counts" if step == "score" else "other letters"


HEAD = (
    "federation",
    "seconds",
    "compact trees",
    "on the exchange",
    "stored / (trees x recipients)",
    "fetched by a site / trees it needs",
    "fetched and sent / trees it needs",
)


def cells(one: Measured) -> list[str]:
    """A line of the table."""
    sizes = [_size(one.compact), _size(one.stored)]
    ratios = [one.stored_ratio, one.fetched_ratio, one.traffic_ratio]
    return [one.name, f"{one.seconds:.1f}", *sizes, *(f"{ratio:.2f}" for ratio in ratios)]


def kinds(one: Measured) -> Iterator[str]:
    """What a site fetches and sends on average, by kind."""
    for way, counts in (("fetches", one.fetched), ("sends", one.sent)):
        total = sum((counts[site] for site in one.sites), Counter[str]())
        parts = ", ".join(f"{_size(round(size / len(one.sites)))} {kind}" for kind, size in sorted(total.items()))
        yield f"  a site {way}: {parts}"


def _size(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rows", type=int, help="made-up rows per site, instead of the federations of the table")
    parser.add_argument("--write", action="store_true", help="replace the table in README.md")
    chosen = parser.parse_args()
    if chosen.rows and chosen.write:
        parser.error("--write is for the whole run")
    text: list[str] = []
    rows = []
    for name, (study, cohorts) in _wanted(chosen.sites, chosen.trees, chosen.rows):
        one = measure(name, study, cohorts)
        rows.append(cells(one))
        said = [f"{name}:", *kinds(one), *([] if one.same_digest else ["  ANOTHER DIGEST THAN THE SIMULATION"])]
        print(*said, sep="\n", flush=True)
        text += said
    drawn = table(HEAD, rows)
    print(f"\n{drawn}")
    if chosen.write:
        told = "\n".join(text)
        write_block(README, "<!-- wire:begin -->", "<!-- wire:end -->", f"{drawn}\n\n```\n{told}\n```")


def _wanted(sites: int, trees: int, rows: int | None) -> Iterator[tuple[str, tuple[Study, dict[str, Cohort]]]]:
    if rows is None:
        yield "4 sites x 25 trees, breast cancer", breast_cancer(4, 25)
    for each in (150, 500, 3000) if rows is None else (rows,):
        yield f"{sites} sites x {trees} trees, {each} rows each", made_up(sites, trees, each)


if __name__ == "__main__":
    main()
