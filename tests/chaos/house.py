"""A house in a process of its own that can be told where to die.

The product knows nothing of it: what it calls is wrapped here. Every place that a night passes has a name, such as
`before publish grow`; the process writes the names down, or kills itself at one of them as a power cut would.
"""

from __future__ import annotations

import functools
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spinney.cohort.check_result
import spinney.tasks.cohort
import spinney.tasks.round
from spinney.connectors.exchange import Exchange
from spinney.connectors.mlflow import Registry
from spinney.connectors.mlflow.store import ModelStore
from spinney.flows.served import serve_houses
from spinney.house.audit import Audit
from spinney.house.envelopes import Rounds
from spinney.house.nights import HouseNights
from spinney.house.rounds import CoordinatorSession, SiteSession
from spinney.storage.files import RoundState, ScoredTrees

KILL_AT, WRITE_DOWN = "SPINNEY_TESTS_KILL_AT", "SPINNEY_TESTS_PLACES"


def run_house(role: str, file: str, number: str = "1") -> None:
    """One night of a house, as a flow."""
    Places(os.environ.get(KILL_AT), os.environ.get(WRITE_DOWN)).watch(Path(file).parent)
    if role == "site":
        from spinney.flows.site_round import SiteRoundInput, site_round

        serve_houses(sites=(Path(file),))
        site_round(SiteRoundInput(number=int(number)))
    else:
        from spinney.flows.coordinator_round import CoordinatorRoundInput, coordinator_round

        serve_houses(coordinators=(Path(file),))
        coordinator_round(CoordinatorRoundInput(number=int(number)))


class Places:
    """The places that a night passes, in order; at one of them the process dies."""

    def __init__(self, deadly: str | None, written: str | None) -> None:
        self._deadly, self._written = deadly, written
        self._passed: set[str] = set()

    def watch(self, house: Path) -> None:
        """Name what a house does: its steps, every file that it keeps, every message, and the end of the round."""
        for task in ("pull", "write_encoded"):
            self._wrap(spinney.tasks.cohort, task, lambda *_, task=task, **__: task)
        self._wrap(spinney.cohort.check_result, "check_cohort", lambda *_, **__: "check")
        self._wrap(Rounds, "enter", lambda *_, **__: "enter")
        self._wrap(SiteSession, "_reply", lambda _, ask, *__, **___: f"answer {ask.step}")
        self._wrap(CoordinatorSession, "_ask", lambda _, step, *__, **___: f"ask {step}")
        self._wrap(Registry, "owe", lambda *_, **__: "put the model by")
        self._wrap(Registry, "pay", lambda *_, **__: "register")
        self._wrap(Registry, "settle", lambda *_, **__: "settle")
        self._wrap(spinney.tasks.round, "write_site_report", lambda *_, **__: "report")
        self._wrap(spinney.tasks.round, "write_round_report", lambda *_, **__: "report")
        self._wrap(HouseNights, "close", lambda *_, **__: "close")
        # What comes after one of these is the next of them, so that dying before each is enough.
        self._wrap(Path, "replace", lambda _, target: _kept(target, house), ends=False)
        self._wrap(Path, "rename", lambda _, target: _kept(Path(target), house), ends=False)
        self._wrap(Exchange, "put", lambda _, address, *__, **___: f"publish {address.step}", ends=False)
        self._wrap(Audit, "append", lambda _, entry, *__, **___: f"note {entry.direction} {entry.step}", ends=False)
        self._wrap(ScoredTrees, "update", lambda *_, **__: "remember what was scored", ends=False)
        self._wrap(ModelStore, "_ensure_registered", lambda *_, **__: "make a version of the files", ends=False)
        self._wrap(ModelStore, "point", lambda _, alias, *__, **___: f"point {alias}", ends=False)
        self._wrap(ModelStore, "unpoint", lambda _, alias, *__, **___: f"unpoint {alias}", ends=False)
        self._wrap(ModelStore, "tag", lambda _, __, what, *___, **____: f"tag {what}", ends=False)
        self._wrap(Rounds, "leave", lambda *_, **__: "leave", ends=False)
        self._wrap(RoundState, "forget", lambda *_, **__: "forget", ends=False)

    def _wrap(self, owner: Any, name: str, place: Callable[..., str], *, ends: bool = True) -> None:
        work = getattr(owner, name)

        @functools.wraps(work)
        def watched(*args: Any, **kwargs: Any) -> Any:
            here = re.sub(r"[0-9a-f]{12,}", "*", place(*args, **kwargs))  # digests differ from night to night
            self._pass(f"before {here}")
            result = work(*args, **kwargs)
            if ends:
                self._pass(f"after {here}")
            return result

        setattr(owner, name, watched)

    def _pass(self, place: str) -> None:
        if place in self._passed:
            return
        self._passed.add(place)
        if self._written:
            with Path(self._written).open("a") as places:
                places.write(f"{place}\n")
        if place == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def _kept(target: Path, house: Path) -> str:
    """A file of the house: this is the last moment of every whole write."""
    return f"keep {target.name}" if target.is_relative_to(house) else "keep something elsewhere"
