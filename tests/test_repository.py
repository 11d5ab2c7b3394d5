"""The repository keeps its own promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

NOT_OURS = {".git", ".venv", ".tools", "demo", "uv.lock", "LICENSE"}
SOMEBODYS_FOLDER = re.compile("|".join(f"/{folder}/[a-z]" for folder in ("home", "Users", "root", "work")))


def our_files() -> list[Path]:
    files = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS and not name.endswith(("cache", "cache__"))]
        files += [Path(folder, name) for name in names if name not in NOT_OURS]
    return [file for file in files if not {".hypothesis", "build", "dist", "site"} & set(file.relative_to(ROOT).parts)]


def test_the_readme_can_be_read_in_one_sitting():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_no_file_names_a_folder_of_somebodys_machine():
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in our_files()
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="ignore").splitlines(), 1)
        if SOMEBODYS_FOLDER.search(line)
    ]
    assert found == []


def test_every_link_in_the_documentation_leads_somewhere():
    subprocess.run([sys.executable, ROOT / "docs/check_links.py"], check=True, capture_output=True)


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/check_links.py").write_text((ROOT / "docs/check_links.py").read_text(encoding="utf-8"))
    (tmp_path / "docs/page.md").write_text("[here](page.md#top) [web](https://example.org) [gone](nowhere.md)")
    answer = subprocess.run([sys.executable, tmp_path / "docs/check_links.py"], capture_output=True, text=True)
    assert answer.returncode == 1
    assert answer.stderr == "docs/page.md: nowhere.md does not exist\n"


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in folder.glob("[0-9]*.md") if f"({page.name})" not in index] == []


def test_make_without_a_target_explains_every_target():
    answer = subprocess.run(["make", "-C", ROOT, "--no-print-directory"], capture_output=True, text=True, check=True)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {line.split()[1] for line in answer.stdout.splitlines()} == set(phony[1].split())


@pytest.mark.parametrize("script", [".ci/run"])
def test_scripts_are_executable_and_parse(script):
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)
