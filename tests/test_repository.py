"""The repository keeps its own promises."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import slowness
from tests.places import ROOT

NOT_OURS = {".git", ".venv", ".tools", "uv.lock", "LICENSE"}
SOMEBODYS_FOLDER = re.compile("|".join(f"/{folder}/[a-z]" for folder in ("home", "Users", "root", "work")))


def our_files() -> list[Path]:
    files = []
    for folder, folders, names in os.walk(ROOT):
        if Path(folder) == ROOT:
            folders[:] = [name for name in folders if name != "demo"]  # what `make demo` leaves behind
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


# ---------------------------------------------------------------------------------------------------------------
# The tests mirror the code: tests/stories, services, chaos, benchmarks and tests/*.py are about the whole

ROOMS = ("spinney", "connectors", "tasks", "flows")
TESTED_ELSEWHERE = {
    "spinney/house/addresses.py": "a few names in an order: tests/spinney/house/test_channel.py",
    "spinney/house/patients.py": "a protocol: tests/spinney/cohort/test_patients.py",
    "spinney/rows/cohort_ref.py": "data only: tests/spinney/cohort/test_vault.py",
    "spinney/testing/__init__.py": "the map of what the package ships: tests/services/test_own_package.py",
    "spinney/testing/exchange.py": "tests themselves: tests/connectors/exchange/test_exchange.py",
    "connectors/exchange/errors.py": "error classes, raised in tests/connectors/exchange/test_store.py",
    "connectors/exchange/places/sftp.py": "needs an SFTP server: tests/services/test_exchange_sftp.py",
    "connectors/sources/__init__.py": "what a source is: tests/spinney/testing/test_source.py",
    "flows/admit.py": "suspends a run: tests/services/test_admission_flow.py",
    "flows/cli/demo.py": "a whole night: tests/services/test_demo.py",
    "flows/cli/deploy.py": "needs a Prefect server: tests/services/test_deployments.py",
    "flows/cli/up.py": "keeps servers running: tests/services/test_up.py",
    "flows/coordinator_round.py": "a night's story: tests/services/test_night_flows.py",
    "flows/demo/houses.py": "a whole night: tests/services/test_demo.py",
    "flows/demo/kept.py": "keeps servers running: tests/services/test_up.py",
    "flows/demo/night.py": "a whole night: tests/services/test_demo.py",
    "flows/demo/serving.py": "keeps servers running: tests/services/test_up.py",
    "flows/running/alerts.py": "who is told by a Prefect server: tests/services/test_serving.py",
    "flows/running/janitor.py": "what a power cut leaves: tests/services/test_serving.py",
    "flows/running/serve.py": "never ends by itself: tests/services/test_serving.py",
    "flows/site_check.py": "a flow, served: tests/services/test_serving.py",
    "flows/site_monitor.py": "a flow's story: tests/services/test_site_score.py",
    "flows/site_round.py": "a night's story: tests/services/test_night_flows.py",
    "flows/site_score.py": "a flow's story: tests/services/test_site_score.py",
    "tasks/start_sites.py": "needs deployments: tests/services/test_prefect_ui.py",
}


def mirrors() -> dict[str, str]:
    """Every module with its test file; a package counts if there is more to it than words."""
    found = {}
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        path = file.relative_to(ROOT)
        package = file.name == "__init__.py"
        if (package and is_map(file)) or any((ROOT / folder).is_symlink() for folder in path.parents):
            continue
        name = path.parent.name if package else path.stem
        found[path.as_posix()] = f"tests/{path.parent.as_posix()}/test_{name}.py"
    return found


def is_map(package: Path) -> bool:
    """Whether a package's own file is a docstring only."""
    return all(isinstance(one, ast.Expr) for one in ast.parse(package.read_text(encoding="utf-8")).body)


def test_every_module_has_a_test_file_of_its_name_or_says_where_it_is_tested():
    alone = [module for module, test in mirrors().items() if not (ROOT / test).exists()]
    assert sorted(set(alone) - set(TESTED_ELSEWHERE)) == []


def test_a_module_that_is_tested_elsewhere_is_there_and_has_no_test_file():
    known = mirrors()
    assert [module for module in TESTED_ELSEWHERE if module not in known or (ROOT / known[module]).exists()] == []


def test_where_a_module_is_tested_elsewhere_there_is_a_test():
    places = [re.search(r"tests/[\w/]+\.py$", reason) for reason in TESTED_ELSEWHERE.values()]
    assert [place and place[0] for place in places if not place or not (ROOT / place[0]).exists()] == []


def test_no_test_file_mirrors_a_module_that_is_gone():
    tests = {file for room in ROOMS for file in (ROOT / "tests" / room).rglob("test_*.py")}
    assert sorted(tests - {ROOT / test for test in mirrors().values()}) == []


# One word for one thing: what may be called alike, because it does the same to different things
SHARED_NAMES = {"attack", "coordinate", "check_cohort", "simulate"}


def public_names() -> dict[str, list[str]]:
    """Classes and functions of all modules, with where they are; a command may be called as what it does."""
    found: dict[str, list[str]] = {}
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            path = file.relative_to(ROOT)
            if any((ROOT / folder).is_symlink() for folder in path.parents) or path.is_relative_to("flows/cli"):
                continue
            for one in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(one, ast.ClassDef | ast.FunctionDef) and not one.name.startswith("_"):
                    found.setdefault(one.name, []).append(path.as_posix())
    return found


def test_no_two_classes_or_functions_have_the_same_name():
    twice = {name: places for name, places in public_names().items() if len(places) > 1 and name not in SHARED_NAMES}
    assert twice == {}


def test_what_several_tests_need_is_in_no_test_file():
    borrowed = [
        f"{file.relative_to(ROOT)}: {line}"
        for file in (ROOT / "tests").rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.match(r"from tests\.\S*\btest_\w+ import", line)
    ]
    assert borrowed == []


def test_what_is_noted_as_slow_is_there():
    gone = [name for name in slowness.noted() if not slowness.is_there(name)]
    assert gone == [], "write the list anew: make test ARGS=--note-slow"
