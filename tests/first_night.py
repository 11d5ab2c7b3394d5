"""A night that others come after, with what a disk saw of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spinney.cohort.check_result import check_cohort
from spinney.cohort.pull_report import PullReport
from spinney.configuration.site import read_site
from spinney.demo.federation import Village
from spinney.house.approvals import Approvals
from tests.federations import breast_village, registered
from tests.forgetful import Disk, forgetful
from tests.nights import night
from tests.servers.migrated import registry_in


@dataclass(frozen=True)
class FirstNight:
    """A night whose model is in use at ash and whose cohort has passed its checks there, and what ash's disk saw."""

    village: Village
    disk: Disk


def first_night_in(folder: Path) -> FirstNight:
    """Of three sites."""
    village = breast_village(folder, ("ash", "birch", "cedar"), trees=3)
    site = read_site(village.site_file("ash"))
    registry = registry_in(site.home)
    with forgetful(site.home) as disk:
        _, parts = night(village)
        registered(village, "ash", parts["ash"], admission="not needed")
        registry.promote("breast", 1)
        check_cohort(site.home, Approvals(site.home, "breast").study, parts["ash"].cohort, PullReport())
    return FirstNight(village, disk)
