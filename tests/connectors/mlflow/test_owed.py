"""What is put by until it is registered: the same model, whole or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spinney.connectors.mlflow import RegistryFailed, lineage_of
from spinney.connectors.mlflow.owed import OwedModel, owed_rounds


def owed_of(wood):
    model = wood.outcomes["elm"].model
    return OwedModel(model, lineage_of(wood.study, "elm", model, 3), {"why": "noise"}, {"auroc": 0.75}, 0.001, None)


def test_what_is_read_is_what_was_put_by(wood, tmp_path):
    owed, folder = owed_of(wood), tmp_path / "owed"
    for number in (10, 9):
        owed.put_by(folder / str(number))
    assert owed_rounds(folder) == [9, 10]
    found = OwedModel.read(folder / "9")
    assert found.model.digest == owed.model.digest
    assert replace(found, model=owed.model) == owed


def test_half_of_it_is_none_and_damage_is_named(wood, tmp_path):
    folder = tmp_path / "owed"
    (folder / "7.partial").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    assert owed_rounds(folder) == []
    owed_of(wood).put_by(folder / "7")
    next(folder.rglob("forest.spny")).write_bytes(b"")
    with pytest.raises(RegistryFailed, match=f"{folder / '7'} is damaged"):
        OwedModel.read(folder / "7")
