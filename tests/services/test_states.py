"""What people see in the Prefect UI when a night does not go well: states and messages, read from the real server."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.exchange import SystemClock
from spinney.demo.federation import COORDINATOR, Village
from spinney.house import rounds
from spinney.house.audit import Audit
from spinney.house.nights import HouseNights
from spinney.storage.files import RoundState, room_in
from tests.federations import breast_village
from tests.nights import coordinator_night, leave_old, served, site_night
from tests.servers.migrated import registry_in
from tests.servers.prefect_server import PrefectServer, wait_until

pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning"),
]

LONGEST = 240.0
SHORT = {"answer_minutes": 0.4, "opening_minutes": 4}
LONG = {"answer_minutes": 4, "opening_minutes": 4}  # where nobody is to be late by chance


@dataclass(frozen=True)
class Shown:
    """A run as the server knows it."""

    run: str
    name: str
    state: str
    message: str


def flow_of(village: Village, house: str) -> Shown:
    """One night of a house as a flow, and what the server says of it afterwards."""
    from prefect.client.orchestration import get_client

    from spinney.flows.coordinator_round import CoordinatorRoundInput, coordinator_round
    from spinney.flows.site_round import SiteRoundInput, site_round

    with served(village):
        if house == COORDINATOR:
            ended: Any = coordinator_round(CoordinatorRoundInput(), return_state=True)
        else:
            ended = site_round(SiteRoundInput(site=house), return_state=True)
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(ended.state_details.flow_run_id)
    assert run.state is not None
    return Shown(str(run.id), run.name, run.state.name, run.state.message or "")


def shown_of(run: str) -> dict[str, str]:
    """What the artifacts of a run say, by key."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    with get_client(sync_client=True) as client:
        found = client.read_artifacts(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run])))
    return {one.key or "": str(one.data) for one in found}


def log_of(run: str) -> list[str]:
    """What a run and its steps have told, warnings and worse, in the order of time."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId, LogFilterLevel

    wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run]), level=LogFilterLevel(ge_=30))
    with get_client(sync_client=True) as client:
        return [one.message for one in sorted(client.read_logs(log_filter=wanted), key=lambda one: one.timestamp)]


def ready(village: Village, house: str, since: float) -> Callable[[], bool]:
    """Whether a site has tonight's cohort and waits for the opening."""
    encoded = village.home(house) / "vault" / "cohorts"
    return lambda: any(path.stat().st_mtime >= since for path in encoded.glob("*/*.npz"))


def made_village(folder: Path, sites: tuple[str, ...]) -> Village:
    village = breast_village(folder, sites, schedule=SHORT, trees=4)
    for name in sites:
        registry_in(village.home(name))
    return village


def begin(pool: ThreadPoolExecutor, village: Village, flows: tuple[str, ...], plain: tuple[str, ...] = ()) -> Any:
    """Sites first; the coordinator when all of them wait, so that nobody is late by chance."""
    since = time.time()
    running: dict[str, Future[Any]] = {name: pool.submit(flow_of, village, name) for name in flows}
    running |= {name: pool.submit(site_night, village, name) for name in plain}
    for name in (*flows, *plain):
        wait_until(ready(village, name, since), LONGEST)
    running[COORDINATOR] = pool.submit(flow_of, village, COORDINATOR)
    return running


def ends(running: dict[str, Future[Any]]) -> dict[str, Any]:
    return {name: one.result(LONGEST) for name, one in running.items()}


@dataclass(frozen=True)
class Story:
    """Two nights of a village: how every house's runs ended, and which rounds' models it had after each."""

    first: dict[str, Any]
    models_after_first: dict[str, list[int]]
    second: dict[str, Any]
    models: dict[str, list[int]]


def too_few(folder: Path) -> Story:
    """ash and birch are there, cedar is not, and three are needed; the next night all are there."""
    village = made_village(folder, ("ash", "birch", "cedar"))
    with ThreadPoolExecutor(4) as pool:
        first = ends(begin(pool, village, ("ash", "birch")))
        models = {name: rounds_of(village, name) for name in ("ash", "birch")}
        second = ends(begin(pool, village, ("ash",), ("birch", "cedar")))
    return Story(first, models, second, {"ash": rounds_of(village, "ash")})


def slow_and_lost(folder: Path) -> Story:
    """elm answers too late, and cedar loses power while it grows; three others are enough. The next night all go on."""
    village = made_village(folder, ("ash", "birch", "cedar", "elm", "fir"))
    reply = rounds.SiteSession._reply
    decided = village.home(COORDINATOR) / "rounds" / "breast" / "1" / "answers-001.text"

    def slow_or_lost(part: rounds.SiteSession, ask: rounds.Ask, *rest: Any) -> None:
        if (part.channel.me, part.channel.round, ask.step) == ("elm", 1, "join"):
            wait_until(decided.exists, LONGEST)
        if (part.channel.me, part.channel.round, ask.step) == ("cedar", 1, "grow"):
            raise PowerCut
        reply(part, ask, *rest)

    with ThreadPoolExecutor(6) as pool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rounds.SiteSession, "_reply", slow_or_lost)
            running = begin(pool, village, ("elm",), ("ash", "birch", "cedar", "fir"))
            with pytest.raises(PowerCut):
                running.pop("cedar").result(LONGEST)
            first = ends(running)
        second = ends(begin(pool, village, ("cedar", "elm"), ("ash", "birch", "fir")))
    return Story(first, {}, second, {name: rounds_of(village, name) for name in ("cedar", "elm")})


