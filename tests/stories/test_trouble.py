"""Whatever happens to the machines in a night: nothing is lost, nobody is stuck, and somebody is told what to do."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.connectors.exchange import SystemClock, TransientExchangeError
from spinney.connectors.exchange.places.folder import Folder
from spinney.demo.federation import Village
from spinney.errors import RoundVoid
from spinney.federation.seam import Message
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.envelopes import Rounds
from spinney.house.keys import RoundKey
from spinney.house.rounds import CoordinatorSession, Over
from spinney.house.site_night import RoundResult, SiteNights
from spinney.rows.cohort import Cohort
from spinney.storage.files import DiskFull, RoundState
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.federations import breast_study, breast_village, simulated
from tests.nights import coordinator_night, others, site_night
from tests.spinney.house.houses import PATIENCE, SITES, World, small_cohorts, small_study

FOUR = (*SITES, "dogwood")


@pytest.fixture(scope="module")
def study() -> Study:
    return small_study()


@pytest.fixture(scope="module")
def cohorts(study: Study) -> dict[str, Cohort]:
    return small_cohorts(study, FOUR)


@pytest.fixture
def world(tmp_path: Path, study: Study, cohorts: dict[str, Cohort]) -> World:
    return World(tmp_path / "world", study, {name: cohorts[name] for name in SITES})


@pytest.fixture
def four(tmp_path: Path, study: Study, cohorts: dict[str, Cohort]) -> World:
    return World(tmp_path / "four", study, cohorts)


def wait_until(true: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def sent(world: World, name: str, message: str) -> bool:
    return (world.place / world.study.name / name / "1" / message).exists()


# ---------------------------------------------------------------------------------------------------------------
# Disks


@pytest.fixture
def small_disk(world: World) -> Iterator[Path]:
    """A disk of a few hundred kilobytes under the home of ash."""
    home = world.home("ash")
    home.mkdir(mode=0o700)
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "tmpfs", str(home)]
    if mount is None or os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield home
    subprocess.run(["umount", "--lazy", str(home)], check=True)


def test_a_house_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(world: World, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    said: list[str] = []

    def stubborn() -> object:
        site = world.site("ash")
        ballast.write_bytes(bytes(max(0, shutil.disk_usage(small_disk).free - 24 * 1024)))
        try:
            site.run(PATIENCE)
        except DiskFull as full:
            said.append(str(full))
        ballast.unlink()
        world.audit("ash").verify()
        return world.site("ash").run(PATIENCE)

    results = world.night({"coordinator": world.coordinator().run, "ash": stubborn, **world.honest("birch", "cedar")})
    assert "make room and start again" in said[0]
    assert set(results.values()) == {Over(simulate(world.study, world.cohorts).model_digest, "")}
    published = [line.entry.step for line in world.audit("ash").lines() if line.entry.direction == "sent"]
    assert [step for step in dict.fromkeys(published) if not step.startswith("parcel")] == [
        "join",
        "grow",
        "check",
        "score",
        "sign",
        "release",
        "finish",
    ]


@pytest.mark.parametrize("moment", ["join.1", "check.1", "release.1"])
def test_an_exchange_that_goes_away_and_comes_back_costs_only_the_time(world: World, moment: str) -> None:
    def unplug() -> object:
        wait_until(lambda: sent(world, "birch", moment))
        world.place.rename(world.folder / "away")
        time.sleep(2)  # a minute, shortened
        (world.folder / "away").rename(world.place)
        return None

    results = world.night({"coordinator": world.coordinator().run, "plug": unplug, **world.honest(*SITES)})
    del results["plug"]
    assert set(results.values()) == {Over(simulate(world.study, world.cohorts).model_digest, "")}


def test_an_exchange_that_stays_away_calls_nobody_absent(world: World) -> None:
    world.patience = timedelta(seconds=1)
    coordinator = world.coordinator(timedelta(seconds=1))
    channel = coordinator.channel
    channel.publish("hello", 1, "note", lambda: b"", {})
    world.place.rename(world.folder / "away")
    with pytest.raises(TransientExchangeError, match="is gone: mount it or create it again"):
        coordinator.run()
    assert coordinator.left_out == {}


# ---------------------------------------------------------------------------------------------------------------
# Clocks


class WrongClock(SystemClock):
    """An hour off, and set forth and back all the time."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(hours=self._rng.choice([-1, 1]))


