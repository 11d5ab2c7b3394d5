"""Names of commands and options on Tab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.flows.cli import main

SPINNEY = [sys.executable, "-c", "from spinney.flows.cli import main; main(prog_name='spinney')"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(shell: str) -> None:
    answer = CliRunner().invoke(main, ["completion", shell])
    assert answer.exit_code == 0
    assert "_SPINNEY_COMPLETE" in answer.stdout


def test_the_script_for_bash_is_understood_by_bash(tmp_path: Path) -> None:
    (tmp_path / "spinney").write_text(CliRunner().invoke(main, ["completion", "bash"]).stdout)
    subprocess.run(["bash", "-n", tmp_path / "spinney"], check=True)


def test_commands_and_options_are_completed() -> None:
    def completed(*words: str) -> str:
        line = {"COMP_WORDS": "spinney " + " ".join(words), "COMP_CWORD": str(len(words))}
        environment = {**os.environ, **line, "_SPINNEY_COMPLETE": "bash_complete"}
        return subprocess.run(SPINNEY, env=environment, capture_output=True, text=True, check=True).stdout

    assert "plain,doctor" in completed("doc")
    assert "plain,--least-gib" in completed("doctor", "--le")
