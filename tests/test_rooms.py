"""What sees patients cannot reach what sends: the contracts hold, they cover every room, and each of them bites."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENTS = "Code that sees patients cannot reach code that sends"
SENDERS = "Code that sends cannot open the vault or a source"
NEITHER = {  # rooms that neither hold rows nor send, and what they are instead
    "spinney.base": "settings",
    "spinney.compiled": "compiles functions",
    "spinney.configuration": "reads the files of a house and puts it together",
    "spinney.connectors.fair4health": "reads a study of others",
    "spinney.connectors.terminology": "reads codes that others publish",
    "spinney.demo": "makes hospitals up",
    "spinney.deployments": "data",
    "spinney.doctor": "tries everything once",
    "spinney.errors": "words",
    "spinney.flows": "puts patients and house together",
    "spinney.library": "hands the rooms to notebooks, where there is no house",
    "spinney.plugins": "finds what there is",
    "spinney.reports": "draws aggregates",
    "spinney.storage": "files and locks",
    "spinney.study": "what all sites sign",
    "spinney.tasks": "puts patients and house together",
    "spinney.testing": "contracts for tests",
}


@cache
def contract(name: str) -> dict[str, list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return next(one for one in settings["tool"]["importlinter"]["contracts"] if one["name"] == name)


def file_of(module: str, root: Path) -> Path:
    """Of a room, some module that holds code."""
    path = root / module.replace(".", "/")
    if not path.is_dir():
        return path.with_suffix(".py")
    return max(path.rglob("*.py"), key=lambda file: (file.stat().st_size, file.name))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product as it is, with the rooms in the place of their links."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "spinney", folder / "spinney", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def linted(folder: Path) -> str:
    """What lint-imports says; empty if every contract is kept."""
    lint = Path(sys.executable).with_name("lint-imports")
    there = {**os.environ, "PYTHONPATH": str(folder)}
    said = subprocess.run([lint, "--no-cache"], cwd=folder, env=there, capture_output=True, text=True)
    return said.stdout if said.returncode else ""


def with_import(folder: Path, module: str, line: str) -> str:
    file = file_of(module, folder)
    before = file.read_text(encoding="utf-8")
    file.write_text(f"{before}\n{line}\n", encoding="utf-8")
    try:
        return linted(folder)
    finally:
        file.write_text(before, encoding="utf-8")


def test_all_contracts_are_kept(copy: Path) -> None:
    assert linted(copy) == ""


@pytest.mark.parametrize("room", contract(PATIENTS)["source_modules"])
def test_no_room_that_holds_rows_may_import_the_exchange(copy: Path, room: str) -> None:
    assert f"{PATIENTS} BROKEN" in with_import(copy, room, "from spinney.connectors.exchange import Exchange")


@pytest.mark.parametrize("sender", contract(PATIENTS)["forbidden_modules"])
def test_no_room_that_sends_may_be_imported_beside_the_vault(copy: Path, sender: str) -> None:
    line = f"import {sender}"
    assert f"{PATIENTS} BROKEN" in with_import(copy, "spinney.cohort.vault", line)


def test_a_detour_through_a_harmless_room_is_found(copy: Path) -> None:
    said = with_import(copy, "spinney.storage.private", "import spinney.house.channel")
    assert f"{PATIENTS} BROKEN" in said
    assert "spinney.storage.private -> spinney.house.channel" in said


@pytest.mark.parametrize("room", contract(SENDERS)["source_modules"])
def test_no_room_that_sends_may_open_the_vault(copy: Path, room: str) -> None:
    assert f"{SENDERS} BROKEN" in with_import(copy, room, "from spinney.cohort.vault import Vault")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("spinney.cohort.vault", "if TYPE_CHECKING:\n    from spinney.cohort.pull import pull_source"),
        ("spinney.connectors.fhir.limits", "from spinney.connectors.fhir import http"),
        ("spinney.flows.served", "import spinney.flows.site_check"),
    ],
)
def test_a_knot_is_found_also_if_it_is_for_types_only(copy: Path, module: str, line: str) -> None:
    assert "No room's modules go round in circles BROKEN" in with_import(copy, module, line)


def test_a_new_room_has_to_find_its_place(copy: Path) -> None:
    (copy / "spinney/attic").mkdir()
    (copy / "spinney/attic/__init__.py").touch()
    try:
        assert "attic" in linted(copy)
    finally:
        shutil.rmtree(copy / "spinney/attic")


def test_every_room_holds_rows_or_sends_or_is_known_to_do_neither() -> None:
    rooms = {f"spinney.{path.stem}" for path in (ROOT / "spinney").iterdir() if not path.name.startswith("_")}
    adapters = {f"spinney.connectors.{path.stem}" for path in (ROOT / "connectors").iterdir() if path.stem[0] != "_"}
    named = {*contract(PATIENTS)["source_modules"], *contract(PATIENTS)["forbidden_modules"], *NEITHER}
    assert (rooms - {"spinney.connectors"}) | adapters == named | ({"spinney.testing"} & named)
