"""A registry whose home was moved: it finds its files, makes new ones here, and leaves the other home alone."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import Registry, RegistryFailed
from tests.connectors.mlflow.registered import register
from tests.servers.migrated import registry_in


def moved(before: Path, after: Path, copy: bool) -> Registry:
    (shutil.copytree if copy else shutil.move)(before / "registry", after / "registry")
    return Registry(after, RegistrySettings())


@pytest.mark.parametrize("copy", [False, True], ids=["moved", "copied"])
def test_a_registry_that_was_moved_has_its_models_and_makes_more(wood, tmp_path, copy):
    before, after = tmp_path / "before", tmp_path / "a new name"
    for folder in (before, after):
        folder.mkdir(mode=0o700)
    first = register(registry_in(before), wood)
    if copy:  # whatever is done to the copy, the home that it was made of keeps what it has
        kept = {path: path.read_bytes() for path in before.rglob("*") if path.is_file()}
    registry = moved(before, after, copy)
    assert registry.model(registry.version("wood", 1)).digest == first.model_digest
    second = register(registry, wood, 2)
    assert registry.model(second).digest == second.model_digest
    registry.promote("wood", 2)
    registry.withdraw("wood", "ash")
    numbers = {one.number for one in registry.versions("wood")}
    assert not {1, 2} & numbers
    if copy:
        assert {path: path.read_bytes() for path in before.rglob("*") if path.is_file()} == kept
    else:
        assert not (before / "registry").exists()


def test_no_address_in_the_database_is_of_the_home_before(wood, tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir(mode=0o700)
    register(registry_in(before), wood)
    moved(before, after, copy=False).versions("wood")
    with sqlite3.connect(after / "registry" / "mlflow.db") as reader:
        tables = [str(name) for (name,) in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [row for table in tables for row in reader.execute(f"SELECT * FROM {table}")]
    reader.close()
    words = [str(cell) for row in rows for cell in row]
    assert not [word for word in words if str(before) in word and "mlflow.log-model.history" not in word]
    assert any(word.startswith((after / "registry" / "artifacts").as_uri()) for word in words)


def test_a_database_that_is_none_is_named(tmp_path):
    registry = registry_in(tmp_path)
    (registry.folder / "mlflow.db").write_bytes(b"no database at all, and long enough to be looked at" * 50)
    with pytest.raises(RegistryFailed, match=r"mlflow\.db can't be used .*restore it from the house's backup"):
        Registry(tmp_path, RegistrySettings()).versions("wood")
