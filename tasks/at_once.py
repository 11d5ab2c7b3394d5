"""Prefect's functions answer at once in a plain flow, and with a coroutine in an asynchronous one. Ours are plain."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar, cast

Answer = TypeVar("Answer")


def at_once(answer: Answer | Coroutine[Any, Any, Answer]) -> Answer:
    """What Prefect has answered, without the coroutine that its annotations allow for everywhere."""
    return cast(Answer, answer)
