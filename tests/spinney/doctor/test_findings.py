"""The house's own folder, keys, disk and packages, where something of them is really broken."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from spinney.compiled import FOLDER, cache_folder
from spinney.doctor.findings import LOCK, check_versions
from tests.spinney.doctor.examined import findings, healthy_house, spinney


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return healthy_house(tmp_path, monkeypatch)


def test_a_key_that_others_can_read_is_wrong_and_the_line_says_chmod(house: Path) -> None:
    key = house / "home/keys/identity.pem"
    key.chmod(0o644)
    assert findings()["keys"] == ("wrong", f"{key} is open to others (mode 0644); run: chmod 600 {key}")
    assert spinney("doctor").exit_code == 2


def test_a_home_that_others_can_enter_is_wrong(house: Path) -> None:
    (house / "home").chmod(0o755)
    state, words = findings()["home"]
    assert (state, words.endswith(f"run: chmod 700 {house / 'home'}")) == ("wrong", True)


def test_a_damaged_key_is_wrong(house: Path) -> None:
    (house / "home/keys/identity.pem").write_text("no key")
    assert findings()["keys"][0] == "wrong"


def test_a_small_disk_is_wrong(house: Path) -> None:
    mount = shutil.which("mount") or "mount"
    disk = house / "disk"
    disk.mkdir()
    command = [mount, "-t", "tmpfs", "-o", "size=400k,mode=700", "tmpfs", str(disk)]
    mounted = os.getuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not mounted:
        pytest.skip("only root can mount a small disk")
    try:
        (house / "site.yaml").write_text("name: ash\nhome: disk\nsource: {kind: files, path: fhir}")
        state, words = findings()["disk"]
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
    assert (state, "make room" in words) == ("wrong", True)


@pytest.mark.usefixtures("house")
def test_more_room_can_be_asked_for() -> None:
    assert findings("--least-gib", 1e9)["disk"][0] == "wrong"
    assert findings("--least-gib", 0)["disk"][0] == "ok"


def test_the_versions_here_are_those_of_the_lock_file() -> None:
    assert LOCK.exists()
    assert check_versions().state == "ok", check_versions().words


def test_a_package_that_is_not_as_locked_is_a_warning(tmp_path: Path) -> None:
    lock = tmp_path / "uv.lock"
    lock.write_text('[[package]]\nname = "click"\nversion = "0.1"\n[[package]]\nname = "spinney"\n')
    finding = check_versions(lock=lock)
    assert (finding.state, "and not 0.1; to have what was tested" in finding.words) == ("warning", True)


def test_a_package_that_is_too_old_or_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "needy-1.0.dist-info/METADATA"
    metadata.parent.mkdir()
    needs = ["numpy>=99", "no-such-package", "no-such-extra; extra == 'more'"]
    metadata.write_text(
        "Metadata-Version: 2.1\nName: needy\nVersion: 1.0\n" + "".join(f"Requires-Dist: {one}\n" for one in needs)
    )
    monkeypatch.syspath_prepend(tmp_path)
    finding = check_versions("needy")
    assert finding.state == "wrong"
    assert "needy needs >=99" in finding.words
    assert "no-such-package is missing" in finding.words
    assert "no-such-extra" not in finding.words


@pytest.mark.usefixtures("house")
def test_what_grows_trees_is_compiled_and_where_it_is_kept_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings()["compiled"] == ("ok", f"for this processor, kept in {cache_folder()}")
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv(FOLDER, str(tmp_path / "open"))
    state, words = findings()["compiled"]
    assert (state, f"set {FOLDER}" in words) == ("warning", True)
