"""What people should hear while a run waits."""

from __future__ import annotations

from contextlib import suppress

from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger


def warn(words: str) -> None:
    """Into the log of the run, where there is one."""
    with suppress(MissingContextError):
        get_run_logger().warning(words)