def nobody_opens(folder: Path) -> list[Shown]:
    """The coordinator is away, and somebody starts a site's night twice."""
    village = breast_village(folder, ("ash",), schedule={"opening_minutes": 0.3})
    old = leave_old(village, "ash")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(flow_of, village, "ash")
        wait_until(lambda: (village.home("ash") / "rounds" / "breast" / ".lock").exists(), LONGEST)
        runs = [flow_of(village, "ash"), first.result(LONGEST)]
    assert not old.exists(), "a night without a round tidies up, too"
    return runs


def full_and_replaced(folder: Path) -> dict[str, list[Shown]]:
    """The disk of ash is full when it begins round 1, and the coordinator's machine burns in the middle of it."""
    village = breast_village(folder, ("ash", "birch", "fir"), schedule=LONG, trees=4)
    registry_in(village.home("ash"))
    remember, replies, full = RoundState.__setitem__, rounds.CoordinatorSession._replies, [village.home("ash")]

    def without_room(memory: RoundState, key: str, value: Any) -> None:
        with room_in(memory.folder):
            if key == "cohort" and full and memory.folder.is_relative_to(full[0]):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        remember(memory, key, value)

    def on_fire(asking: rounds.CoordinatorSession, step: str, *rest: Any) -> Any:
        if asking.channel.home == village.home(COORDINATOR) and (asking.round, step) == (1, "check"):
            raise PowerCut
        return replies(asking, step, *rest)

    def ash() -> list[Shown]:
        first = flow_of(village, "ash")
        full.clear()
        return [first, flow_of(village, "ash")]

    def coordinator() -> list[Shown]:
        with pytest.raises(PowerCut):
            coordinator_night(village)
        for lost in ("rounds", "nights", "outbox", "keys/rounds"):
            shutil.rmtree(village.home(COORDINATOR) / lost, ignore_errors=True)
        return [flow_of(village, COORDINATOR)]

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(RoundState, "__setitem__", without_room)
        patch.setattr(rounds.CoordinatorSession, "_replies", on_fire)
        others = [pool.submit(site_night, village, name) for name in ("birch", "fir")]
        running = {"ash": pool.submit(ash), COORDINATOR: pool.submit(coordinator)}
        assert {one.result(LONGEST).number for one in others} == {2}
        return ends(running)


def away_and_an_hour_off(folder: Path) -> Shown:
    """The clock of ash is an hour ahead, and in the middle of the round the exchange is away for some seconds."""
    village = breast_village(folder, ("ash", "birch", "fir"), schedule=LONG, trees=4)
    registry_in(village.home("ash"))
    moved_in = HouseNights.__init__

    def an_hour_off(nights: HouseNights, name: str, home: Path, *rest: Any) -> None:
        moved_in(nights, name, home, *rest)
        if home == village.home("ash"):
            nights.clock = HourAhead()

    place, gone = village.folder / "exchange", village.folder / "away"
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(HouseNights, "__init__", an_hour_off)
        others = [pool.submit(site_night, village, name) for name in ("birch", "fir")]
        running = {"ash": pool.submit(flow_of, village, "ash"), COORDINATOR: pool.submit(coordinator_night, village)}
        wait_until(lambda: (place / "breast" / "birch" / "1" / "grow.1").exists(), LONGEST)
        place.rename(gone)
        time.sleep(5)
        gone.rename(place)
        assert {one.result(LONGEST).number for one in others} == {1}
        ended: Shown = ends(running)["ash"]
    noted = [line.time for line in Audit(village.home("ash") / "audit.jsonl").lines() if line.entry.round == 1]
    assert min(noted) > datetime.now(UTC).isoformat(), "its clock is not the others'"
    return ended


class HourAhead(SystemClock):
    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


def rounds_of(village: Village, name: str) -> list[int]:
    """The rounds that a site has a model from."""
    return [version.round for version in registry_in(village.home(name)).versions("breast")]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory, prefect_server: PrefectServer) -> Iterator[dict[str, Any]]:  # noqa: ARG001
    """All at once: most of the time they wait for deadlines."""
    with ThreadPoolExecutor(len(STORIES)) as pool:
        yield {one.__name__: pool.submit(one, tmp_path_factory.mktemp("s")) for one in STORIES}


