"""The exchange: a mailbox between houses in a folder, a bucket or on an SFTP server.

One object per message, written once, never overwritten, never seen half-written. It carries bytes and knows nothing of
keys or meaning; what arrives is for `spinney.house.envelopes` to judge.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, Self, TypeVar

from fsspec.utils import get_protocol

from spinney.base import is_file_name
from spinney.connectors.exchange.address import Address, check_name, is_draft, read_address, read_number, round_folder
from spinney.connectors.exchange.errors import (
    BadAddress,
    ExchangeDenied,
    ExchangeError,
    ObjectTooLarge,
    SecondCopy,
    TransientExchangeError,
    Unreadable,
)
from spinney.connectors.exchange.store import Store
from spinney.errors import Refused
from spinney.plugins import EXCHANGES

__all__ = [
    "Address",
    "Arrivals",
    "BadAddress",
    "Clock",
    "Exchange",
    "ExchangeDenied",
    "ExchangeError",
    "ObjectTooLarge",
    "SecondCopy",
    "SystemClock",
    "TransientExchangeError",
    "Unreadable",
]

T = TypeVar("T")
ALIASES = {"file": "folder", "local": "folder", "s3a": "s3", "ssh": "sftp"}
_TRIAL_STEP, _TRIAL = "trial", b"spinney doctor was here"


class Clock(Protocol):
    """Who knows the time and can let it pass."""

    def now(self) -> datetime:
        """The time, with its zone."""

    def monotonic(self) -> float:
        """Seconds since some moment: for durations, because somebody may set the clock meanwhile."""

    def sleep(self, seconds: float) -> None:
        """Come back later."""


class SystemClock:
    """This machine's."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class Arrivals:
    """What a wait has brought."""

    arrived: tuple[Address, ...]
    missing: tuple[Address, ...]

    @property
    def absent(self) -> tuple[str, ...]:
        """The senders that something is missing from."""
        return tuple(sorted({address.sender for address in self.missing}))


