"""Private folders: made closed, refused when they are open, and never changed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from spinney.storage.private import OpenToOthers, locked, private_folder, read_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_and_what_is_missing_above_it_is_made_for_this_user_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    made = private_folder(tmp_path / "home" / "vault" / "cohorts")
    assert [mode(one) for one in (made, *made.parents[:2])] == [0o700] * 3


def test_the_mask_of_the_process_opens_nothing(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert mode(private_folder(tmp_path / "home")) == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize("open_mode", [0o755, 0o750, 0o701])
def test_a_folder_that_others_may_look_into_is_refused_with_the_command_and_left_as_it_is(
    tmp_path: Path, open_mode: int
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    folder.chmod(open_mode)
    with pytest.raises(OpenToOthers, match=f"mode {open_mode:04o}.; run: chmod 700 {folder}"):
        private_folder(folder)
    assert mode(folder) == open_mode


def test_a_folder_above_that_is_there_is_nobody_s_business(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private_folder(tmp_path / "home")
    assert mode(tmp_path) == 0o755


def test_a_file_that_others_may_read_is_not_read(tmp_path: Path) -> None:
    key = private_folder(tmp_path / "keys") / "identity.pem"
    key.write_bytes(b"secret")
    key.chmod(0o640)
    with pytest.raises(OpenToOthers, match=f"run: chmod 600 {key}"):
        read_private(key)
    key.chmod(0o600)
    assert read_private(key) == b"secret"


def test_a_lock_is_kept_in_a_private_folder(tmp_path: Path) -> None:
    with locked(tmp_path / "registry"):
        assert mode(tmp_path / "registry") == 0o700
        assert (tmp_path / "registry" / ".lock").exists()
