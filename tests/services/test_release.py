"""What `make release` makes: the same bytes from the same tree, and the whole truth about what is in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.places import ROOT
from tests.servers.installed import UV, wheel, wheel_from_sdist

pytestmark = [pytest.mark.service, pytest.mark.timeout(300)]


def digests(folder: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(folder.glob("spinney-*"))}


def exported(*more: str) -> dict[str, Any]:
    """What the lock file names, as uv tells it."""
    command = [UV, "export", "--frozen", "--no-dev", *more, "--format", "cyclonedx1.5", "--quiet"]
    found: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    return found


def made(export: dict[str, Any], folder: Path) -> Path:
    folder.mkdir()
    script = [sys.executable, ROOT / "docs/make_bill.py", folder]
    subprocess.run(script, input=json.dumps(export).encode(), check=True, capture_output=True)
    return folder


def test_a_tree_that_was_copied_at_another_time_gives_the_same_files(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (".gitignore", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy)
    for name in ("spinney", "connectors", "tasks", "flows", "deployments"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file in copy.rglob("*.py"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    wheel(tmp_path / "here")
    wheel_from_sdist(tmp_path / "source")
    subprocess.run([UV, "build", "--quiet", "--out-dir", tmp_path / "there", copy], check=True, capture_output=True)
    there = digests(tmp_path / "there")
    assert there == digests(tmp_path / "source")
    assert digests(tmp_path / "here").items() <= there.items()


def test_the_bill_names_every_package_with_its_licence_and_its_hashes(tmp_path: Path) -> None:
    export = exported("--all-extras")
    bill = json.loads(next(made(export, tmp_path / "bill").glob("*.cdx.json")).read_text())
    parts = {part["name"]: part for part in bill["components"]}
    assert {"prefect", "scikit-learn", "great-expectations", "mlflow"} <= {*parts}
    assert "spinney" not in parts
    assert parts["numpy"]["licenses"][0]["license"]["name"].startswith("BSD")
    assert all(part["externalReferences"][0]["hashes"] for part in parts.values())
    assert bill["bomFormat"] == "CycloneDX"


def test_two_bills_of_one_lock_file_are_the_same(tmp_path: Path) -> None:
    first, second = (digests(made(exported("--all-extras"), tmp_path / name)) for name in ("first", "second"))
    assert first == second
    assert len(first) == 2


def test_the_documents_say_how_many_packages_are_installed() -> None:
    told = re.search(r"(\d+) packages \((\d+) with every option\)", (ROOT / "docs/deploying.md").read_text())
    assert told
    plain, all_of_them = (len(exported(*more)["components"]) for more in ((), ("--all-extras",)))
    assert (plain, all_of_them) == (int(told[1]), int(told[2]))
