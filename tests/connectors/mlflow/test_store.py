"""MLflow at arm's length: what it complains about is one line, and its database is made once."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import Registry, RegistryFailed, store
from tests.servers.migrated import registry_in


def test_a_server_that_is_away_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    away = Registry(tmp_path, RegistrySettings(tracking="http://127.0.0.1:9"))
    with pytest.raises(RegistryFailed, match=r"^MLflow refuses: .*see `registry` in site.yaml, then try again$"):
        away.champion("wood")


def test_a_database_of_another_mlflow_is_one_clear_line(tmp_path):
    registry = registry_in(tmp_path)
    with sqlite3.connect(tmp_path / "registry" / "mlflow.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    with pytest.raises(RegistryFailed, match=r"MLflow refuses: .*out-of-date database schema"):
        registry.champion("wood")


def test_an_empty_database_is_migrated_once_per_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_migrated", lambda: b"made")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "installation"))
    fresh = store._empty_database.__wrapped__
    assert fresh() == b"made"
    monkeypatch.setattr(store, "_migrated", lambda: pytest.fail("migrated again"))
    assert fresh() == b"made"


def test_where_the_installation_can_not_be_written_every_process_migrates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder can be made here")
    monkeypatch.setattr(store, "_migrated", lambda: b"made")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "file"))
    assert store._empty_database.__wrapped__() == b"made"
