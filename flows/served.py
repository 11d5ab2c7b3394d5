"""The houses that this machine serves, by name: a run may name one of them, and never a file, an address or a key.

Whoever reaches Prefect's API can ask for any run. So where a house has its settings is fixed when its owner types
`serve` (or starts a worker), and travels to the processes of runs in their environment, which no run of a served
deployment can change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from spinney.configuration.house import CoordinatorSettings, read_coordinator
from spinney.configuration.site import SiteSettings, read_site
from spinney.errors import SpinneyError, in_short
from spinney.house.audit import Audit, AuditEntry

VARIABLE = "SPINNEY_SERVED"
House = TypeVar("House", SiteSettings, CoordinatorSettings)
Served = Mapping[str, Sequence[str]]  # role -> settings files
_HERE: ContextVar[Served | None] = ContextVar("served", default=None)


class NotServed(SpinneyError):
    """A run asks for a house that this machine doesn't serve; the message says which it serves."""


def serve_houses(*, sites: Sequence[Path] = (), coordinators: Sequence[Path] = ()) -> None:
    """Let the flows of this process, and of those that it starts, find houses by name: here are their settings files.

    Whoever calls a flow of ours in a flow of their own calls this first.
    """
    os.environ[VARIABLE] = json.dumps(_by_role(sites, coordinators))


@contextmanager
def serving(*, sites: Sequence[Path] = (), coordinators: Sequence[Path] = ()) -> Iterator[None]:
    """Let flows that are called inside find these houses by name, and no others; other threads don't notice."""
    token = _HERE.set(_by_role(sites, coordinators))
    try:
        yield
    finally:
        _HERE.reset(token)


def _by_role(sites: Sequence[Path], coordinators: Sequence[Path]) -> Served:
    files = {"site": sites, "coordinator": coordinators}
    return {role: [str(one.resolve()) for one in paths] for role, paths in files.items()}


def site_named(name: str) -> SiteSettings:
    """The settings of a site that is served here; the only one, if no name is given."""
    return _named(name, "site", [read_site(file) for file in _files("site")])


def coordinator_named(name: str) -> CoordinatorSettings:
    """The settings of a coordinator that is served here; the only one, if no name is given."""
    return _named(name, "coordinator", [read_coordinator(file) for file in _files("coordinator")])


def _named(name: str, role: str, houses: list[House]) -> House:
    found = [house for house in houses if name in ("", house.name)]
    if len(found) == 1:
        return found[0]
    if not houses:
        raise NotServed(f"this process serves no {role}; start it with: spinney {role} serve")
    if not found:
        for house in houses:
            _note(house.home, f"A run asked for the {role} {in_short(name)!r}, which is not served here.")
    raise NotServed(f"name one {role} that is served here: {', '.join(sorted(house.name for house in houses))}")


def _note(home: Path, words: str) -> None:
    Audit(home / "audit.jsonl").append(AuditEntry(direction="refused", kind="Run", words=words), datetime.now(UTC))


def _files(role: str) -> Sequence[str]:
    served: Served = _HERE.get() or json.loads(os.environ.get(VARIABLE, "{}"))
    return served.get(role, [])
