"""Whether somebody else could use this house's servers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import pytest

from spinney.doctor import doors
from spinney.doctor.doors import OF_MLFLOW, OF_PREFECT, check_door, own_addresses
from tests.spinney.doctor.examined import DEAD, Well, wrong_clocks


@pytest.fixture
def open_door() -> Iterator[str]:
    """A server that asks nobody for a login."""
    with wrong_clocks() as start:
        yield start(timedelta(0))


@pytest.fixture
def closed_door(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One that does."""

    def refuse(handler: Any) -> None:
        handler.send_response_only(401)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    monkeypatch.setattr(Well, "do_GET", refuse)
    with wrong_clocks() as start:
        yield start(timedelta(0))


def nowhere() -> list[str]:
    return ["127.0.0.9"]  # nothing listens there, as on an address of a machine whose servers keep to themselves


@pytest.mark.parametrize("door", [OF_PREFECT, OF_MLFLOW])
def test_a_server_that_asks_for_a_login_may_be_reached_by_all(closed_door: str, door: doors.Door) -> None:
    found = check_door(closed_door, door, lambda: ["127.0.0.1"])
    assert (found.state, found.words) == ("ok", "asks for a login")


def test_a_server_of_this_machine_only_is_well_and_the_login_is_told(open_door: str) -> None:
    found = check_door(open_door, OF_PREFECT, nowhere)
    assert found.state == "ok"
    assert "PREFECT_SERVER_API_AUTH_STRING" in found.words


def test_a_server_that_others_reach_without_a_login_is_wrong(open_door: str) -> None:
    found = check_door(open_door, OF_MLFLOW, lambda: ["127.0.0.1"])
    assert found.state == "wrong"
    assert "answers at 127.0.0.1 without a login" in found.words
    assert "mlflow server --app-name basic-auth" in found.words


def test_a_server_under_another_name_is_reached_by_others(open_door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "_is_here", lambda _host: False)
    assert check_door(open_door, OF_PREFECT, nowhere).state == "wrong"


def test_a_server_that_does_not_answer_is_another_finding() -> None:
    assert check_door(DEAD, OF_PREFECT).words == "not looked at, since it does not answer"


def test_own_addresses_are_those_by_which_others_know_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(ip_address(one.partition("%")[0]).is_loopback for one in own_addresses())
    monkeypatch.setattr(
        doors.socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", ("127.0.1.1", 0)), (0, 0, 0, "", ("10.7.7.7", 0))]
    )
    assert "10.7.7.7" in own_addresses()
    assert "127.0.1.1" not in own_addresses()
