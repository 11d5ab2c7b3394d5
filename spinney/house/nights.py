"""What a house's nights have in common: one run at a time, the desk of a round, and results that stay.

rounds/<study>/<n>/        the memory of a round, destroyed when it is over
epochs/<study>/<n>/        what was told and lent when the epoch was opened in that round, until the next one opens
nights/<study>/<n>.json    what came of it, in digests and counts
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from spinney.configuration.house import ExchangeAccess
from spinney.connectors.exchange import Clock, Exchange, ExchangeError, SystemClock
from spinney.errors import PermitExpired, SpinneyError
from spinney.house.approvals import Approvals
from spinney.house.audit import Audit
from spinney.house.channel import RoundChannel
from spinney.house.envelopes import Rounds
from spinney.house.epochs import Epochs
from spinney.house.keys import KeyRing
from spinney.house.roster import Roster
from spinney.house.sent import SentMessages
from spinney.storage import locks
from spinney.storage.files import RoundState, write_whole
from spinney.storage.private import private_folder

RESULT = re.compile(r"^[1-9][0-9]{0,8}\.json$")


class AlreadyRunning(SpinneyError):
    """Another run of this house is at the same study."""


class HouseNights:
    """The rounds of one study in one house."""

    def __init__(
        self, name: str, home: Path, access: ExchangeAccess, approvals: Approvals, clock: Clock | None = None
    ) -> None:
        self.name, self.home, self.approvals, self.clock = name, home, approvals, clock or SystemClock()
        self.study = approvals.study
        self.exchange: Exchange = access.open()
        self.rounds = Rounds(home, self.study.name, name)
        self.epochs = Epochs(home / "epochs" / self.study.name, self.study)
        self.audit = Audit(home / "audit.jsonl")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One run of this house and study at a time; the lock goes with the process that holds it."""
        busy = AlreadyRunning(
            f"another run of {self.name} is at {self.study.name}; wait until it has ended, or stop it"
        )
        with locks.alone(private_folder(self._folder("rounds")) / ".lock", busy):
            self._tidy()
            yield

    def require_permit(self) -> None:
        """PermitExpired if the study's permit has ended; a round that was begun ends with it."""
        try:
            self.study.require_permit(self.clock.now())
        except PermitExpired:
            if self.rounds.unfinished is not None:
                self.abandon(self.rounds.unfinished)
            raise

    def channel(self, number: int, roster: Roster, opening: str = "") -> RoundChannel:
        """Where this house reads and writes in a round."""
        return RoundChannel(
            self.home,
            self.name,
            self.study.name,
            self.study.digest,
            number,
            KeyRing(self.home).identity(roster.keys[self.name]),
            self.rounds.enter(number, opening),
            roster.keys,
            self.exchange,
            self.audit,
            self.clock,
            self.answer_time,
        )

    def memory(self, number: int) -> RoundState:
        """What this house remembers as long as the round lasts."""
        return RoundState(self._folder("rounds") / str(number))

    def result(self, number: int | None = None) -> dict[str, Any] | None:
        """What came of a round, or of the newest."""
        if number is None:
            number = max((int(path.stem) for path in self._results()), default=0)
        path = self._folder("nights") / f"{number}.json"
        if not path.exists():
            return None
        result: dict[str, Any] = json.loads(path.read_bytes())
        return result

    def results(self) -> list[dict[str, Any]]:
        """What came of every round that has ended here, the oldest first."""
        return [json.loads(path.read_bytes()) for path in sorted(self._results(), key=lambda path: int(path.stem))]

    def keep(self, number: int, result: dict[str, Any]) -> None:
        """Write down what came of a round, whole or not at all."""
        private_folder(self._folder("nights"))
        write_whole(self._folder("nights") / f"{number}.json", json.dumps(result, indent=2, allow_nan=False).encode())

    def close(self, number: int, result: dict[str, Any]) -> None:
        """The round is over here: keep the result, destroy its keys and its memory."""
        self.keep(number, result)
        self.abandon(number)

    def abandon(self, number: int) -> None:
        """Nothing more comes of a round: destroy its keys and its memory, and never enter it again."""
        self.rounds.leave(number)
        self.memory(number).forget()

    def expire(self, sender: str | None) -> int:
        """Delete messages older than the study's retention from the exchange, of one house or of all.

        The last two rounds that this house was in stay, however wrong its clock is.
        """
        newest = self.rounds.newest
        return self.exchange.expire(self._oldest_kept, self.study.name, sender, {newest - 1, newest})

    def tidy_exchange(self, *, everybodys: bool = False) -> list[str]:
        """Delete old messages of this house, and of all others if they let it; says what stays, and why.

        It costs nobody a night.
        """
        try:
            others = set(self.exchange.senders(self.study.name)) - {self.name} if everybodys else set()
        except ExchangeError as reason:
            return [f"old messages stay on the exchange: {reason}"]
        notes = []
        for sender in (self.name, *sorted(others)):
            try:
                self.expire(sender)
            except ExchangeError as reason:
                notes.append(f"old messages of {sender} stay on the exchange: {reason}")
        return notes

    @property
    def answer_time(self) -> timedelta:
        """How long a step may take."""
        return timedelta(minutes=self.study.schedule.answer_minutes)

    @property
    def _oldest_kept(self) -> datetime:
        """Messages are kept from then on."""
        return self.clock.now() - timedelta(days=self.study.schedule.retention_days)

    def _tidy(self) -> None:
        """What a killed run left of rounds that are over, and what was sent in rounds before the last."""
        if self.rounds.unfinished in {int(path.stem) for path in self._results()}:
            self.rounds.leave(self.rounds.newest)
        for number, folder in self._numbered("rounds"):
            if number != self.rounds.unfinished:
                RoundState(folder).forget()
        for number, folder in self._numbered("outbox"):
            if number < self.rounds.newest:
                shutil.rmtree(folder)
        SentMessages(self.home, self.study.name).expire(self._oldest_kept)

    def _numbered(self, what: str) -> list[tuple[int, Path]]:
        """The folders of rounds; round 0 is no round but where papers are exchanged."""
        folder = self._folder(what)
        paths = [path for path in folder.iterdir() if path.is_dir()] if folder.exists() else []
        return [(int(path.name), path) for path in paths if path.name.isdecimal() and int(path.name)]

    def _results(self) -> list[Path]:
        folder = self._folder("nights")
        return [path for path in folder.iterdir() if RESULT.match(path.name)] if folder.exists() else []

    def _folder(self, what: str) -> Path:
        return self.home / what / self.study.name


def stopwatch(seconds: float) -> Callable[[], bool]:
    """Says whether a time budget is left."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end
