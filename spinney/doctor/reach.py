"""What a house has to reach: Prefect, the exchange, its data, its registry. Short patience, one attempt."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from spinney.configuration.house import CoordinatorSettings, ExchangeAccess, RegistrySettings
from spinney.configuration.site import SiteSettings
from spinney.connectors import dask_cluster
from spinney.connectors.exchange import Exchange, ExchangeDenied
from spinney.doctor.doors import OF_MLFLOW, OF_PREFECT, check_door
from spinney.doctor.findings import Finding, check_clock, check_disk, check_home, check_keys, check_permits, finding_of
from spinney.errors import SpinneyError
from spinney.house.approvals import approved_studies

PATIENCE = 10.0  # seconds
NO_STUDY = "spinney-doctor"


class Unreachable(SpinneyError):
    """Something that a house needs does not answer; the message says what to look at."""


class Clocks:
    """How far this machine's clock is ahead of the clocks that were met, the exchange's before all others."""

    def __init__(self) -> None:
        self._skews: dict[str, timedelta] = {}

    def tell(self, whose: str, time: datetime | None) -> None:
        if time is not None:
            self._skews[whose] = datetime.now(UTC) - time

    def finding(self) -> Finding:
        for whose, skew in sorted(self._skews.items(), key=lambda one: one[0] != "the exchange"):
            return check_clock(skew, whose)
        return check_clock(None, "")


def examine(house: SiteSettings | CoordinatorSettings, prefect_url: str, least_gib: float) -> Iterator[Finding]:
    """Everything about one house, the clock last because the others tell the time."""
    clocks = Clocks()
    yield check_home(house.home)
    yield check_keys(house.home)
    yield check_permits(house.home, datetime.now(UTC))
    yield check_disk(house.home, least_gib)
    yield check_prefect(prefect_url, clocks)
    if prefect_url:
        yield check_door(prefect_url, OF_PREFECT)
    yield from check_exchange(house, clocks)
    if isinstance(house, SiteSettings):
        yield finding_of("source", lambda: house.source.reach(house.surroundings(NO_STUDY)))
        if (cluster := house.dask) is not None:
            yield finding_of("dask", lambda: dask_cluster.reach(cluster))
        if house.scores is not None and (fhir := house.scores.fhir) is not None:
            yield finding_of("scores", fhir.answering)
        yield finding_of("registry", lambda: _reach_registry(house.home, house.registry, clocks))
        if house.registry.tracking.startswith(("http://", "https://")):
            yield check_door(house.registry.tracking, OF_MLFLOW)
    yield clocks.finding()


def check_prefect(url: str, clocks: Clocks) -> Finding:
    """The server that starts this house's nights."""
    if not url:
        words = "PREFECT_API_URL is not set, so nothing starts at night; set it to http://HOST:4200/api"
        return Finding("prefect", "warning", words)
    advice = "check PREFECT_API_URL, and that the server runs: prefect server start"
    return finding_of("prefect", lambda: _get(url, "Prefect", advice, clocks))


def _get(url: str, whose: str, advice: str, clocks: Clocks) -> str:
    """Both servers say under this path that they are well."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/health", timeout=PATIENCE)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unreachable(f"{url} does not answer ({type(error).__name__}); {advice}") from None
    if answer.is_error:
        raise Unreachable(f"{url} answers with HTTP {answer.status_code}; {advice}")
    clocks.tell(whose, _http_time(answer.headers.get("Date")))
    return f"{url} answers"


def _http_time(header: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(header) if header else None
    except ValueError:
        return None


# ---------------------------------------------------------------------------------------------------------------
# The exchange


def check_exchange(house: SiteSettings | CoordinatorSettings, clocks: Clocks) -> Iterator[Finding]:
    """Reachable, writable under our name, and under nobody else's."""
    if house.exchange is None:
        yield Finding("exchange", "warning", "site.yaml has no `exchange`, so there are no rounds; write where it is")
        return
    study = next(iter(approved_studies(house.home)), NO_STUDY)
    try:
        with house.exchange.open() as exchange:
            clocks.tell("the exchange", exchange.try_out(study, house.name))
            yield Finding("exchange", "ok", f"{_place(house.exchange)}: writes, reads and deletes as {house.name}")
            yield _check_others(exchange, study, house.name)
    except SpinneyError as error:
        yield Finding("exchange", "wrong", str(error))


def _check_others(exchange: Exchange, study: str, name: str) -> Finding:
    others = [other for other in exchange.senders(study) if other != name]
    if not others:
        return Finding("rights", "ok", f"nobody else has written for {study} yet, so other names could not be tried")
    try:
        exchange.try_out(study, others[0])
    except ExchangeDenied:
        return Finding("rights", "ok", f"can't write as {others[0]}")
    words = f"this house can write as {others[0]}, too; let the exchange's rights allow each house its own name only"
    return Finding("rights", "warning", words)


def _place(access: ExchangeAccess) -> str:
    return access.url.rpartition("@")[2] if "://" in access.url else str(Path(access.url).resolve())


# ---------------------------------------------------------------------------------------------------------------
# Models


def _reach_registry(home: Path, settings: RegistrySettings, clocks: Clocks) -> str:
    address = settings.tracking
    if address.startswith(("http://", "https://")):
        advice = "check registry.tracking in site.yaml, and that MLflow runs"
        return _get(address, "MLflow", advice, clocks)
    if address:
        return _reach_database(address)
    database = home / "registry" / "mlflow.db"
    if not database.exists():
        return f"{database} is made by the first night"
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error:
        raise Unreachable(f"{database} is no MLflow database; restore it from its backup") from None
    return str(database)


def _reach_database(address: str) -> str:
    try:
        engine = create_engine(address)
        with engine.connect() as connection:
            answering = connection.dialect.name
        engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        raise Unreachable(
            f"registry.tracking can't be opened ({type(error).__name__}); check it in site.yaml"
        ) from None
    return f"{answering} answers"
