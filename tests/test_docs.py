"""What the README tells people to type works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli import main

ROOT = Path(__file__).resolve().parent.parent
SECTION = "## Would it help you?"


def commands(section: str) -> list[str]:
    """Lines behind a $ in the console blocks of one README section."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    body = text.partition(section)[2].partition("\n## ")[0]
    blocks = re.findall(r"```console\n(.*?)```", body, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_the_readme_s_first_commands_work_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = commands(SECTION)
    assert len(lines) >= 4
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "spinney"
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{line}\n{result.output}"
    assert (tmp_path / "result.json").stat().st_size > 0


def test_every_make_target_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\$ make ([a-z-]+)", readme)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
