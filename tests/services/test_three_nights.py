"""Three nights of four hospitals over real parts: PostgreSQL, MLflow, Prefect and an S3 store.

Night 1 registers a model everywhere. In night 2 birch's data are spoilt, and its champion stays. Before night 3 cedar
leaves and takes its trees back. Then ash goes back to an earlier model, and its scores are written again.

Who trains and who tests is decided by keys that are new in every run, so whether a model takes over at a sound site may
go either way; what is checked there is that the registry does what the evidence says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from sqlalchemy import URL, create_engine, text

from spinney.connectors.mlflow import CANDIDATE, CHAMPION, PREVIOUS, Registry, Version
from spinney.demo.federation import COORDINATOR, Village, found_village
from spinney.demo.postgres import postgres_server
from spinney.house.audit import Audit
from tests.federations import SITES, breast_study, breast_table, deal
from tests.nights import served
from tests.servers.migrated import registry_in
from tests.servers.seaweed import BUCKET, KEY, SECRET, Seaweed

pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("prefect_server"),
    pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning"),
]

STAYING = ("ash", "birch", "elm")
OPEN = 40
PATIENCE = {"answer_minutes": 10, "opening_minutes": 10}


@pytest.fixture(scope="module")
def database() -> Iterator[URL]:
    """The hospital's own, at ash."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory, database: URL) -> Iterator[Village]:
    """Ash has its patients in PostgreSQL, the others in files; letters go through a bucket."""
    folder = tmp_path_factory.mktemp("nights")
    sites = deal(folder / "tables")
    write_patients(database, pd.read_csv(folder / "tables" / "ash.csv"), "replace")
    address = database.render_as_string()
    sites["ash"] = {
        "source": {"kind": "sql", "url": address, "table": "SELECT * FROM visits"},
        "scores": {"table": {"url": address}},
    }
    (folder / "bucket").mkdir()
    with Seaweed(folder / "bucket") as store, pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXCHANGE_KEY", KEY)
        patch.setenv("EXCHANGE_SECRET", SECRET)
        exchange = {
            "url": f"s3://{BUCKET}",
            "options": {"endpoint_url": store.options()["endpoint_url"]},
            "secrets": {"key": "EXCHANGE_KEY", "secret": "EXCHANGE_SECRET"},
        }
        made = found_village(folder / "village", breast_study(trees=10, schedule=PATIENCE), sites, exchange)
        for name in SITES:
            registry_in(made.home(name))  # a database that is ready, or four houses migrate theirs at once
        yield made


def write_patients(database: URL, patients: pd.DataFrame, how: Any) -> None:
    engine = create_engine(database)
    times = pd.to_datetime(patients["index_time"], utc=True)
    patients.assign(index_time=times).to_sql("visits", engine, index=False, if_exists=how)
    engine.dispose()


def night(village: Village, sites: Sequence[str] = SITES) -> dict[str, dict[str, Any]]:
    """The flows of the coordinator and of some sites, all at once."""
    from spinney.flows.coordinator_round import CoordinatorRoundInput, coordinator_round
    from spinney.flows.site_round import SiteRoundInput, site_round

    with served(village), ThreadPoolExecutor(len(sites) + 1) as pool:
        running = {name: pool.submit(copy_context().run, site_round, SiteRoundInput(site=name)) for name in sites}
        running[COORDINATOR] = pool.submit(copy_context().run, coordinator_round, CoordinatorRoundInput())
        return {name: future.result() for name, future in running.items()}


def spinney(*words: object) -> None:
    from spinney.flows.cli import main

    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output


def takes_over(registry: Registry, number: int) -> bool:
    """What the evidence of a version says about the champion of its night."""
    evidence = registry.evidence(registry.version("breast", number))
    succession = evidence["succession"]
    return evidence["choice"]["question"] is None and (succession is None or succession["replaces"])


def check_who_is_champion(registry: Registry, number: int, before: int) -> None:
    """Tonight's version if its evidence says so, else the one before; the other one is still at hand."""
    champion = registry.version("breast", CHAMPION)
    if takes_over(registry, number):
        assert (champion.number, registry.version("breast", PREVIOUS).number) == (number, before)
    else:
        assert (champion.number, registry.version("breast", CANDIDATE).number) == (before, number)


def spoil(village: Village, name: str) -> None:
    """Somebody has mixed up yes and no."""
    path = village.folder.parent / "tables" / f"{name}.csv"
    table = pd.read_csv(path)
    table.assign(malignant=1 - table["malignant"]).to_csv(path, index=False)


def holding(registry: Registry, site: str) -> list[Version]:
    """Versions with trees of a site, by the arrays themselves."""
    return [one for one in registry.versions("breast") if site in registry.model(one).owners_]


