"""Libraries that are loaded aside, and that nobody imports at the same time."""

from __future__ import annotations

import subprocess
import sys

WAITING = """
import sys
from spinney.tasks import preload

preload.quiet_mlflow = lambda: None
{change}
preload.preload(local_registry=False)
preload.preloaded()
print(*(name in sys.modules for name in ("great_expectations", "sklearn.tree")))
"""


def said(change: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", WAITING.format(change=change)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_whoever_waits_has_what_checks_patients_and_grows_trees() -> None:
    assert said("") == "True True"


def test_what_can_not_be_loaded_keeps_nobody_waiting() -> None:
    assert said("preload.GROWING = ('no.such.library',)") == "True False"
