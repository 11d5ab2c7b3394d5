"""A coordinator and some sites on one machine that know each other: for the demo, for tests and for benchmarks.

They are ordinary houses with settings files, keys and papers of their own; only the joining was done for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from spinney.configuration.study_file import write_study
from spinney.house.approvals import Approvals
from spinney.house.keys import KeyRing
from spinney.house.roster import Roster, admit, found_roster, invite, join
from spinney.storage.private import private_folder
from spinney.study.study import Study

COORDINATOR = "coordinator"
Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Village:
    """Where everything is."""

    folder: Path
    study: str
    sites: tuple[str, ...]

    def home(self, name: str) -> Path:
        return self.folder / name / "home"

    def site_file(self, name: str) -> Path:
        return self.folder / name / "site.yaml"

    @property
    def coordinator_file(self) -> Path:
        return self.folder / COORDINATOR / "coordinator.yaml"


def found_village(folder: Path, study: Study, sites: Mapping[str, Plain], exchange: Plain | None = None) -> Village:
    """Houses that have joined each other. `sites`: name -> what its site.yaml says besides name, home and exchange."""
    private_folder(folder)
    if exchange is None:
        (folder / "exchange").mkdir(exist_ok=True)
        exchange = {"url": "../exchange"}
    village = Village(folder, study.name, tuple(sorted(sites)))
    study_file = folder / "study.yaml"
    write_study(study, study_file)
    for name, settings in sites.items():
        _write(village.site_file(name), {"name": name, "home": "home", "exchange": dict(exchange), **settings})
    _write(village.coordinator_file, {"name": COORDINATOR, "home": "home", "exchange": dict(exchange)})
    roster = _roster(village, study, str(exchange["url"]))
    for name in (COORDINATOR, *village.sites):
        approvals = Approvals(village.home(name), study.name)
        approvals.approve_study(study_file)
        approvals.approve_roster(roster)
        approvals.put_in_force(roster.version)
    return village


def _roster(village: Village, study: Study, url: str) -> Roster:
    host = KeyRing(private_folder(village.home(COORDINATOR))).create()
    roster = found_roster(study.name, COORDINATOR, host)
    for name in village.sites:
        invited = invite(roster, study.digest, name, url, host)
        Approvals(private_folder(village.home(name)), study.name).keep_invite(invited)
        roster = admit(roster, invited, join(invited, KeyRing(village.home(name)).create()), host)
    return roster


def _write(path: Path, settings: Plain) -> None:
    private_folder(path.parent)
    path.write_text(yaml.safe_dump(dict(settings), sort_keys=False), encoding="utf-8")