def kept_files(village: Village, name: str) -> set[str]:
    return {path.name for path in (village.home(name) / "registry" / "artifacts").iterdir()}


def words_in_audit(village: Village, name: str) -> list[str]:
    return [line.entry.words for line in Audit(village.home(name) / "audit.jsonl").lines()]


def scored(database: URL) -> list[tuple[str, int]]:
    engine = create_engine(database)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT patient, version FROM spinney_scores ORDER BY patient")).all()
    engine.dispose()
    return [(patient, version) for patient, version in rows]


def test_three_nights(village: Village, database: URL) -> None:
    registries = {name: registry_in(village.home(name)) for name in SITES}
    first_night_registers(village, registries)
    second_night_spares_the_champion_of_the_spoilt_site(village, registries)
    third_night_goes_on_without_the_site_that_left(village, registries)
    going_back_is_one_command_and_scores_are_written_once(village, registries["ash"], database)


def first_night_registers(village: Village, registries: dict[str, Registry]) -> None:
    results = night(village)
    assert results[COORDINATOR]["absent"] == {}
    for name, registry in registries.items():
        (version,) = registry.versions("breast")
        assert (version.number, version.aliases) == (1, (CHAMPION,))
        assert version.model_digest == results[name]["choice"]["model"]


def second_night_spares_the_champion_of_the_spoilt_site(village: Village, registries: dict[str, Registry]) -> None:
    before = registries["birch"].version("breast", CHAMPION).model_digest
    spoil(village, "birch")
    results = night(village)
    for name, registry in registries.items():
        assert results[name]["version"] == 2
        check_who_is_champion(registry, 2, before=1)
    assert not takes_over(registries["birch"], 2)
    champion = registries["birch"].version("breast", CHAMPION)
    assert (champion.number, champion.model_digest) == (1, before)


def third_night_goes_on_without_the_site_that_left(village: Village, registries: dict[str, Registry]) -> None:
    spoil(village, "birch")  # twice is as it was
    with_cedar = {name: holding(registries[name], "cedar") for name in STAYING}
    assert any(with_cedar.values())
    own = registries["cedar"].versions("breast")
    spinney("model", "withdraw", "cedar", "--yes", "--by", "a test", "--site", village.site_file("cedar"))
    spinney("coordinator", "dismiss", "cedar", "--yes", "--by", "a test", "--coordinator", village.coordinator_file)
    results = night(village, STAYING)
    assert (results[COORDINATOR]["round"], results[COORDINATOR]["absent"]) == (3, {})
    for name in STAYING:
        registry = registries[name]
        assert holding(registry, "cedar") == []
        left = {one.run for one in registry.versions("breast")}
        assert left.isdisjoint(one.run for one in with_cedar[name])
        assert kept_files(village, name) == left
        assert "Received from cedar: it takes back its trees of rounds up to 2." in words_in_audit(village, name)
        number = results[name]["version"]
        tonight = registry.evidence(registry.version("breast", number))
        check_who_is_champion(registry, number, before=int(tonight["succession"]["champion"]))
    assert registries["cedar"].versions("breast") == own


def going_back_is_one_command_and_scores_are_written_once(village: Village, registry: Registry, database: URL) -> None:
    newest = registry.versions("breast")[0]
    registry.promote("breast", newest.number)  # a person may, whatever the night has decided
    before = registry.version("breast", PREVIOUS)
    spinney("model", "rollback", "--by", "a test", "--site", village.site_file("ash"))
    assert registry.version("breast", CHAMPION).number == before.number
    assert registry.version("breast", PREVIOUS).number == newest.number

    patients = new_patients(database)
    assert (score(village), scored(database)) == (OPEN, [(one, before.number) for one in patients])
    assert (score(village), scored(database)) == (0, [(one, before.number) for one in patients])
    spinney("model", "rollback", "--by", "a test", "--site", village.site_file("ash"))
    score(village)
    assert scored(database) == [(one, newest.number) for one in patients]


def new_patients(database: URL) -> list[str]:
    """People whose outcome nobody knows yet come to ash."""
    some = breast_table().head(OPEN).drop(columns="malignant")
    names = [f"new{number:03d}" for number in range(OPEN)]
    times = pd.Timestamp("2026-02-01", tz="UTC") + pd.to_timedelta(range(OPEN), unit="h")
    write_patients(database, some.assign(patient=names, index_time=times), "append")
    return names


def score(village: Village) -> int:
    """A run of site-score; how many of its scores are new."""
    from spinney.flows.site_score import SiteScoreInput, site_score

    with served(village):
        told = site_score(SiteScoreInput(site="ash"))
    assert (told["scored"], told["in the table"]) == (OPEN, OPEN)
    return int(told["new"])
