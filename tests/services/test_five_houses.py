"""Four sites and a coordinator as five processes: the same models as in one process, whatever the mailbox is.

By default every house has a Prefect home and server of its own where the mailbox is a folder, and all share a server
where it is a bucket or SFTP; `make chaos` runs the other combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.demo.federation import COORDINATOR, Village
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.site_night import SiteNights
from tests.chaos.forked import end_of, start_house
from tests.federations import breast_study, breast_village, simulated
from tests.servers.migrated import registry_in
from tests.servers.openssh import OpenSsh
from tests.servers.prefect_server import PrefectServer
from tests.servers.seaweed import BUCKET, KEY, SECRET, Seaweed

pytestmark = [pytest.mark.service, pytest.mark.timeout(900)]

LONGEST = 600.0
PATIENCE = {"answer_minutes": 8, "opening_minutes": 8}
SECRETS = {"EXCHANGE_KEY": KEY, "EXCHANGE_SECRET": SECRET}


@contextmanager
def mailbox(kind: str, folder: Path) -> Iterator[dict[str, Any] | None]:
    """What a settings file says about the exchange; nothing for a folder in the village."""
    folder.mkdir()
    if kind == "folder":
        yield None
    elif kind == "s3":
        with Seaweed(folder) as store:
            options = {"endpoint_url": store.options()["endpoint_url"]}
            secrets = {"key": "EXCHANGE_KEY", "secret": "EXCHANGE_SECRET"}
            yield {"url": f"s3://{BUCKET}", "options": options, "secrets": secrets}
    else:
        with OpenSsh(folder) as server:
            (folder / "exchange").mkdir()
            yield {"url": server.url(folder / "exchange"), "options": server.options()}


@contextmanager
def servers(village: Village, folder: Path, template: Path) -> Iterator[dict[str, PrefectServer]]:
    """A Prefect server in a home of its own for every house; they start one after the other, on two cores."""
    with ExitStack() as stack:
        started = {}
        for name in (COORDINATOR, *village.sites):
            (folder / name).mkdir(parents=True)
            started[name] = stack.enter_context(PrefectServer(folder / name, template))
        yield started


def night(village: Village, environments: Mapping[str, Mapping[str, str]]) -> None:
    """Five processes, each with an environment of its own, until all have ended."""
    processes = [start_house(village, name, {**own, **SECRETS}) for name, own in environments.items()]
    assert [end_of(process, LONGEST) for process in processes] == [0] * len(processes)


def runs_on(server: PrefectServer) -> int:
    """How many flow runs a server knows."""
    with server.http() as client:
        return int(client.post("flow_runs/count", json={}).raise_for_status().json())


def check(village: Village) -> None:
    """The same models everywhere, and as in one process."""
    reference = simulated(village, breast_study(schedule=PATIENCE))
    round_ = CoordinatorNights(read_coordinator(village.coordinator_file)).result()
    assert round_ is not None
    assert (round_["model"], round_["void"], round_["absent"]) == (reference.model_digest, "", {})
    for name in village.sites:
        kept = SiteNights(read_site(village.site_file(name))).result()
        assert kept is not None
        assert (kept["model"], kept["choice"]["model"]) == (round_["model"], reference.outcomes[name].model.digest)
        (version,) = registry_in(village.home(name)).versions(village.study)
        assert version.model_digest == kept["choice"]["model"]


def kinds(chaos: set[str]) -> list[Any]:
    return [pytest.param(kind, marks=[pytest.mark.chaos] * (kind in chaos)) for kind in ("folder", "s3", "sftp")]


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("kind", kinds({"s3", "sftp"}))
def test_five_houses_with_a_prefect_home_each_give_the_models_of_the_simulation(
    kind: str, tmp_path: Path, prefect_database: Path
) -> None:
    with mailbox(kind, tmp_path / "mailbox") as exchange:
        village = made_village(tmp_path, exchange)
        with servers(village, tmp_path / "prefect", prefect_database) as started:
            night(village, {name: server.settings for name, server in started.items()})
            assert {name: runs_on(server) for name, server in started.items()} == dict.fromkeys(started, 1)
        check(village)


@pytest.mark.usefixtures("secrets", "prefect_server")
@pytest.mark.parametrize("kind", kinds({"folder"}))
def test_five_houses_on_one_prefect_server_give_the_models_of_the_simulation(kind: str, tmp_path: Path) -> None:
    with mailbox(kind, tmp_path / "mailbox") as exchange:
        village = made_village(tmp_path, exchange)
        night(village, {name: {} for name in (COORDINATOR, *village.sites)})
        check(village)


def made_village(folder: Path, exchange: dict[str, Any] | None) -> Village:
    village = breast_village(folder, exchange=exchange, schedule=PATIENCE)
    for name in village.sites:
        registry_in(village.home(name))  # a database that is ready, or four houses migrate theirs at once
    return village
