"""The marker `slow`: given to whole folders, to what needs a server or a whole night, and to what was measured.

`make test ARGS=--note-slow` measures and writes slow.txt anew: the functions whose tests together cost the most.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.places import ROOT

FOLDERS = {"benchmarks", "chaos", "services", "stories"}
FIXTURES = {"cluster", "postgres", "postgres_server", "prefect_database", "results", "s3", "two_nights", "village"}
NOTED = ROOT / "tests" / "slow.txt"
TOO_LONG = 0.3  # seconds
HEAD = "# Functions whose tests take long. Written by: make test ARGS=--note-slow"
LEFT_OUT = tuple(f"tests/{folder}/" for folder in sorted(FOLDERS))
BEGAN = pytest.StashKey[tuple[float, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--note-slow", action="store_true", help="measure, and write tests/slow.txt anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--note-slow"):
        config.pluginmanager.register(Stopwatch())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Notes())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = set(noted())
    for item in items:
        of_a_folder = item.path.relative_to(ROOT).parts[1] in FOLDERS
        if of_a_folder or function_of(item.nodeid) in long or FIXTURES & fixtures_of(item):
            item.add_marker("slow")


def fixtures_of(item: pytest.Item) -> set[str]:
    """What a test asks for; a parameter may be the name of a fixture, too."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {*getattr(item, "fixturenames", ()), *(one for one in parameters if isinstance(one, str))}


def noted() -> list[str]:
    return NOTED.read_text(encoding="utf-8").splitlines()


def function_of(nodeid: str) -> str:
    """All tests of a function are slow, or none."""
    return nodeid.partition("[")[0]


class Stopwatch:
    """Measures in whichever process runs the tests."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        item.stash[BEGAN] = clocks()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        if call.when == "teardown":
            passed, worked = (now - then for now, then in zip(clocks(), item.stash[BEGAN], strict=True))
            item.user_properties.append(("cost", max(worked, passed / 2)))  # others use the machine, too
        return (yield)


def clocks() -> tuple[float, float]:
    """The time, and the processor time of this process and of those that it has started and seen end."""
    spent = os.times()
    return spent.elapsed, spent.user + spent.system + spent.children_user + spent.children_system


class Notes:
    """What every function has cost, wherever it was run."""

    def __init__(self) -> None:
        self.costs: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.costs[function_of(report.nodeid)] += dict(report.user_properties)["cost"]

    def pytest_sessionfinish(self) -> None:
        """What was not run stays as it was noted."""
        known = {line for line in noted() if not line.startswith("#")} - set(self.costs)
        slow = {name for name, cost in self.costs.items() if cost > TOO_LONG and not name.startswith(LEFT_OUT)}
        NOTED.write_text("\n".join([HEAD, *sorted(known | slow), ""]), encoding="utf-8")
