"""Bytes of a round over a folder, house by house: what is stored, and what one site sends and fetches.

    python -m benchmarks.wire --write                    # the federations of the table in README.md
    python -m benchmarks.wire --sites 8 --trees 50 --rows 1000

The yardstick is the compact size of the trees: the bytes of the packed forests before they are sealed. A site needs the
forests of all others, so what it fetches is compared with the sum of those. The same trees as plain arrays, before they
are packed, are a second yardstick.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federations import breast_cancer, made_up
from benchmarks.harness import Figure, Measured, command, table
from spinney.connectors.exchange import Address, Exchange, SystemClock
from spinney.forest import codec
from spinney.house.audit import Audit
from spinney.house.channel import PARCEL, RoundChannel
from spinney.house.envelopes import Rounds
from spinney.house.keys import Identity
from spinney.house.rounds import CoordinatorSession, SiteSession
from spinney.rows.cohort import Cohort, Part
from spinney.storage.files import RoundState, ScoredTrees
from spinney.study.study import Study
from spinney.trial.simulate import simulate

COORDINATOR = "coordinator"
PATIENCE = timedelta(minutes=20)
SIGNATURE, KEY, TAG = 64, 32, 16
FOR_ALL = 3  # opening, first ask, end: signed, and not encrypted
NODE = sum(np.dtype(kind).itemsize for kind in (np.int16, np.float64, np.bool_, np.float64))  # of a `Forest`
BOUND = 1.3  # times the compact trees per recipient: what the exchange may carry


class CountedExchange(Exchange):
    """An exchange that counts what goes through it, by kind of message."""

    sent: Counter[str]
    fetched: Counter[str]
    objects: int

    @classmethod
    def counted(cls, folder: Path) -> CountedExchange:
        exchange = cls.open(str(folder))
        exchange.sent, exchange.fetched, exchange.objects = Counter(), Counter(), 0
        return exchange

    def put(self, address: Address, data: bytes) -> None:
        super().put(address, data)
        self.sent[_kind(address.step)] += len(data)
        self.objects += 1

    def get(self, address: Address, limit: int) -> bytes | None:
        data = super().get(address, limit)
        self.fetched[_kind(address.step)] += len(data or b"")
        return data


@dataclass(frozen=True)
class Traffic:
    """One round."""

    name: str
    compact: int  # bytes of all packed forests
    plain: int  # bytes of their arrays
    objects: int  # letters and sealed forests
    counts: int  # bytes of all hidden counts, if nothing were around them
    sent: Mapping[str, Counter[str]]  # house -> kind -> bytes
    fetched: Mapping[str, Counter[str]]

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
    def plain_ratio(self) -> float:
        """The same to the trees as plain arrays."""
        return self.stored / (self.plain * (len(self.sites) - 1))

    @property
    def fetched_ratio(self) -> float:
        """Of all that a site fetches, letters included, to the trees that it needs."""
        return float(np.mean([self.fetched[site].total() for site in self.sites])) / self.needed

    @property
    def least(self) -> int:
        """What would lie there if letters told nothing but hidden counts, with what signing and sealing need."""
        sealed = (KEY + TAG) * (self.objects - FOR_ALL)
        return self.compact + SIGNATURE * self.objects + sealed + self.counts

    @property
    def allowed(self) -> float:
        return BOUND * self.compact * (len(self.sites) - 1)

    @property
    def stored_from(self) -> float:
        """Compact bytes of all trees from which on a round with so many letters stores at most BOUND of them."""
        return (self.stored - self.compact) / (BOUND * (len(self.sites) - 1) - 1)

    @property
    def fetched_from(self) -> float:
        """The same for what a site fetches: compact bytes of the trees that it needs."""
        return (self.fetched_ratio - 1) * self.needed / (BOUND - 1)

    @property
    def traffic_ratio(self) -> float:
        """Of all that a site fetches and sends, its hidden counts included, to the trees that it needs."""
        both = [self.fetched[site].total() + self.sent[site].total() for site in self.sites]
        return float(np.mean(both)) / self.needed


def measure(name: str, study: Study, cohorts: Mapping[str, Cohort], *, check: bool = True) -> Traffic:
    """One round of all houses, in threads of this process, over a folder."""
    with tempfile.TemporaryDirectory() as folder:
        houses = _Houses(Path(folder), study, cohorts)
        with ThreadPoolExecutor(len(cohorts) + 1) as pool:
            over = pool.submit(houses.coordinator().run)
            parts = [pool.submit(houses.site(site).run, PATIENCE) for site in cohorts]
            result = over.result()
            for part in parts:
                part.result()
    if result.void:
        raise SystemExit(f"{name}: the round is void: {result.void}")
    if check and result.model != simulate(study, cohorts).model_digest:
        raise SystemExit(f"{name}: another model than that of the simulation")
    sent = {house: exchange.sent for house, exchange in houses.exchanges.items()}
    fetched = {house: exchange.fetched for house, exchange in houses.exchanges.items()}
    objects = sum(exchange.objects for exchange in houses.exchanges.values())
    rows = sum(cohort.rows(Part.TRAINING).y.size for cohort in cohorts.values())
    counts = hidden_numbers(len(cohorts), houses.watch.trees) * rows.bit_length() // 8
    return Traffic(name, houses.watch.compact, houses.watch.plain, objects, counts, sent, fetched)


def hidden_numbers(sites: int, trees: int) -> int:
    """Numbers that all sites together hide about so many trees, if everybody has all features: a group is a forest."""
    return 2 * (sites * (trees + sites) + trees - sites)


class _Houses:
    def __init__(self, folder: Path, study: Study, cohorts: Mapping[str, Cohort]) -> None:
        self.folder, self.study, self.cohorts = folder, study, cohorts
        (folder / "exchange").mkdir()
        self.identities = {name: Identity.new() for name in (COORDINATOR, *cohorts)}
        self.exchanges = {name: CountedExchange.counted(folder / "exchange") for name in self.identities}
        self.watch = _Watch()

    def coordinator(self) -> CoordinatorSession:
        memory = RoundState(self.folder / COORDINATOR / "rounds" / "1")
        return CoordinatorSession(self.study, self._desk(COORDINATOR), list(self.cohorts), memory, PATIENCE)

    def site(self, name: str) -> SiteSession:
        home = self.folder / name
        memory, history = _Watched(home / "rounds" / "1", self.watch), ScoredTrees(home / "scored")
        return SiteSession(self.study, self._desk(name), COORDINATOR, self.cohorts[name], memory, history)

    def _desk(self, name: str) -> RoundChannel:
        home = self.folder / name
        return RoundChannel(
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


@dataclass
class _Watch:
    compact: int = 0  # bytes of all packed forests
    plain: int = 0  # bytes of their arrays
    trees: int = 0  # that every site has scored


class _Watched(RoundState):
    """A round's memory that tells the size of the forest that was grown, and how many trees were scored."""

    def __init__(self, folder: Path, watch: _Watch) -> None:
        super().__init__(folder)
        self.watch = watch

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "forest":
            self.watch.compact += len(value)
            self.watch.plain += NODE * codec.HEADER.unpack_from(value)[4]
        elif key == "fold-counts":
            self.watch.trees = value.shape[2]
        super().__setitem__(key, value)


