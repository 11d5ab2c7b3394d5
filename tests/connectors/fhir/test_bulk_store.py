"""Last night's resources: what they are good for tonight, and that a night which dies leaves them as they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.sources import Wanted
from spinney.errors import SourceFailed
from tests.connectors.fhir.bulk import Puller, bulk_server, observation, read
from tests.servers.fhir_traps import FhirTraps, Stumble


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    with bulk_server() as traps:
        yield traps


@pytest.fixture
def pull(tmp_path: Path) -> Puller:
    return Puller(tmp_path)


def test_a_server_without_transaction_time_is_read_anew_every_night(server: FhirTraps, pull: Puller) -> None:
    server.tells_time = False
    assert pull(server, store=True).notes == ("the export has no transactionTime, so the next one is a full one again",)
    pull(server, store=True)
    assert "_since" not in server.asked("$export")[1].query


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"wanted": Wanted("Observation", ("a|b",))}, {"wanted": Wanted("Observation", ("a|b", "a|c"))}),
        (
            {"wanted": Wanted("Observation", (), datetime(2020, 1, 1, tzinfo=UTC))},
            {"wanted": Wanted("Observation", (), datetime(2019, 1, 1, tzinfo=UTC))},
        ),
        ({"wanted": Wanted("Patient")}, {"wanted": Wanted("Observation")}),
        ({"wanted": Wanted("Patient")}, {"wanted": Wanted("Patient"), "export": "system"}),
        ({"wanted": Wanted("Patient")}, {"wanted": Wanted("Patient"), "rebuild_days": 1e-9}),
    ],
)
def test_a_store_that_lacks_what_is_wanted_or_is_too_old_is_built_anew(
    server: FhirTraps, pull: Puller, first: dict[str, Any], second: dict[str, Any]
) -> None:
    for night in (first, second):
        pull(server, night.pop("wanted"), store=True, **night)
    assert "_since" not in server.asked("$export")[1].query


def test_a_store_that_holds_more_than_is_wanted_is_used(server: FhirTraps, pull: Puller) -> None:
    pull(server, Wanted("Observation", ("a|b", "a|c"), datetime(2019, 1, 1, tzinfo=UTC)), store=True)
    pull(server, Wanted("Observation", ("a|b",), datetime(2020, 1, 1, tzinfo=UTC)), store=True)
    assert "_since" in server.asked("$export")[1].query


def test_a_night_that_dies_half_way_leaves_the_store_as_it_was(server: FhirTraps, pull: Puller) -> None:
    pull(server, store=True)
    before = (pull.store / "store.json").read_text()
    server.stumbles = [Stumble("/files/", 503, times=1)]
    server.put(observation(900, "2026-01-01T12:00:00Z"))
    with pytest.raises(SourceFailed):
        pull(server, store=True, attempts=1)
    assert (pull.store / "store.json").read_text() == before
    assert read(pull(server, store=True)) == server.store["Observation"]


def test_what_is_kept_is_readable_by_its_owner_alone(server: FhirTraps, pull: Puller) -> None:
    server.stumbles = [Stumble("/files/", 503, times=1)]
    with pytest.raises(SourceFailed):
        pull(server, store=True, attempts=1)
    assert (pull.staging / "export.json").stat().st_mode & 0o077 == 0
    pull(server, store=True)
    for path in (pull.store, pull.store / "store.json", pull.store / "a"):
        assert path.stat().st_mode & 0o077 == 0
