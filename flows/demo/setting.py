"""The world in a folder: tonight's data, the servers behind them, and houses that have joined each other.

<folder>/<hospital>/site.yaml, home/, and the data    coordinator/coordinator.yaml, home/    exchange/    prefect/
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney.connectors.mlflow.store import ensure_database
from spinney.demo.federation import COORDINATOR, Village, found_village
from spinney.demo.fhir_server import DemoFhirServer
from spinney.demo.history import MadeUpHistory, make_history
from spinney.demo.hospitals import make_hospitals
from spinney.demo.postgres import postgres_server
from spinney.demo.site import site_settings, world_study, write_data, write_yaml
from spinney.errors import SpinneyError
from spinney.storage.files import write_whole
from spinney.storage.private import private_folder

# which form the data of a hospital have; the order is that of the hospitals
SHARES = (0.01, 0.095, 0.8, 0.095)  # of the patients: about 200 stays, 1,200, 13,000 and 1,400
FORMS = ("SQLite", "FHIR over HTTP", "PostgreSQL", "FHIR bulk NDJSON")
MARK, LOCK, LOG = "world.json", ".lock", "up.log"
Tell = Callable[[str], None]


class NotOurs(SpinneyError):
    """The folder holds something else."""


@dataclass(frozen=True)
class World:
    """What makes a world: the same numbers, the same patients."""

    folder: Path
    patients: int = 6350
    seed: int = 2

    @property
    def village(self) -> Village:
        return Village(self.folder, world_study().name, tuple(one.name for one in self.hospitals))

    @property
    def hospitals(self) -> list[Any]:
        return make_hospitals(len(FORMS), self.patients, self.seed, SHARES)

    @property
    def houses(self) -> tuple[str, ...]:
        return (*self.village.sites, COORDINATOR)

    def form(self, site: str) -> str:
        return FORMS[self.village.sites.index(site)]

    def result(self, house: str, night: int) -> dict[str, Any] | None:
        """What a house wrote down about a round."""
        path = self.village.home(house) / "nights" / self.village.study / f"{night}.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def is_done(self, night: int) -> bool:
        """Whether every house has ended this night's round."""
        return all(self.result(house, night) for house in self.houses)


@contextmanager
def tonight(world: World, night: int, tell: Tell) -> Iterator[None]:
    """The houses with the data of this night, and the servers that hold them, for as long as they are needed."""
    tell(f"writing what the hospitals know by night {night}")
    with ExitStack() as servers:
        for hospital, form in zip(world.hospitals, FORMS, strict=True):
            history = make_history(hospital, world.seed, night)
            source = _data(servers, history, form, world.folder / hospital.name)
            more = {"exchange": {"url": "../exchange"}, "validation_sample": 200}
            file = world.village.site_file(hospital.name)
            write_yaml(file, site_settings(history, source, **more), f"A made-up hospital; its data: {form}.")
        yield


def found_world(world: World, tell: Tell) -> None:
    """Make the folder and let the houses join each other, unless they have."""
    mark, state = world.folder / MARK, {"patients": world.patients, "seed": world.seed}
    if mark.exists():
        known = json.loads(mark.read_bytes())
        if known == {**state, "founded": True}:
            return
        if known.get("founded"):
            raise NotOurs(f"{world.folder} is a world of {known['patients']} patients; use another folder")
        _empty(world.folder)  # somebody was interrupted while making it
    tell("making four hospitals and a coordinator, and letting them join each other")
    private_folder(world.folder)
    write_whole(mark, json.dumps(state).encode())
    placeholder = {"source": {"kind": "files", "path": "fhir"}}
    found_village(world.folder, world_study(), {one.name: placeholder for one in world.hospitals})
    _prepare_homes(world)
    write_whole(mark, json.dumps({**state, "founded": True}).encode())


def refuse_strangers(folder: Path) -> None:
    """A folder with something else in it is left alone."""
    if (
        folder.exists()
        and not (folder / MARK).exists()
        and any(one.name not in (LOCK, LOG) for one in folder.iterdir())
    ):
        raise NotOurs(f"{folder} holds something else; delete it or use another folder (--out)")


def _empty(folder: Path) -> None:
    for one in folder.iterdir():
        if one.is_dir():
            shutil.rmtree(one)
        elif one.name not in (LOCK, LOG):
            one.unlink()


def _prepare_homes(world: World) -> None:
    """A registry each, and a key that decides who is in which part: the demo's figures are the same for everybody."""
    for site in world.village.sites:
        home = world.village.home(site)
        ensure_database(private_folder(home / "registry") / "mlflow.db")
        key = hashlib.sha256(f"{world.seed} {site}".encode()).digest()
        write_whole(private_folder(home / "vault") / "key", key)


def _data(servers: ExitStack, history: MadeUpHistory, form: str, folder: Path) -> dict[str, Any]:
    """Write a hospital's data, start the server in front of them, and say what site.yaml has as `source`."""
    if form == "SQLite":
        return write_data(history, "sql", folder)
    if form == "PostgreSQL":
        return write_data(history, "sql", folder, servers.enter_context(postgres_server()).render_as_string())
    source = write_data(history, "fhir", folder)
    if form == "FHIR over HTTP":
        server = servers.enter_context(DemoFhirServer(folder / "fhir"))
        return {"kind": "fhir-rest", "base_url": server.base_url}
    return source