STORIES = (too_few, slow_and_lost, nobody_opens, full_and_replaced, away_and_an_hour_off)


class TestTooFewSites:
    @pytest.fixture
    def story(self, stories: dict[str, Future[Story]]) -> Story:
        return stories["too_few"].result(2 * LONGEST)

    def test_a_void_round_fails_at_the_coordinator_and_names_the_absent(self, story: Story) -> None:
        shown = story.first[COORDINATOR]
        assert shown.state == "Failed"
        assert "round 1 is void: 2 sites are left and 3 are needed" in shown.message
        assert "cedar: no answer to join in time" in shown.message

    def test_it_fails_at_the_sites_that_were_there_and_they_keep_what_they_have(self, story: Story) -> None:
        for name in ("ash", "birch"):
            assert story.first[name].state == "Failed"
            assert "round 1 is void: 2 sites are left and 3 are needed" in story.first[name].message
            assert "keeps what it has" in story.first[name].message
        assert story.models_after_first == {"ash": [], "birch": []}

    def test_the_next_night_has_a_round_again(self, story: Story) -> None:
        assert (story.second[COORDINATOR].state, story.second["ash"].state) == ("Completed", "Completed")
        assert story.models == {"ash": [2]}


class TestOneIsSlowAndOneIsLost:
    @pytest.fixture
    def story(self, stories: dict[str, Future[Story]]) -> Story:
        return stories["slow_and_lost"].result(2 * LONGEST)

    def test_the_round_is_completed_and_the_absent_are_named_with_their_reasons(self, story: Story) -> None:
        shown = story.first[COORDINATOR]
        assert shown.state == "Completed"
        told = shown_of(shown.run)["breast-sites"]
        assert "no answer to join in time" in told
        assert "no answer to grow in time" in told
        assert {"elm", "cedar"} <= set(told.replace('"', " ").split())

    def test_a_site_slower_than_the_deadline_says_that_the_round_went_on_without_it(self, story: Story) -> None:
        assert story.first["elm"].state == "Failed"
        assert "went on with round 1 without this house" in story.first["elm"].message

    def test_both_join_the_next_night_without_anybody_s_help(self, story: Story) -> None:
        assert [story.second[name].state for name in (COORDINATOR, "cedar", "elm")] == ["Completed"] * 3
        assert story.models == {"cedar": [2], "elm": [2]}


class TestNobodyOpens:
    @pytest.fixture
    def runs(self, stories: dict[str, Future[list[Shown]]]) -> list[Shown]:
        return stories["nobody_opens"].result(2 * LONGEST)

    def test_the_second_of_two_runs_at_once_says_that_the_first_is_at_it(self, runs: list[Shown]) -> None:
        assert runs[0].state == "Failed"
        assert "another run of ash is at breast; wait until it has ended, or stop it" in runs[0].message

    def test_a_site_whose_coordinator_is_away_says_so_and_keeps_its_model(self, runs: list[Shown]) -> None:
        assert runs[1].state == "Failed"
        assert "coordinator has opened no round of breast in 0:00:18" in runs[1].message
        assert "keeps the model that it has and tries again the next night" in runs[1].message


class TestAFullDiskAndANewCoordinator:
    @pytest.fixture
    def runs(self, stories: dict[str, Future[dict[str, list[Shown]]]]) -> dict[str, list[Shown]]:
        return stories["full_and_replaced"].result(2 * LONGEST)

    def test_a_full_disk_fails_the_run_and_says_what_to_do(self, runs: dict[str, list[Shown]]) -> None:
        assert runs["ash"][0].state == "Failed"
        assert "make room and start again; what was done so far is kept" in runs["ash"][0].message

    def test_a_run_that_follows_a_new_coordinator_is_called_by_the_round_that_it_ended_with(
        self, runs: dict[str, list[Shown]]
    ) -> None:
        (coordinator,), ash = runs[COORDINATOR], runs["ash"][1]
        assert (coordinator.name, coordinator.state) == ("breast, round 2", "Completed")
        assert (ash.name, ash.state) == ("breast, round 2, ash", "Completed")


class TestTheExchangeIsAwayAndAClockIsWrong:
    @pytest.fixture
    def run(self, stories: dict[str, Future[Shown]]) -> Shown:
        return stories["away_and_an_hour_off"].result(2 * LONGEST)

    def test_the_run_is_completed_all_the_same(self, run: Shown) -> None:
        assert (run.name, run.state) == ("breast, round 1, ash", "Completed")

    def test_its_log_says_what_it_waited_for_and_that_it_is_back(self, run: Shown) -> None:
        said = wait_until(
            lambda: [one for one in log_of(run.run) if "exchange" in one][1:] and log_of(run.run), LONGEST
        )
        waited, back = (one for one in said if "exchange" in one)
        assert waited.startswith("waiting until the exchange is back: ")
        assert back == "the exchange is back"


class PowerCut(BaseException):
    """Nothing of ours catches it."""