def test_clocks_that_are_wrong_and_jump_end_no_wait(world: World) -> None:
    world.clocks = {name: WrongClock(seed) for seed, name in enumerate(("coordinator", *SITES))}
    coordinator = world.coordinator(timedelta(minutes=10))
    results = world.night({"coordinator": coordinator.run, **world.honest(*SITES)})
    assert set(results.values()) == {Over(simulate(world.study, world.cohorts).model_digest, "")}
    assert coordinator.left_out == {}


class Hurried(SystemClock):
    """An hour passes at once, when something has happened."""

    def __init__(self, event: Callable[[], bool]) -> None:
        self._event, self._skipped = event, 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        if not self._skipped and self._event():
            self._skipped = 3600.0
        super().sleep(seconds)


# ---------------------------------------------------------------------------------------------------------------
# Sites that are slow or lost


def test_a_site_slower_than_the_deadline_is_left_out_and_told_so(four: World) -> None:
    four.clocks["coordinator"] = Hurried(lambda: all(sent(four, name, "grow.1") for name in SITES))
    coordinator, slow = four.coordinator(), four.site("dogwood")
    answer = slow._part.answer
    past = threading.Event()

    def sluggish(step: str, order: Message) -> Message:
        if step == "grow":
            assert past.wait(120)
        return answer(step, order)

    slow._part.answer = sluggish  # type: ignore[method-assign]

    def watch() -> None:
        wait_until(lambda: sent(four, "ash", "check.1"))
        past.set()

    night = {"coordinator": coordinator.run, "dogwood": lambda: slow.run(PATIENCE), "watch": watch}
    results = four.night({**night, **four.honest(*SITES)})
    reference = simulate(four.study, four.cohorts, lost={"dogwood": "grow"})
    assert results["coordinator"] == results["dogwood"] == Over(reference.model_digest, "")
    assert coordinator.left_out == {"dogwood": "no answer to grow in time"}
    assert slow.outcome is None


def test_after_a_site_is_lost_between_growing_and_scoring_the_others_are_asked_again(four: World) -> None:
    four.clocks["coordinator"] = Hurried(lambda: all(sent(four, name, "score.1") for name in SITES))
    coordinator, lost = four.coordinator(), four.site("dogwood")
    answer = lost._part.answer

    def dies(step: str, order: Message) -> Message:
        if step == "score":
            raise SystemExit
        return answer(step, order)

    lost._part.answer = dies  # type: ignore[method-assign]

    def gone() -> object:
        with pytest.raises(SystemExit):
            lost.run(PATIENCE)
        return None

    results = four.night({"coordinator": coordinator.run, "dogwood": gone, **four.honest(*SITES)})
    reference = simulate(four.study, four.cohorts, lost={"dogwood": "score"})
    assert {results[name] for name in ("coordinator", *SITES)} == {Over(reference.model_digest, "")}
    assert coordinator.left_out == {"dogwood": "no answer to score in time"}
    assert sent(four, "ash", "score.2")


def test_below_the_quorum_the_round_is_void_for_everybody(world: World) -> None:
    world.clocks["coordinator"] = Hurried(lambda: all(sent(world, name, "grow.1") for name in ("ash", "birch")))
    coordinator, sites = world.coordinator(), {name: world.site(name) for name in ("ash", "birch")}
    cedar = world.site("cedar")
    answer = cedar._part.answer
    cedar._part.answer = lambda step, order: answer(step, order) if step == "join" else _exit()  # type: ignore[method-assign]

    def gone() -> object:
        with pytest.raises(SystemExit):
            cedar.run(PATIENCE)
        return None

    night: dict[str, Callable[[], object]] = {"coordinator": coordinator.run, "cedar": gone}
    night |= {name: lambda site=site: site.run(PATIENCE) for name, site in sites.items()}  # type: ignore[misc]
    results = world.night(night)
    assert results["ash"] == results["birch"] == results["coordinator"]
    few = "2 sites are left and 3 are needed; two sites can only use secure_sum: trusted-third-party"
    assert results["ash"] == Over("", f"{few}; left out: cedar: no answer to grow in time")
    assert all(site.outcome is None for site in sites.values())


