"""The coordinator's night: which round it is, who is asked, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from connectors.exchange import Clock
from connectors.house import CoordinatorSettings
from connectors.night import HouseNights
from connectors.papers import Papers, the_study
from connectors.renewal import effective_roster
from connectors.rounds import CoordinatorRound, Over, Through, directly


@dataclass(frozen=True)
class RoundResult:
    """What came of a round, for the report: names, reasons, digests and counts."""

    study: str
    round: int
    model: str
    void: str
    sites: tuple[str, ...]
    absent: dict[str, str]
    bytes_by_step: dict[str, int]

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "sites": list(self.sites)}


class CoordinatorNights(HouseNights):
    """The coordinator's rounds of one study."""

    def __init__(self, settings: CoordinatorSettings, study: str | None = None, clock: Clock | None = None) -> None:
        papers = Papers(settings.home, study or the_study(settings.home))
        super().__init__(settings.name, settings.home, settings.exchange, papers, clock)

    def number(self, wanted: int | None = None) -> int:
        """The round to run: the one that was begun and not ended, or the next. A new machine asks the exchange."""
        if wanted is not None:
            return wanted
        known = max((self.rounds.newest, *self.exchange.rounds(self.study.name, self.name)))
        return self.rounds.unfinished or known + 1

    def run(self, number: int, through: Through = directly) -> RoundResult:
        """Open the round, ask until it is over, and write down what came of it."""
        memory = self.memory(number)
        if "roster" not in memory:  # a round that was begun goes on with the roster that it was begun with
            memory["roster"] = effective_roster(self.papers, self.exchange).digest
        roster = self.papers.roster_of(memory["roster"])
        desk = self.desk(number, roster)
        asking = CoordinatorRound(
            self.study, desk, roster.sites, memory, self.answer_time, roster=roster.digest, through=through
        )
        over = asking.run()
        result = self._result(number, asking, over)
        self.close(number, result.plain())
        return result

    def _result(self, number: int, asking: CoordinatorRound, over: Over) -> RoundResult:
        sizes: Counter[str] = Counter()
        for line in self.audit.lines():
            if (line.entry.study, line.entry.round) == (self.study.name, number):
                sizes[line.entry.step] += line.entry.bytes
        return RoundResult(
            self.study.name,
            number,
            over.model,
            over.void,
            tuple(asking.sites),
            dict(sorted(asking.left_out.items())),
            dict(sizes),
        )
