"""What every exchange promises, whatever it is made of. A test class inherits it and says, by a `place`, over what.

Houses race each other for one name, writers are killed in the middle, the store goes away and comes back, and somebody
plants what is no message: an exchange outlasts all of it, and says what people have to do where they have to.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Protocol

import pytest

from spinney.connectors.exchange import (
    Address,
    Exchange,
    ExchangeDenied,
    ObjectTooLarge,
    SecondCopy,
    TransientExchangeError,
)

START = datetime(2030, 1, 1, 22, tzinfo=UTC)
GROW = Address("heart", "north", 7, "grow", 1)
LONG_AGO, IN_AN_HOUR = timedelta(hours=-1), timedelta(hours=1)
WRITER = """
import json, resource, signal, sys
from spinney.connectors.exchange import Address, Exchange
order = json.load(sys.stdin)
if order["most"]:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (order["most"], order["most"]))
Exchange.open(order["url"], order["options"]).put(Address(*order["address"]), b"x" * order["size"])
"""


class ExchangePlace(Protocol):
    """One kind of exchange, and the things that can happen to it."""

    longest_nap: float
    keeps_drafts: bool
    secrets: tuple[str, ...]

    def open(self) -> Exchange:
        """As a house would."""

    def open_nowhere(self) -> Exchange:
        """One whose folder or bucket does not exist."""

    def without_rights(self) -> AbstractContextManager[Exchange]:
        """One that may not write."""

    def leave(self, path: str, data: bytes) -> None:
        """Put something there past the exchange."""

    def leave_huge(self, path: str) -> None:
        """Something that nobody should read to its end."""

    def carried(self) -> int:
        """Bytes that were read from the store so far, where one can know."""

    def names(self) -> set[str]:
        """Everything that is there, also what is no message."""

    def kill_writer(self, address: Address, size: int) -> None:
        """Let another process publish so many bytes, and kill it in the middle."""

    def pull_plug(self) -> None:
        """The store is away."""

    def mend(self) -> None:
        """It is back."""


class FakeClock:
    """Time passes when somebody sleeps; `then` happens at that second."""

    def __init__(self, then: dict[float, Callable[[], object]] | None = None) -> None:
        self.seconds = 0.0
        self.naps: list[float] = []
        self._then = dict(then or {})

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.seconds += seconds
        for due in [second for second in self._then if second <= self.seconds]:
            self._then.pop(due)()


def writer(url: str, options: dict[str, Any], address: Address, size: int, most: int = 0) -> subprocess.Popen[bytes]:
    """A process that publishes so many bytes; the kernel kills it when a file of it has grown to `most`."""
    process = subprocess.Popen([sys.executable, "-c", WRITER], stdin=subprocess.PIPE)
    parts = [address.study, address.sender, address.round, address.step, address.attempt]
    order = {"url": url, "options": options, "address": parts, "size": size, "most": most}
    assert process.stdin is not None
    process.stdin.write(json.dumps(order).encode())
    process.stdin.close()
    return process


def at(sender: str, step: str = "grow", attempt: int = 1, round: int = 7, study: str = "heart") -> Address:
    """A message's address."""
    return Address(study, sender, round, step, attempt)


