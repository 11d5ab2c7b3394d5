"""Nights of houses without Prefect, for tests in which somebody else's night is the matter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spinney.cohort.encoded import write_encoded
from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.demo.federation import COORDINATOR, Village
from spinney.flows.served import serving
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.site_night import RoundResult, SiteNights, summary_of
from spinney.tasks.site import patients_of
from tests.made_up import pull_at


def site_night(village: Village, name: str) -> RoundResult:
    """A site pulls its cohort, or goes on with the one that it has begun with, and takes part until the end."""
    site = read_site(village.site_file(name))
    nights = SiteNights(site)
    with nights.alone():
        cohort = nights.pinned
        if cohort is None:
            pulled = pull_at(nights.study, site)
            cohort = write_encoded(site.vault, pulled.cohort, nights.study)
        part = nights.take_part(nights.await_opening(), cohort, patients_of(site, nights.study))
        nights.close(part.number, summary_of(part))
    return part


def coordinator_night(village: Village) -> dict[str, Any]:
    """The coordinator runs a round."""
    nights = CoordinatorNights(read_coordinator(village.coordinator_file))
    with nights.alone():
        result = nights.run(nights.number()).plain()
        nights.close(result["round"], result)
    return result


@contextmanager
def others(village: Village, *without: str) -> Iterator[dict[str, Future[Any]]]:
    """Every house but some, in threads; their results can be waited for."""
    with ThreadPoolExecutor(len(village.sites) + 1) as pool:
        running: dict[str, Future[Any]] = {}
        if COORDINATOR not in without:
            running[COORDINATOR] = pool.submit(coordinator_night, village)
        for name in village.sites:
            if name not in without:
                running[name] = pool.submit(site_night, village, name)
        yield running


@contextmanager
def served(village: Village) -> Iterator[None]:
    """As if this process served every house of the village."""
    with serving(sites=tuple(map(village.site_file, village.sites)), coordinators=(village.coordinator_file,)):
        yield


def leave_old(village: Village, sender: str) -> Path:
    """A message on the exchange that is older than any study keeps it."""
    path = village.folder / "exchange" / village.study / sender / "7" / "join.1"
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (0, 0))
    return path


def night(village: Village) -> tuple[dict[str, Any], dict[str, RoundResult]]:
    """A whole night: what came of it for the coordinator, and for every site."""
    with others(village) as running:
        ended = {name: one.result() for name, one in running.items()}
    return ended.pop(COORDINATOR), ended
