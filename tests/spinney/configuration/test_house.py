"""What a house says about itself: paths are relative to its file, and secrets are read from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.house import (
    ExchangeAccess,
    RegistrySettings,
    SecretMissing,
    anchored_exchange,
    read_coordinator,
    secrets_for,
)
from spinney.errors import StudyInvalid


def test_secrets_are_read_in_the_order_in_which_they_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WOOD_KEY", "k")
    monkeypatch.setenv("WOOD_SECRET", "s")
    assert secrets_for("the exchange", "WOOD_SECRET", "WOOD_KEY") == ["s", "k"]


def test_all_secrets_that_are_missing_are_named_at_once_and_none_that_is_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WOOD_KEY", "k")
    for name in ("WOOD_A", "WOOD_B"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SecretMissing, match=r"^the exchange needs WOOD_A, WOOD_B in the environment"):
        secrets_for("the exchange", "WOOD_B", "WOOD_KEY", "WOOD_A")


def test_an_exchange_is_opened_only_with_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("WOOD_KEY", raising=False)
    access = ExchangeAccess(url=str(tmp_path), secrets={"key": "WOOD_KEY"})
    with pytest.raises(SecretMissing, match="WOOD_KEY"):
        access.open()


@pytest.mark.parametrize(
    ("url", "anchored"),
    [("../exchange", "/houses/oak/../exchange"), ("/mnt/x", "/mnt/x"), ("s3://bucket/x", "s3://bucket/x")],
)
def test_a_folder_is_meant_relative_to_the_file_and_an_address_is_not(url: str, anchored: str):
    assert anchored_exchange(ExchangeAccess(url=url), Path("/houses/oak")).url == anchored


def test_a_coordinator_s_home_is_beside_its_file(tmp_path: Path):
    (tmp_path / "coordinator.yaml").write_text("name: oak\nexchange: {url: x}\n")
    settings = read_coordinator(tmp_path / "coordinator.yaml")
    assert (settings.home, settings.exchange.url) == (tmp_path / "home", str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: con\nexchange: {url: x}\n", "1 name: .*no device of Windows"),
        ("name: oak\n", "exchange: is missing"),
        ("name: oak\nexchange: {url: x}\nalerts: {lost_seconds: 5}\n", r"3 alerts\.lost_seconds: must be at least 90"),
        ("name: oak\nexchange: {url: x}\nprefect: {schedule: never}\n", r"3 prefect\.schedule: must be"),
    ],
)
def test_a_mistake_has_its_line(tmp_path: Path, text: str, says: str):
    (tmp_path / "coordinator.yaml").write_text(text)
    with pytest.raises(StudyInvalid, match=says):
        read_coordinator(tmp_path / "coordinator.yaml")


def test_a_prefix_of_models_is_one_that_mlflow_takes():
    with pytest.raises(ValueError, match="prefix"):
        RegistrySettings(prefix="ash/")
