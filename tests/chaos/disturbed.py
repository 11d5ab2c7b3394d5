"""A village whose houses are killed: copies of one village, so that every night must give the same models."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spinney.configuration.house import read_coordinator
from spinney.configuration.site import read_site
from spinney.connectors.mlflow import CANDIDATE, CHAMPION
from spinney.demo.federation import Village
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.site_night import SiteNights
from tests.chaos.forked import end_of, start_house
from tests.chaos.house import WRITE_DOWN
from tests.federations import breast_study, breast_village, simulated
from tests.nights import others
from tests.servers.migrated import registry_in

SITES = ("ash", "birch", "cedar")
PATIENCE = {"answer_minutes": 3, "opening_minutes": 3}
LONGEST = 240.0
KILLED = -9


class Disturbed:
    """Runs one night per call, on a fresh copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        study = breast_study(trees=4, schedule=PATIENCE)
        self._village = breast_village(folder, SITES, trees=4, schedule=PATIENCE)
        for name in SITES:
            _ = read_site(self._village.site_file(name)).vault.key  # who trains and who tests hangs on it
            registry_in(self._village.home(name))
        reference = simulated(self._copy("reference"), study)
        self.model = reference.model_digest
        self.takes_over = {name: outcome.takes_over for name, outcome in reference.outcomes.items()}
        self.chosen = {name: outcome.model.digest for name, outcome in reference.outcomes.items()}

    def places(self, house: str) -> list[str]:
        """Every place that a house passes in an undisturbed night, in order."""
        written = self._folder / f"{house}.places"
        self.night(house, {WRITE_DOWN: str(written)}, expected=0)
        return written.read_text().splitlines()

    def night(self, house: str, environment: Mapping[str, str], expected: int = KILLED) -> Village:
        """One house is a process, and is started again if it dies; all others are threads. The models must be right."""
        village = self._copy(f"night-{len(list(self._folder.iterdir()))}")
        with others(village, house) as running:
            ended = self._run(village, house, environment)
            assert ended == expected, f"{house} ended with {ended}"
            if ended == KILLED:
                again = self._run(village, house, {})
                assert again == 0, f"{house} ended with {again} when it was started again"
            for one in running.values():
                one.result(LONGEST)
        self._check(village)
        if house in village.sites:
            self._check_registry(village, house)
        return village

    def _check(self, village: Village) -> None:
        result = CoordinatorNights(read_coordinator(village.coordinator_file)).result()
        assert result is not None
        assert (result["round"], result["model"], result["void"], result["absent"]) == (1, self.model, "", {})
        for name in village.sites:
            kept = SiteNights(read_site(village.site_file(name))).result()
            assert kept is not None
            assert (kept["round"], kept["model"], kept["choice"]["model"]) == (1, self.model, self.chosen[name])
            assert not list(village.home(name).glob("keys/rounds/**/*.key")), "the round's key is destroyed"
            assert not (village.home(name) / "rounds" / village.study / "1").exists(), "and so is its copy"

    def _check_registry(self, village: Village, name: str) -> None:
        (version,) = registry_in(village.home(name)).versions(village.study)
        found = (version.round, version.model_digest, version.aliases)
        alias = CHAMPION if self.takes_over[name] else CANDIDATE
        assert found == (1, self.chosen[name], (alias,)), f"the registry has {found}"

    def _run(self, village: Village, house: str, environment: Mapping[str, str]) -> int:
        return end_of(start_house(village, house, environment), LONGEST)

    def _copy(self, name: str) -> Village:
        folder = self._folder / name
        shutil.copytree(self._village.folder, folder)
        return replace(self._village, folder=folder)
