"""Is this house fit for the night? One finding per thing that can be wrong, each with what to do about it.

Everything is looked at even where something before it is wrong. What has to be reached over a network is in
`spinney.doctor.reach`.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from time import perf_counter
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from spinney.compiled import FOLDER, cache_folder
from spinney.errors import SpinneyError
from spinney.house.approvals import Approvals, approved_studies
from spinney.house.keys import KEY_VARIABLE, KeyRing, fingerprint
from spinney.plugins import ALGORITHMS, EXCHANGES, SOURCES

OLDEST_PYTHON = (3, 11)
PACKAGE = "spinney"
COMPILED = ("spinney.forest.grower", "spinney.forest.walk")
LOCK = Path(__file__).resolve().parents[2] / "uv.lock"
PERMIT_ENDS_SOON = 30  # days
SKEW_NOTICED, SKEW_TOO_MUCH = timedelta(seconds=30), timedelta(minutes=5)
State = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True)
class Finding:
    """What was looked at, how it is, and what to do."""

    check: str
    state: State
    words: str


def finding_of(check: str, look: Callable[[], str]) -> Finding:
    """What a look says; an error that it raises on purpose is what is wrong."""
    try:
        return Finding(check, "ok", look())
    except SpinneyError as error:
        return Finding(check, "wrong", "; ".join(str(error).splitlines()))


def check_machine() -> Iterator[Finding]:
    """What does not depend on a house."""
    yield check_python()
    yield check_versions()
    yield check_plugins()
    yield check_compiled()


def check_python() -> Finding:
    """New enough?"""
    here = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", "wrong", f"{here}; install Python 3.11 or newer and Spinney into it")
    return Finding("python", "ok", here)


def check_plugins() -> Finding:
    """Algorithms, sources and exchanges of other packages."""
    kinds = (ALGORITHMS, SOURCES, EXCHANGES)
    if broken := [reason for kind in kinds for reason in kind.broken.values()]:
        return Finding("plugins", "warning", "; ".join(broken))
    foreign = [f"the {kind.what} {name}" for kind in kinds for name in kind.foreign]
    return Finding("plugins", "ok", f"other packages offer {', '.join(foreign)}" if foreign else "Spinney's own")


def check_compiled() -> Finding:
    """Whether what grows and walks trees is compiled for this processor; if not, it is now, not in the first night."""
    began = perf_counter()
    try:
        for name in COMPILED:
            import_module(name)
    except ImportError as error:
        return Finding("compiled", "wrong", f"{error.name or error} can't be loaded; install again: uv sync --frozen")
    folder, seconds = cache_folder(), perf_counter() - began
    if folder is None:
        words = f"compiled code can't be kept, so every process compiles for itself ({seconds:.0f} s here); "
        return Finding("compiled", "warning", f"{words}set {FOLDER} to a folder that only this user may look into")
    return Finding("compiled", "ok", f"for this processor, kept in {folder}")


def check_versions(package: str = PACKAGE, lock: Path = LOCK) -> Finding:
    """Everything that the installed package requires, and what that requires, down to the last library.

    In a clone the versions have to be those of the lock file, too; a wheel has none beside it.
    """
    try:
        complaints, seen = _unmet(package), len(_walked(package))
    except PackageNotFoundError:
        return Finding("versions", "wrong", f"{package} is not installed here; install it into this environment")
    if complaints:
        words = f"{'; '.join(complaints)}; install again as the lock file says: uv sync --frozen"
        return Finding("versions", "wrong", words)
    if others := _not_as_locked(package, lock):
        words = f"{', '.join(others)}; to have what was tested: uv sync --frozen"
        return Finding("versions", "warning", words)
    return Finding("versions", "ok", f"{package} {version(package)} and the {seen - 1} packages that it needs")


def _not_as_locked(package: str, lock: Path) -> list[str]:
    """Packages whose version is another than that in the lock file."""
    if not lock.exists():
        return []
    locked: dict[str, set[str]] = {}
    for one in tomllib.loads(lock.read_text(encoding="utf-8"))["package"]:
        locked.setdefault(one["name"], set()).add(one.get("version", ""))
    names = sorted(_walked(package) & locked.keys() - {package})
    return [
        f"{name} is {_installed(name)} and not {' or '.join(sorted(locked[name]))}"
        for name in names
        if _installed(name) not in locked[name]
    ]


def _unmet(package: str) -> list[str]:
    """One complaint per package that is missing, too old or too new."""
    complaints = {}
    for needy in _walked(package):
        for needed in _needs(needy):
            here = _installed(needed.name)
            if here is None:
                complaints[needed.name] = f"{needed.name} is missing ({needy} needs it)"
            elif not needed.specifier.contains(here, prereleases=True):
                complaints[needed.name] = f"{needed.name} is {here}, and {needy} needs {needed.specifier}"
    return [complaints[name] for name in sorted(complaints)]


def _walked(package: str) -> set[str]:
    """A package and all installed ones that it needs."""
    seen: set[str] = set()
    waiting = [package]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in seen:
            seen.add(name)
            waiting += [needed.name for needed in _needs(name) if _installed(needed.name) is not None]
    return seen


@cache
def _needs(package: str) -> list[Requirement]:
    """What a package requires on this machine, without its extras."""
    needed = [Requirement(line) for line in requires(package) or []]
    return [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]


@cache
def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# ---------------------------------------------------------------------------------------------------------------
# The house's own folder


def check_home(home: Path) -> Finding:
    """The folder that nobody else may look into."""
    if not home.exists():
        return Finding("home", "warning", f"{home} is not there yet; the first command that needs it makes it")
    mode = home.stat().st_mode & 0o777
    if mode & 0o077:
        return Finding("home", "wrong", f"{home} is open to others (mode {mode:04o}); run: chmod 700 {home}")
    return Finding("home", "ok", str(home))


def check_permits(home: Path, now: datetime) -> Finding:
    """Whether the permits of the approved studies last for some weeks."""
    state: State = "ok"
    words = []
    for name in approved_studies(home):
        permit = Approvals(home, name).study.permit
        if permit is not None:
            left = (permit.expires - now.date()).days
            words.append(f"{permit.reference} of {name} ends on {permit.expires}")
            if permit.is_over(now):
                state = "wrong"
            elif left < PERMIT_ENDS_SOON and state == "ok":
                state = "warning"
    advice = "" if state == "ok" else "; then rounds stop and cohorts are deleted, unless a changed study is approved"
    return Finding("permits", state, (", ".join(words) or "no approved study has one") + advice)


def check_keys(home: Path) -> Finding:
    """Whether there is a signing key that nobody else could have read."""
    ring = KeyRing(home)
    try:
        own = ring.all()
    except SpinneyError as error:
        return Finding("keys", "wrong", str(error))
    except PermissionError:
        return Finding("keys", "wrong", f"{ring.folder} can't be read by this user; run as the user who owns it")
    if not own:
        words = f"no signing key in {KEY_VARIABLE} or {ring.current}; joining makes one: spinney site join INVITE"
        return Finding("keys", "warning", words)
    where, identity = next(iter(own.items()))
    return Finding("keys", "ok", f"{where}, fingerprint {fingerprint(identity.public)}")


def check_disk(home: Path, least_gib: float) -> Finding:
    """Room for a cohort, models and reports."""
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(there).free / 2**30
    words = f"{free:,.1f} GiB free under {there}"
    if free < least_gib:
        return Finding(
            "disk", "wrong", f"{words}, {least_gib:g} wanted; make room: spinney site forget --older-than 30d"
        )
    return Finding("disk", "ok", words)


def check_clock(skew: timedelta | None, against: str) -> Finding:
    """Signatures and deadlines carry times, so the houses' clocks have to agree."""
    if skew is None:
        words = "nobody who was reached told the time; make sure that this machine keeps it: timedatectl"
        return Finding("clock", "warning", words)
    seconds = abs(skew).total_seconds()
    words = f"{seconds:.0f} s {'behind' if skew < timedelta(0) else 'ahead of'} {against}"
    if abs(skew) > SKEW_TOO_MUCH:
        return Finding("clock", "wrong", f"{words}; set this machine's clock, or that one's (chrony, timedatectl)")
    if abs(skew) > SKEW_NOTICED:
        return Finding("clock", "warning", f"{words}; let both follow a time server")
    return Finding("clock", "ok", words)
