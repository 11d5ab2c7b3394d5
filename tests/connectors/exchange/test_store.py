"""What goes wrong at a place, in words that say what to do; and what a listing leaves out."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spinney.connectors.exchange.errors import ExchangeDenied, TransientExchangeError
from spinney.connectors.exchange.places.folder import Folder


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path))


def of(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("number", "kind", "advice"),
    [
        (errno.ENOSPC, TransientExchangeError, "is full: make room there"),
        (errno.EDQUOT, TransientExchangeError, "is full: make room there"),
        (errno.EACCES, ExchangeDenied, "give this house the right to read all senders"),
        (errno.EROFS, ExchangeDenied, "does not allow this"),
        (errno.ENOTDIR, ExchangeDenied, "does not allow this"),
        (errno.ENAMETOOLONG, ExchangeDenied, "does not allow this"),
        (errno.EIO, TransientExchangeError, "does not answer .*look at the network"),
        (errno.ECONNRESET, TransientExchangeError, "does not answer"),
    ],
)
def test_what_may_heal_is_told_apart_from_what_a_person_has_to_mend(store: Folder, number: int, kind, advice: str):
    explained = store.explain(of(number))
    assert type(explained) is kind
    with pytest.raises(kind, match=advice):
        raise explained


def test_a_place_that_was_never_there_is_a_wrong_address_and_one_that_was_there_may_come_back(store: Folder):
    assert isinstance(store.explain(FileNotFoundError()), ExchangeDenied)
    store.entries("")
    assert isinstance(store.explain(FileNotFoundError()), TransientExchangeError)


def test_an_error_without_a_number_is_told_by_its_kind_and_not_by_its_words(store: Folder):
    class Strange(Exception):
        pass

    explained = str(store.explain(Strange("the password is hunter2")))
    assert "Strange" in explained
    assert "hunter2" not in explained


def test_a_listing_has_files_and_folders_with_their_times_and_no_links(store: Folder, tmp_path: Path):
    (tmp_path / "north").mkdir()
    (tmp_path / "grow.1").write_bytes(b"trees")
    os.utime(tmp_path / "grow.1", (0, 1_000_000_000))
    (tmp_path / "elsewhere").symlink_to(tmp_path / "grow.1")
    listed = {one.name: one for one in store.entries("")}
    assert set(listed) == {"north", "grow.1"}
    assert (listed["north"].is_folder, listed["grow.1"].is_folder) == (True, False)
    assert listed["grow.1"].modified == datetime.fromtimestamp(1_000_000_000, UTC)


def test_only_a_file_has_a_size(store: Folder, tmp_path: Path):
    (tmp_path / "north").mkdir()
    (tmp_path / "grow.1").write_bytes(b"trees")
    assert [store.size(name) for name in ("grow.1", "north", "nothing", "grow.1/below")] == [5, None, None, None]


def test_what_is_in_no_folder_is_nothing_as_long_as_the_place_is_there(store: Folder, tmp_path: Path):
    assert store.entries("nowhere") == ()
    tmp_path.rmdir()
    with pytest.raises(FileNotFoundError):
        store.entries("nowhere")