class ExchangeContract:
    """The tests."""

    @pytest.fixture
    def exchange(self, place: ExchangePlace) -> Iterator[Exchange]:
        with place.open() as exchange:
            yield exchange

    def test_a_trial_message_tells_the_store_s_time_and_leaves_nothing(self, place: ExchangePlace) -> None:
        with place.open() as exchange:
            told = exchange.try_out("heart", "north")
            assert told is not None
            assert abs(told - datetime.now(UTC)) < timedelta(minutes=10)
            assert exchange.list("heart", 0) == ()

    def test_a_trial_without_rights_is_denied(self, place: ExchangePlace) -> None:
        with place.without_rights() as exchange, pytest.raises(ExchangeDenied):
            exchange.try_out("heart", "north")

    def test_a_message_arrives_as_it_was_sent(self, place: ExchangePlace, exchange: Exchange) -> None:
        content = bytes(range(256)) * 1000
        exchange.put(GROW, content)
        with place.open() as elsewhere:
            assert elsewhere.get(GROW, limit=len(content)) == content

    def test_a_message_lies_where_its_address_says_and_leaves_nothing_else(
        self, place: ExchangePlace, exchange: Exchange
    ) -> None:
        exchange.put(GROW, b"trees")
        assert place.names() == {"heart/north/7/grow.1"}

    def test_what_nobody_has_sent_is_none(self, exchange: Exchange) -> None:
        assert exchange.get(GROW, limit=10) is None

    def test_an_empty_message_is_a_message(self, exchange: Exchange) -> None:
        exchange.put(GROW, b"")
        assert exchange.get(GROW, limit=10) == b""

    def test_the_same_message_may_be_published_again(self, exchange: Exchange) -> None:
        exchange.put(GROW, b"trees")
        exchange.put(GROW, b"trees")
        assert exchange.get(GROW, limit=10) == b"trees"

    @pytest.mark.parametrize("other", [b"TREES", b"more trees"], ids=["same size", "other size"])
    def test_a_different_second_copy_is_an_error_that_names_the_address(self, exchange: Exchange, other: bytes) -> None:
        exchange.put(GROW, b"trees")
        with pytest.raises(SecondCopy, match=re.escape("heart/north/7/grow.1")):
            exchange.put(GROW, other)
        assert exchange.get(GROW, limit=10) == b"trees"

    def test_of_many_writers_at_once_one_wins_and_the_others_are_told(self, place: ExchangePlace) -> None:
        def publish(number: int) -> int | None:
            with place.open() as exchange:
                try:
                    exchange.put(GROW, b"copy %d" % number)
                except SecondCopy:
                    return None
                return number

        with ThreadPoolExecutor(6) as pool:
            winners = [number for number in pool.map(publish, range(6)) if number is not None]
        with place.open() as exchange:
            assert [exchange.get(GROW, limit=10)] == [b"copy %d" % number for number in winners]

    def test_what_a_killed_writer_left_is_never_read(self, place: ExchangePlace, exchange: Exchange) -> None:
        place.kill_writer(GROW, 8_000_000)
        assert len(place.names()) == (1 if place.keeps_drafts else 0)
        assert exchange.get(GROW, limit=10_000_000) is None
        assert exchange.list("heart", 7) == ()
        assert exchange.wait([GROW], timedelta(0), FakeClock()).absent == ("north",)

    def test_a_killed_writer_publishes_when_it_is_started_again(self, place: ExchangePlace, exchange: Exchange) -> None:
        place.kill_writer(GROW, 8_000_000)
        exchange.put(GROW, b"x" * 8_000_000)
        assert exchange.get(GROW, limit=8_000_000) == b"x" * 8_000_000

    def test_a_draft_of_a_killed_writer_goes_with_the_old_messages(
        self, place: ExchangePlace, exchange: Exchange
    ) -> None:
        place.kill_writer(GROW, 8_000_000)
        exchange.expire(datetime.now(UTC) + IN_AN_HOUR, "heart")
        assert place.names() == set()

    def test_a_message_of_exactly_the_limit_is_read(self, exchange: Exchange) -> None:
        exchange.put(GROW, b"12345")
        assert exchange.get(GROW, limit=5) == b"12345"

    def test_a_huge_object_is_refused_without_being_read(self, place: ExchangePlace, exchange: Exchange) -> None:
        place.leave_huge(str(GROW))
        before = place.carried()
        with pytest.raises(ObjectTooLarge, match=re.escape("heart/north/7/grow.1")):
            exchange.get(GROW, limit=1000)
        assert place.carried() - before < 100_000

    def test_a_listing_knows_the_messages_of_a_round(self, exchange: Exchange) -> None:
        sent = [at("north"), at("north", attempt=2), at("north", "score"), at("south")]
        for address in [*sent, at("south", round=8), at("south", study="lungs")]:
            exchange.put(address, b"trees")
        assert exchange.list("heart", 7) == tuple(sent)
        assert exchange.list("heart", 7, "north") == tuple(sent[:3])
        assert exchange.list("heart", 9) == ()

    def test_a_listing_passes_over_what_is_no_message(self, place: ExchangePlace, exchange: Exchange) -> None:
        exchange.put(GROW, b"trees")
        for name in ("grow", "grow.one", "grow.01", ".grow.1", ".grow.2.0123456789abcdef.part", "con.1"):
            place.leave(f"heart/north/7/{name}", b"?")
        place.leave("heart/readme.txt", b"?")
        place.leave("heart/9lives/7/grow.1", b"?")
        assert exchange.list("heart", 7) == (GROW,)

    def test_the_rounds_of_a_sender_are_known_newest_last(self, exchange: Exchange) -> None:
        for number in (9, 10, 2):
            exchange.put(at("coordinator", "open", round=number), b"come")
        assert exchange.rounds("heart", "coordinator") == (2, 9, 10)
        assert exchange.rounds("heart", "south") == ()

    def test_waiting_ends_when_all_are_there(self, exchange: Exchange) -> None:
        clock = FakeClock({0.1: lambda: exchange.put(at("north"), b"n"), 3: lambda: exchange.put(at("south"), b"s")})
        arrivals = exchange.wait([at("south"), at("north")], IN_AN_HOUR, clock)
        assert arrivals.arrived == (at("south"), at("north"))
        assert arrivals.absent == ()
        assert clock.seconds < 3 + 2

    def test_waiting_ends_at_the_deadline_and_names_the_absent(self, exchange: Exchange) -> None:
        exchange.put(at("north"), b"n")
        clock = FakeClock()
        wanted = [at("west"), at("north"), at("east"), at("east", "score")]
        arrivals = exchange.wait(wanted, timedelta(seconds=4), clock)
        assert arrivals.arrived == (at("north"),)
        assert arrivals.missing == (at("west"), at("east"), at("east", "score"))
        assert arrivals.absent == ("east", "west")
        assert clock.seconds == pytest.approx(4)

    def test_a_message_that_comes_with_the_last_nap_is_not_too_late(self, exchange: Exchange) -> None:
        clock = FakeClock({3.99: lambda: exchange.put(GROW, b"trees")})
        assert exchange.wait([GROW], timedelta(seconds=4), clock).arrived == (GROW,)

    def test_waiting_looks_less_and_less_often_down_to_a_limit(self, place: ExchangePlace, exchange: Exchange) -> None:
        clock = FakeClock()
        exchange.wait([GROW], timedelta(seconds=20 * place.longest_nap), clock)
        whole_naps = clock.naps[:-1]  # the last one ends at the deadline
        assert whole_naps[0] <= 0.05
        assert all(first <= second for first, second in pairwise(whole_naps))
        assert whole_naps[-1] == place.longest_nap

    def test_waiting_outlasts_a_store_that_is_away_for_a_minute(self, place: ExchangePlace, exchange: Exchange) -> None:
        def comes_back() -> None:
            place.mend()
            exchange.put(GROW, b"trees")

        exchange.get(GROW, limit=10)
        clock = FakeClock({1: place.pull_plug, 61: comes_back})
        assert exchange.wait([GROW], IN_AN_HOUR, clock).arrived == (GROW,)
        assert clock.seconds < 61 + 6

    def test_nobody_is_called_absent_because_the_store_was(self, place: ExchangePlace, exchange: Exchange) -> None:
        exchange.get(GROW, limit=10)
        clock = FakeClock({1: place.pull_plug})
        with pytest.raises(TransientExchangeError, match="deadline"):
            exchange.wait([GROW], timedelta(seconds=3), clock)

    def test_a_store_that_is_away_heals_with_the_same_exchange(self, place: ExchangePlace, exchange: Exchange) -> None:
        exchange.put(GROW, b"trees")
        place.pull_plug()
        for call in (
            lambda: exchange.put(at("south"), b"trees"),
            lambda: exchange.get(GROW, limit=10),
            lambda: exchange.list("heart", 7),
            lambda: exchange.expire(datetime.now(UTC), "heart"),
        ):
            with pytest.raises(TransientExchangeError) as caught:
                call()
            self.is_fit_to_be_shown(place, caught.value)
        place.mend()
        exchange.put(at("south"), b"trees")
        assert exchange.list("heart", 7) == (GROW, at("south"))

    def test_a_house_without_the_right_to_write_is_told_so(self, place: ExchangePlace) -> None:
        with place.without_rights() as exchange:
            with pytest.raises(ExchangeDenied) as caught:
                exchange.put(GROW, b"trees")
            self.is_fit_to_be_shown(place, caught.value)

    def test_an_exchange_that_does_not_exist_is_said_at_once(self, place: ExchangePlace) -> None:
        with place.open_nowhere() as exchange:
            for call in (
                lambda: exchange.put(GROW, b"trees"),
                lambda: exchange.get(GROW, limit=10),
                lambda: exchange.list("heart", 7),
                lambda: exchange.wait([GROW], IN_AN_HOUR, FakeClock()),
            ):
                with pytest.raises(ExchangeDenied, match="does not exist: check") as caught:
                    call()
                self.is_fit_to_be_shown(place, caught.value)

    def test_old_messages_of_a_study_are_deleted(self, place: ExchangePlace, exchange: Exchange) -> None:
        for address in (at("north"), at("south"), at("south", study="lungs")):
            exchange.put(address, b"trees")
        assert exchange.expire(datetime.now(UTC) + LONG_AGO, "heart") == 0
        assert exchange.expire(datetime.now(UTC) + IN_AN_HOUR, "heart", "north") == 1
        assert place.names() == {"heart/south/7/grow.1", "lungs/south/7/grow.1"}
        assert exchange.expire(datetime.now(UTC) + IN_AN_HOUR, "heart") == 1
        assert place.names() == {"lungs/south/7/grow.1"}

    def test_nothing_is_deleted_that_is_no_message(self, place: ExchangePlace, exchange: Exchange) -> None:
        foreign = {"heart/readme.txt", "heart/north/7/notes.txt", "heart/north/old/grow.1"}
        for path in foreign:
            place.leave(path, b"?")
        exchange.put(GROW, b"trees")
        assert exchange.expire(datetime.now(UTC) + IN_AN_HOUR, "heart") == 1
        assert place.names() == foreign

    def test_what_a_killed_doctor_or_writer_left_among_the_papers_goes_with_the_old_messages(
        self, place: ExchangePlace, exchange: Exchange
    ) -> None:
        paper, trial = (Address("heart", "north", 0, step, 2) for step in ("roster", "trial"))
        for address in (paper, trial):
            exchange.put(address, b"names")
        place.leave("heart/north/0/.roster.3.0123456789abcdef.part", b"?")
        assert exchange.expire(datetime.now(UTC) + LONG_AGO, "heart") == 0
        assert exchange.expire(datetime.now(UTC) + IN_AN_HOUR, "heart") == 2
        assert place.names() == {str(paper)}

    def test_papers_stay_when_messages_expire(self, place: ExchangePlace, exchange: Exchange) -> None:
        exchange.put(Address("heart", "north", 0, "roster", 2), b"names")
        exchange.put(GROW, b"trees")
        assert exchange.expire(datetime.now(UTC) + IN_AN_HOUR, "heart") == 1
        assert place.names() == {"heart/north/0/roster.2"}

    def is_fit_to_be_shown(self, place: ExchangePlace, error: Exception) -> None:
        """One line, without secrets, and nothing of a library behind it."""
        assert len(str(error).splitlines()) == 1
        assert not any(secret in str(error) for secret in place.secrets)
        assert error.__cause__ is None
        assert error.__suppress_context__
