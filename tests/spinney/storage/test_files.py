"""A house remembers through kills, and forgets on purpose."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from spinney.storage.files import DiskFull, RoundState, ScoredTrees, StateDamaged, room_in


@pytest.mark.parametrize("value", [b"\x00\xff", "words", np.arange(6).reshape(2, 3), np.array([True, False])])
def test_what_was_remembered_is_there_after_a_restart(tmp_path: Path, value: object) -> None:
    RoundState(tmp_path)["thing"] = value
    np.testing.assert_array_equal(RoundState(tmp_path)["thing"], value)


def test_a_name_holds_one_value_even_when_its_kind_changes(tmp_path: Path) -> None:
    memory = RoundState(tmp_path)
    memory["thing"] = b"bytes"
    memory["thing"] = "text"
    assert RoundState(tmp_path)["thing"] == "text"
    assert list(memory) == ["thing"]


def test_objects_are_never_pickled(tmp_path: Path) -> None:
    memory = RoundState(tmp_path)
    with pytest.raises(TypeError):
        memory["thing"] = {"a": 1}
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        memory["thing"] = np.array([object()])
    np.save(tmp_path / "planted.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StateDamaged):
        memory["planted"]


@pytest.mark.parametrize("key", ["../key", "a/b", "", ".hidden"])
def test_names_stay_in_the_folder(tmp_path: Path, key: str) -> None:
    memory = RoundState(tmp_path)
    with pytest.raises(ValueError, match="can't name"):
        memory[key] = b""
    assert key not in memory


def test_only_the_house_can_read_it(tmp_path: Path) -> None:
    memory = RoundState(tmp_path / "round")
    memory["key"] = b"secret"
    assert (tmp_path / "round").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "round" / "key.bytes").stat().st_mode & 0o777 == 0o600


def test_forgetting_destroys_everything(tmp_path: Path) -> None:
    memory = RoundState(tmp_path / "round")
    memory["key"] = b"secret"
    memory.forget()
    assert not (tmp_path / "round").exists()


def test_a_half_line_of_a_killed_writer_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "scored"
    ScoredTrees(path).update({"a": 1, "b": 1})
    with path.open("a") as file:
        file.write('["c", ')
    history = ScoredTrees(path)
    history["d"] = 2
    assert dict(ScoredTrees(path)) == {"a": 1, "b": 1, "d": 2}


def test_what_was_scored_can_not_be_unlearned(tmp_path: Path) -> None:
    history = ScoredTrees(tmp_path / "scored")
    history["a"] = 1
    with pytest.raises(TypeError):
        del history["a"]


def test_what_was_remembered_or_scored_has_a_name_after_a_power_cut_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without a name is gone: its folder is synced after it has one."""
    there: list[tuple[Path, list[str]]] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        what = Path(os.readlink(f"/proc/self/fd/{handle}"))
        there.extend([(what, [one.name for one in what.iterdir()])] if what.is_dir() else [])
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    RoundState(tmp_path / "round")["released"] = "yes"
    ScoredTrees(tmp_path / "scored" / "breast")["a1"] = 7
    assert there == [(tmp_path / "round", ["released.text"]), (tmp_path / "scored", ["breast"])]


def test_many_files_of_which_one_found_no_room_are_a_full_disk_too(tmp_path: Path) -> None:
    full, gone = (shutil.Error([("a", "b", str(OSError(code, os.strerror(code))))]) for code in (28, 2))
    with pytest.raises(DiskFull, match="make room and start again"), room_in(tmp_path):
        raise full
    with pytest.raises(shutil.Error), room_in(tmp_path):
        raise gone
