"""Prefect's functions in a plain flow."""

from __future__ import annotations

import asyncio

from spinney.tasks.at_once import at_once


def test_an_answer_stays_what_it_is() -> None:
    answer = object()
    assert at_once(answer) is answer


def test_it_waits_for_nobody() -> None:
    async def later() -> int:
        return 1

    coroutine = later()
    assert at_once(coroutine) is coroutine
    assert asyncio.run(coroutine) == 1