def _kind(step: str) -> str:
    if step.startswith(PARCEL):
        return "forests"
    return "asks" if step.startswith("ask") else "counts" if step == "score" else "other letters"


HEAD = (
    "federation",
    "compact trees",
    "on the exchange",
    "stored / (trees x recipients)",
    "fetched by a site / trees it needs",
    "fetched and sent / trees it needs",
)


def cells(one: Traffic) -> list[str]:
    """A line of the table."""
    sizes = [_size(one.compact), _size(one.stored)]
    ratios = [one.stored_ratio, one.fetched_ratio, one.traffic_ratio]
    return [one.name, *sizes, *(f"{ratio:.2f}" for ratio in ratios)]


def kinds(one: Traffic) -> Iterator[str]:
    """What a site fetches and sends on average, by kind."""
    for way, counts in (("fetches", one.fetched), ("sends", one.sent)):
        total = sum((counts[site] for site in one.sites), Counter[str]())
        parts = ", ".join(f"{_size(round(size / len(one.sites)))} {kind}" for kind, size in sorted(total.items()))
        yield f"  a site {way}: {parts}"
    forests = sum(counts["forests"] for counts in one.sent.values()) / (one.compact * (len(one.sites) - 1))
    yield f"  sealed forests alone are {forests:.2f} times the trees per recipient"
    stored, fetched = (_size(round(size)) for size in (one.stored_from, one.fetched_from))
    yield f"  at most {BOUND}: stored from {stored} of trees on, fetched from {fetched} of trees that a site needs"
    yield (
        f"  trees, hidden counts, and signatures, keys and tags of {one.objects} letters alone: {_size(one.least)}, "
        f"where {BOUND} would be {_size(round(one.allowed))}"
    )
    yield f"  the trees as plain arrays are {_size(one.plain)}: stored is {one.plain_ratio:.2f} of them per recipient"


def _size(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def run(asked: argparse.Namespace) -> Measured:
    """All federations, one after the other."""
    if asked.rows and asked.write:
        raise SystemExit("--write is for the whole run")
    found = [measure(name, study, cohorts) for name, (study, cohorts) in _wanted(asked)]
    figures = [
        Figure(f"{one.name}/{name}", "x", (ratio,))
        for one in found
        for name, ratio in (("stored", one.stored_ratio), ("fetched", one.fetched_ratio))
    ]
    lines = [line for one in found for line in (f"{one.name}:", *kinds(one))]
    return Measured(figures, "\n".join([table(HEAD, map(cells, found)), "", "```", *lines, "```"]))


def _wanted(asked: argparse.Namespace) -> Iterator[tuple[str, tuple[Study, dict[str, Cohort]]]]:
    if asked.rows is None:
        yield "4 sites x 25 trees, breast cancer", breast_cancer(4, 25)
    if asked.rows is None and not asked.quick:
        yield "20 sites x 100 trees, breast cancer", breast_cancer(20, 100)
    sizes = (asked.rows,) if asked.rows else () if asked.quick else (44, 150, 500, 3000)
    for each in sizes:
        yield f"{asked.sites} sites x {asked.trees} trees, {each} rows each", made_up(asked.sites, asked.trees, each)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rows", type=int, help="made-up rows per site, instead of the federations of the table")


if __name__ == "__main__":
    command("wire", __doc__, run, _options)