class Exchange:
    """Nothing is connected before the first call, and a lost connection is renewed by the next one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.say: Callable[[str], object] = str  # what people should hear while somebody waits; nobody listens at first

    @classmethod
    def open(cls, url: str, options: Mapping[str, Any] | None = None) -> Self:
        """A path, `s3://bucket/prefix` (options of s3fs) or `sftp://user@host:port/path` (options of paramiko)."""
        return cls(_store_for(url, options or {}))

    def put(self, address: Address, data: bytes) -> None:
        """Publish. Again with the same bytes is fine; other bytes where some are is a `SecondCopy`."""
        if not self._do(self._store.write_once, str(address), data) and self._differs(address, data):
            raise SecondCopy(
                f"{address}: a different message is there already. That is a fault or an attack: keep the exchange as "
                "it is, and ask who else writes under this name"
            )

    def get(self, address: Address, limit: int) -> bytes | None:
        """The message, or None as long as there is none. More bytes than the limit are not read."""
        try:
            return self._get(address, limit)
        except ExchangeDenied:
            if not self._is_let_in(address.study):
                raise
            raise Unreadable(
                f"{address}: this house can't read it, though the exchange lets it in: whoever wrote it has locked it, "
                "or gives this house no right to read"
            ) from None

    def holds(self, address: Address) -> bool:
        """Whether there is something, be it a message or not."""
        return self._do(self._store.size, str(address)) is not None

    def list(self, study: str, round: int, sender: str | None = None) -> tuple[Address, ...]:
        """The messages of a round, of all senders or of one."""
        found = [
            read_address(study, name, round, entry.name)
            for name in self._senders(study, sender)
            for entry in self._do(self._store.entries, round_folder(study, name, round))
            if not entry.is_folder
        ]
        return tuple(sorted(address for address in found if address))

    def rounds(self, study: str, sender: str) -> tuple[int, ...]:
        """The rounds in which a sender has left something, the newest last."""
        numbers = map(read_number, self._folders(f"{check_name(study)}/{check_name(sender)}"))
        return tuple(sorted(number for number in numbers if number is not None))

    def wait(self, addresses: Iterable[Address], patience: timedelta, clock: Clock | None = None) -> Arrivals:
        """Until all are there or the patience is over. Asks by name: a listing could be flooded."""
        wanted = tuple(dict.fromkeys(addresses))
        missing = list(wanted)

        def look() -> int:
            for address in tuple(missing):
                if self._do(self._store.size, str(address)) is not None:
                    missing.remove(address)
            return len(missing)

        self.poll(look, patience, clock)
        return Arrivals(tuple(address for address in wanted if address not in missing), tuple(missing))

    def wait_until(self, find: Callable[[], T], patience: timedelta, clock: Clock | None = None) -> T | None:
        """What `find` gives, as soon as that is not None; None when the patience is over."""
        found: list[T] = []

        def look() -> int:
            one = find()
            found.extend([] if one is None else [one])
            return 1 - len(found)

        self.poll(look, patience, clock)
        return found[0] if found else None

    def poll(self, look: Callable[[], int], patience: timedelta, clock: Clock | None = None) -> int:
        """Call `look`, which says how much is missing, until nothing is or the patience is over; what is missing then.

        Less and less often, and often again after something came: at most a quarter of the time that was waited is lost
        until something is seen. A store that is away is waited for, too.
        """
        clock = clock or SystemClock()
        end, nap, before = clock.monotonic() + patience.total_seconds(), self._store.first_nap, 0
        trouble: TransientExchangeError | None = None
        while True:
            away, trouble = trouble, None
            try:
                missing = look()
            except TransientExchangeError as error:
                missing, trouble = before or 1, error
            if trouble and not away:
                self.say(f"waiting until the exchange is back: {trouble}")
            elif away and not trouble:
                self.say("the exchange is back")
            nap = self._store.first_nap if missing < before else nap  # answers come in swarms
            before, left = missing, end - clock.monotonic()
            if not missing or left <= 0:
                break
            clock.sleep(min(nap, left))
            nap = min(nap * 1.25, self._store.longest_nap)
        if trouble:  # nobody is absent because the mailbox was
            raise TransientExchangeError(f"at the deadline, with {missing} messages unseen: {trouble}")
        return missing

    def expire(self, older_than: datetime, study: str, sender: str | None = None, spared: Collection[int] = ()) -> int:
        """Delete a study's messages, and drafts of killed writers, that are older; of all senders or of one.

        Rounds that are `spared` stay, whatever a clock says.

        What is in round 0 are papers, not messages: they stay, and only what a killed doctor has tried out goes.
        """
        return sum(
            self._expire_round(older_than, study, name, number)
            for name in self._senders(study, sender)
            for number in self.rounds(study, name)
            if number not in spared
        )

    def try_out(self, study: str, sender: str) -> datetime | None:
        """Write, read and delete a trial message under a name; its time by the store's clock, where that tells it."""
        trial = Address(study, sender, 0, _TRIAL_STEP, secrets.randbelow(10**9))
        self.put(trial, _TRIAL)
        try:
            if self.get(trial, len(_TRIAL)) != _TRIAL:
                raise TransientExchangeError(f"{self._store.place} gave back something else: look at that server")
            name = str(trial).rpartition("/")[2]
            found = [one for one in self._do(self._store.entries, trial.folder) if one.name == name]
        finally:
            self._do(self._store.delete, str(trial))
            self._do(self._store.tidy, trial.folder)
        return found[0].modified if found else None

    def senders(self, study: str) -> tuple[str, ...]:
        """Whoever has left something for a study."""
        return self._senders(study, None)

    def close(self) -> None:
        """End the connection, if there is one."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<exchange in {self._store.place}>"

    def _do(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            return work(*arguments)
        except self._store.failures as error:
            raise self._store.explain(error) from None

    def _get(self, address: Address, limit: int) -> bytes | None:
        size = self._do(self._store.size, str(address))
        if size is None:
            return None
        if size > limit:
            raise ObjectTooLarge(f"{address}: {size} bytes, and {limit} are allowed; not read")
        data = self._do(self._store.read, str(address), size)
        if len(data) != size:
            raise TransientExchangeError(f"{address}: {len(data)} of {size} bytes came through: read it again")
        return data

    def _is_let_in(self, study: str) -> bool:
        try:
            self._folders(study)
        except ExchangeDenied:
            return False
        return True

    def _differs(self, address: Address, data: bytes) -> bool:
        try:
            return self.get(address, len(data)) != data
        except Refused:
            return True

    def _folders(self, folder: str) -> tuple[str, ...]:
        return tuple(entry.name for entry in self._do(self._store.entries, folder) if entry.is_folder)

    def _senders(self, study: str, sender: str | None) -> tuple[str, ...]:
        if sender is not None:
            return (sender,)
        return tuple(name for name in self._folders(check_name(study)) if is_file_name(name))

    def _expire_round(self, older_than: datetime, study: str, sender: str, number: int) -> int:
        folder = round_folder(study, sender, number)
        old = [
            entry.name
            for entry in self._do(self._store.entries, folder)
            if entry.modified and entry.modified < older_than and not entry.is_folder
            if is_draft(entry.name) or _expires(read_address(study, sender, number, entry.name))
        ]
        for name in old:
            self._do(self._store.delete, f"{folder}/{name}")
        if old:
            self._do(self._store.tidy, folder)
        return len(old)


def _expires(address: Address | None) -> bool:
    return address is not None and (address.round > 0 or address.step == _TRIAL_STEP)


def _store_for(url: str, options: Mapping[str, Any]) -> Store:
    """Imports late: a house needs the libraries of its own store only."""
    scheme = get_protocol(url)
    kind = ALIASES.get(scheme, scheme)
    if kind not in EXCHANGES.names:
        known = ", ".join(f"{name}://" for name in EXCHANGES.names if name != "folder")
        raise ExchangeDenied(f"no exchange over {scheme}://: use a folder or {known}")
    try:
        place: Callable[[str, Mapping[str, Any]], Store] = EXCHANGES[kind]
    except ImportError as error:
        raise ExchangeDenied(f"{scheme}:// needs the package {error.name}: install spinney[{kind}]") from None
    return place(url, options)
