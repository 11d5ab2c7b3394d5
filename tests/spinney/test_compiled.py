"""Where compiled code is kept: a private folder, or nowhere."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spinney.compiled import FOLDER, cache_folder

TWICE = """
from spinney.compiled import compiled

@compiled("int64(int64)")
def twice(number):
    return 2 * number

print(twice(21))
"""


def run(source, folder):
    """In a process of its own."""
    command, where = [sys.executable, str(source)], {**os.environ, FOLDER: str(folder)}
    return subprocess.run(command, env=where, capture_output=True, text=True, check=True, timeout=120).stdout.split()


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "twice.py"
    file.write_text(TWICE)
    return file


def test_what_one_process_has_compiled_another_one_loads(source, tmp_path):
    folder = tmp_path / "kept"
    assert run(source, folder)[0] == "42"
    assert folder.stat().st_mode & 0o777 == 0o700
    kept = sorted(folder.rglob("*.nbc"))
    assert len(kept) == 1
    before = kept[0].stat().st_mtime_ns
    assert run(source, folder)[0] == "42"
    assert sorted(folder.rglob("*.nbc")) == kept
    assert kept[0].stat().st_mtime_ns == before


def test_other_source_compiles_anew(source, tmp_path):
    folder = tmp_path / "kept"
    run(source, folder)
    source.write_text(TWICE.replace("2 * number", "3 * number"))
    assert run(source, folder)[0] == "63"


def test_a_folder_that_others_may_look_into_is_not_used(source, tmp_path, monkeypatch):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    monkeypatch.setenv(FOLDER, str(folder))
    assert cache_folder() is None
    assert run(source, folder)[0] == "42"
    assert not [*folder.iterdir()]


def test_where_nothing_can_be_written_it_compiles_for_itself(source, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv(FOLDER, str(file / "below"))
    assert cache_folder() is None
    assert run(source, file / "below")[0] == "42"


def test_without_a_word_it_is_the_user_s_own_cache(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "spinney" / "compiled"
