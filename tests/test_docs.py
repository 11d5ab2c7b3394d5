"""What README and docs tell people is so."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.federation import disclosure, messages
from spinney.federation.seam import Decline, Message
from spinney.flows.cli import main
from tests.places import ROOT

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

SECTION = "## Would it help you?"


def section_of_readme(section: str) -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.partition(section)[2].partition("\n## ")[0]


def commands(section: str) -> list[str]:
    """Lines behind a $ in the console blocks of one README section."""
    blocks = re.findall(r"```console\n(.*?)```", section_of_readme(section), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def pictures(section: str) -> list[list[str]]:
    """The words of each line of the section's pictures of output."""
    blocks = re.findall(r"\n```\n( .*?)```", section_of_readme(section), re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines()]


def test_the_readme_s_first_commands_work_one_after_the_other_and_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    lines, printed = commands(SECTION), list[list[str]]()
    assert len(lines) >= 4
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "spinney"
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{line}\n{result.output}"
        printed += [words.split() for words in result.output.splitlines()]
    assert (tmp_path / "result.json").stat().st_size > 0
    shown = pictures(SECTION)
    assert len(shown) > 4
    assert [line for line in shown if line not in printed] == []


def test_the_readme_s_way_into_a_federation_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the bucket, which is a folder here, and for serving, which needs a Prefect server."""
    monkeypatch.chdir(tmp_path)
    for folder in ("mail", "oak"):
        (tmp_path / folder).mkdir()
    features = "features:\n  - {name: age, kind: continuous, range: [0, 120]}\nlabel: {name: died}\n"
    (tmp_path / "study.yaml").write_text(f"name: readmission\n{features}", encoding="utf-8")
    host = "--coordinator oak/coordinator.yaml"
    before = [
        "spinney coordinator init -o oak/coordinator.yaml --name oak --exchange ../mail --study study.yaml",
        f"spinney coordinator invite ash {host}",
    ]
    lines = [line.replace("s3://wood/mail", "mail") for line in commands("## Where to go next")]
    *joining, approve_roster, serve = lines
    assert len(lines) == 5
    assert serve == "spinney site serve"
    for line in [*before, *joining, f"spinney coordinator admit joining.json {host}", approve_roster]:
        result = CliRunner().invoke(main, shlex.split(line)[1:], input="y\n")
        assert result.exit_code == 0, f"{line}\n{result.output}"


def test_every_make_target_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\$ make ([a-z-]+)", readme)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


# ---------------------------------------------------------------------------------------------------------------
# The page on privacy


def rows_of_privacy() -> dict[str, set[str]]:
    """Message -> fields, as the tables of the page have them."""
    told: dict[str, set[str]] = {}
    message = ""
    for line in (ROOT / "docs/privacy.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| |") and message:
            cells[0] = f"`{message}`"
        if line.startswith("|") and re.fullmatch(r"`[A-Z][A-Za-z]+`", cells[0]):
            message = cells[0].strip("`")
            told.setdefault(message, set()).update(re.findall(r"`([a-z_]+)`", cells[1]))
    return told


def test_the_page_on_privacy_names_every_message_and_every_field_of_it() -> None:
    kinds = [kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)]
    real = {kind.__name__: {field.name for field in fields(kind)} for kind in [*kinds, Decline] if kind is not Message}
    assert rows_of_privacy() == real


def test_the_page_on_privacy_says_of_every_message_that_a_site_may_send_that_it_does() -> None:
    page = (ROOT / "docs/privacy.md").read_text(encoding="utf-8")
    from_a_site = page.partition("## Field by field: from a site")[2].partition("\n## ")[0]
    allowed = {kind.__name__ for kind in disclosure.check_message.registry if kind not in (Message, object)}
    assert {name for name in rows_of_privacy() if f"`{name}`" in from_a_site} == allowed


def test_every_test_that_a_page_names_exists() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for path in re.findall(r"`(tests/[\w/]+\.py)`", page.read_text(encoding="utf-8")):
            assert (ROOT / path).exists(), f"{page.name}: {path}"


# ---------------------------------------------------------------------------------------------------------------
# The site of pages


def test_the_reference_of_settings_is_up_to_date() -> None:
    subprocess.run([sys.executable, ROOT / "docs/make_reference.py", "--check"], check=True, cwd=ROOT)


def test_the_pages_are_built_strictly_and_load_nothing_from_anywhere(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    answer = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert answer.returncode == 0, answer.stderr
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(https?:)?//", re.IGNORECASE)
    for page in tmp_path.rglob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page.name


# ---------------------------------------------------------------------------------------------------------------
# The tutorial


def test_the_tutorials_way_to_the_first_night_works_word_for_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The night and the morning after need servers: tests/services/test_tutorial.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPINNEY_SIGNING_KEY", raising=False)
    monkeypatch.setenv("PREFECT_API_URL", "")
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8").partition("## 5. ")[0]
    lines = [
        line[2:]
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    assert len(lines) >= 10
    for line in lines:
        if not line.startswith("spinney "):
            subprocess.run(line, shell=True, check=True)
            continue
        result = CliRunner().invoke(main, shlex.split(line)[1:], input="y\n")
        assert result.exit_code == 0, f"{line}\n{result.output}"
