"""The coordinator's night: which round it is, who is asked, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinney.configuration.house import CoordinatorSettings
from spinney.connectors.exchange import Clock
from spinney.errors import Refused
from spinney.house import envelopes as security
from spinney.house.addresses import addresses
from spinney.house.approvals import Approvals, the_study
from spinney.house.envelopes import EnvelopeRefused, MessageId, is_of_another_study
from spinney.house.epochs import read_release, written_release
from spinney.house.nights import HouseNights
from spinney.house.renewal import effective_roster
from spinney.house.round_messages import Over
from spinney.house.rounds import LARGEST_NOTE, CoordinatorSession, Through, directly


@dataclass(frozen=True)
class Ended:
    """A round as its coordinator saw it."""

    asking: CoordinatorSession
    over: Over

    def plain(self) -> dict[str, Any]:
        """What came of it: names, reasons and digests."""
        return {
            "study": self.asking.study.name,
            "round": self.asking.round,
            "epoch": self.asking.epoch,
            "model": self.over.model,
            "void": self.over.void,
            "sites": list(self.asking.sites),
            "absent": dict(sorted(self.asking.left_out.items())),
        }


class CoordinatorNights(HouseNights):
    """The coordinator's rounds of one study."""

    def __init__(self, settings: CoordinatorSettings, study: str | None = None, clock: Clock | None = None) -> None:
        approvals = Approvals(settings.home, study or the_study(settings.home))
        super().__init__(settings.name, settings.home, settings.exchange, approvals, clock)

    def number(self, wanted: int | None = None) -> int:
        """The round to run: the one that was begun and not ended, or the next. A new machine asks the exchange."""
        if wanted is not None:
            return wanted
        listed = sorted(self.exchange.rounds(self.study.name, self.name), reverse=True)
        opened = (number for number in listed if number <= self.rounds.newest or self._was_opened(number))
        return self.rounds.unfinished or max(self.rounds.newest, next(opened, 0)) + 1

    def _was_opened(self, number: int) -> bool:
        """Whether this coordinator has opened a round of that number; anybody could have planted a folder."""
        message = MessageId(self.study.digest, number, "opening", 1, self.name)
        for address in addresses(self.study.name, self.name, number, "opening"):
            refused: Refused | None = None
            for version in self.approvals.approved_versions:
                try:
                    sealed = self.exchange.get(address, LARGEST_NOTE)
                    if sealed is None:
                        return False
                    security.open(sealed, message, self.approvals.approved(version).keys, None, LARGEST_NOTE)
                except EnvelopeRefused as reason:
                    if is_of_another_study(reason):
                        return True
                    refused = reason
                except Refused as reason:
                    refused = reason
                    break
                else:
                    return True
            if refused:
                self.approvals.note("refused", type(refused).__name__, str(refused), peer=self.name)
        return False

    def run(self, number: int, through: Through = directly) -> Ended:
        """Open the round and ask until it is over; PermitExpired if the study may not go on."""
        self.require_permit()
        memory = self.memory(number)
        if "roster" not in memory:  # a round that was begun goes on with the roster that it was begun with
            memory["roster"] = effective_roster(self.approvals, self.exchange).digest
        if "epoch" not in memory:
            memory["epoch"] = str(self.epochs.of_round(number))
        roster, epoch = self.approvals.roster_of(memory["roster"]), int(memory["epoch"])
        channel = self.channel(number, roster)
        asking = CoordinatorSession(
            self.study,
            channel,
            roster.sites,
            memory,
            self.answer_time,
            roster=roster.digest,
            through=through,
            epoch=epoch,
            release=None if epoch == number else read_release(self.epochs.read(epoch), epoch),
        )
        over = asking.run()
        if epoch == number and asking.release is not None:
            self.epochs.keep(epoch, written_release(asking.release))
        return Ended(asking, over)