def _exit() -> Message:
    raise SystemExit


def test_a_coordinator_that_falls_silent_voids_the_round_at_the_sites(world: World, monkeypatch) -> None:
    class Stopped(BaseException):
        """The machine is off."""

    def off(*_: object) -> None:
        raise Stopped

    monkeypatch.setattr(CoordinatorSession, "_replies", off)
    with pytest.raises(Stopped):
        world.coordinator().run()
    with pytest.raises(RoundVoid, match="has been silent for 0:00:01; this house keeps what it has"):
        world.site("ash").run(timedelta(seconds=1))


# ---------------------------------------------------------------------------------------------------------------
# Coordinators that are replaced


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return breast_village(tmp_path, SITES, schedule={"answer_minutes": 3, "opening_minutes": 3})


def night(village: Village) -> dict[str, RoundResult]:
    with others(village) as running:
        ended = {name: one.result() for name, one in running.items()}
    return {name: ended[name] for name in village.sites}


def lose_the_machine(village: Village) -> None:
    """What is left is what the backup holds: the signing key and the papers."""
    for lost in ("rounds", "nights", "outbox", "keys/rounds"):
        shutil.rmtree(village.home("coordinator") / lost, ignore_errors=True)


def test_sites_follow_a_coordinator_that_was_replaced_in_the_middle_of_a_round(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lost(BaseException):
        """The machine has burnt."""

    replies = CoordinatorSession._replies

    def fragile(self: CoordinatorSession, step: str, *rest: object) -> object:
        if (self.round, step) == (1, "check"):
            raise Lost
        return replies(self, step, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(CoordinatorSession, "_replies", fragile)

    def replaced() -> object:
        with pytest.raises(Lost):
            coordinator_night(village)
        lose_the_machine(village)
        return coordinator_night(village)

    study = breast_study(schedule={"answer_minutes": 3, "opening_minutes": 3})
    with ThreadPoolExecutor(4) as pool:
        coordinator = pool.submit(replaced)
        parts = {name: pool.submit(site_night, village, name) for name in SITES}
        coordinator.result()
        ended = {name: part.result() for name, part in parts.items()}
    reference = simulated(village, study, 2, epoch=2)
    for name, part in ended.items():
        assert (part.number, part.over) == (2, Over(reference.model_digest, ""))
        assert part.outcome is not None
        assert part.outcome.model.digest == reference.outcomes[name].model.digest


def test_planted_rounds_mislead_neither_a_new_coordinator_nor_the_sites(village: Village) -> None:
    night(village)
    place = village.folder / "exchange" / "breast" / "coordinator"
    for number in (7, 400, 999_999_999):
        (place / str(number)).mkdir()
    (place / "7" / "opening.1").write_bytes(b"noise")
    shutil.copy(place / "1" / "opening.1", place / "400" / "opening.1")
    lose_the_machine(village)
    nights = CoordinatorNights(read_coordinator(village.coordinator_file))
    assert nights.number() == 2
    refused = [line.entry.kind for line in nights.audit.lines() if line.entry.direction == "refused"]
    assert refused == ["Replayed", "Truncated"]
    (place / "2").mkdir()
    (place / "2" / "opening.1").write_bytes(b"somebody was faster")
    parts = night(village)
    assert {(part.number, part.over.void) for part in parts.values()} == {(2, "")}


# ---------------------------------------------------------------------------------------------------------------
# What is left of old rounds


def test_messages_older_than_the_retention_are_deleted_and_newer_ones_stay(village: Village) -> None:
    night(village)
    place = village.folder / "exchange" / "breast" / "ash" / "1"
    old = datetime.now(UTC) - timedelta(days=31)
    for path in (place / "join.1", place / "grow.1"):
        os.utime(path, (old.timestamp(), old.timestamp()))
    ash = SiteNights(read_site(village.site_file("ash")))
    assert ash.expire("ash") == 0, "it was the last round"
    ash.rounds.enter(2)
    assert ash.expire("ash") == 0, "it was the last but one"
    ash.rounds.enter(3)
    assert ash.expire("ash") == 2
    assert not (place / "join.1").exists()
    assert (place / "check.1").exists()


def test_a_coordinator_whose_clock_is_forty_days_ahead_deletes_nothing_that_counts(village: Village) -> None:
    class Ahead(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(days=40)

    night(village)
    before = {path for path in (village.folder / "exchange").rglob("*") if path.is_file()}
    nights = CoordinatorNights(read_coordinator(village.coordinator_file), clock=Ahead())
    assert nights.tidy_exchange(everybodys=True) == []
    assert {path for path in (village.folder / "exchange").rglob("*") if path.is_file()} == before


def test_what_can_not_be_deleted_from_the_exchange_costs_nobody_the_night(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    night(village)
    place = village.folder / "exchange" / "breast"
    for path in place.glob("*/1/*"):
        os.utime(path, (0, 0))
    delete = Folder.delete

    def only_own(store: Folder, path: str) -> None:
        if "/ash/" in path:
            raise PermissionError(errno.EACCES, "no")
        delete(store, path)

    monkeypatch.setattr(Folder, "delete", only_own)
    nights = CoordinatorNights(read_coordinator(village.coordinator_file))
    assert nights.tidy_exchange(everybodys=True) == []
    nights.rounds.enter(3)
    (note,) = nights.tidy_exchange(everybodys=True)
    assert note.startswith("old messages of ash stay on the exchange: ")
    assert {path.name for path in place.iterdir() if [*path.glob("1/*")]} == {"ash"}
    place.parent.rename(village.folder / "away")
    (note,) = SiteNights(read_site(village.site_file("ash"))).tidy_exchange()
    assert "does not exist" in note


def test_after_a_void_round_its_keys_and_memory_are_gone_and_the_next_night_is_a_new_one(village: Village) -> None:
    with others(village, "cedar") as running:
        nights = SiteNights(read_site(village.site_file("cedar")))
        found = nights.await_opening()
        channel = nights.channel(found.number, nights.approvals.roster, found.digest)
        channel.publish("join", 1, "nonsense", lambda: b"nonsense", {})
        ended = {name: one.result() for name, one in running.items()}
    assert ended["coordinator"]["void"].startswith("2 sites are left")
    assert ended["ash"].over.void.startswith("2 sites are left")
    for name in ("coordinator", "ash", "birch"):
        home = village.home(name)
        assert not list(home.glob("keys/rounds/**/*.key"))
        assert not (home / "rounds" / "breast" / "1").exists()
    assert SiteNights(read_site(village.site_file("ash"))).pinned is None
    assert {(part.number, part.over.void) for part in night(village).values()} == {(2, "")}
    for name in ("coordinator", *SITES):
        with SiteNights(read_site(village.site_file(name))).alone() if name in SITES else nullcontext():
            sent_in = sorted(path.name for path in (village.home(name) / "outbox" / "breast").iterdir())
        assert sent_in == (["2"] if name in SITES else ["1", "2"])


def test_after_a_night_no_file_of_any_house_holds_the_key_of_its_round(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, secrets = Rounds._key, set[bytes]()

    def seen(rounds: Rounds, number: int) -> RoundKey:
        key = made(rounds, number)
        secrets.add(key.private.private_bytes_raw())
        return key

    def holders(folder: Path) -> set[str]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {path.name for path in files if any(secret in path.read_bytes() for secret in secrets)}

    forget, held = RoundState.forget, set[str]()

    def looked_at(memory: RoundState) -> None:
        held.update(holders(memory.folder))
        forget(memory)

    monkeypatch.setattr(Rounds, "_key", seen)
    monkeypatch.setattr(RoundState, "forget", looked_at)
    night(village)
    assert len(secrets) == 1 + len(SITES)
    assert "key.bytes" in held  # it was there as long as the round lasted
    assert [holders(village.home(name)) for name in ("coordinator", *SITES)] == [set()] * (1 + len(SITES))


def test_what_a_killed_run_left_of_an_older_round_is_destroyed_at_the_next_start(village: Village) -> None:
    ash = SiteNights(read_site(village.site_file("ash")))
    ash.memory(1)["private-seed"] = b"secret"
    ash.rounds.enter(1)
    ash.rounds.enter(2)
    ash.memory(2)["private-seed"] = b"still needed"
    with ash.alone():
        assert not (village.home("ash") / "rounds" / "breast" / "1").exists()
        assert ash.memory(2)["private-seed"] == b"still needed"
