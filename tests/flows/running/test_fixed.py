"""A run is a run of the flow that was served, whatever has become of its deployment since."""

from __future__ import annotations

import subprocess
import sys
from uuid import UUID, uuid4

import pytest

from spinney.flows.running import fixed


@pytest.fixture(autouse=True)
def nothing_served(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (fixed.VARIABLE, fixed.OF_PREFECT):
        monkeypatch.setenv(name, "{}")


KEEPS = """
from uuid import UUID
from spinney.flows.running import fixed
one, other = UUID(int=1), UUID(int=2)
fixed.fix_flow(one, "spinney.flows.site_check.site_check")
fixed.fix_flow(other, "spinney.flows.site_round.site_round")
print(fixed.flow_of(one).name, fixed.flow_of(other).name)
"""


def test_every_deployment_keeps_the_flow_that_it_was_served_with() -> None:
    """In a process of its own: what Prefect starts to load a flow would speak to no server for all tests after it."""
    done = subprocess.run([sys.executable, "-c", KEEPS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["site-check", "site-round"]


@pytest.mark.parametrize("stranger", [None, uuid4()])
def test_a_deployment_that_is_not_served_here_has_no_flow(stranger: UUID | None) -> None:
    with pytest.raises(LookupError):
        fixed.flow_of(stranger)


def test_nothing_else_can_be_asked_of_it() -> None:
    with pytest.raises(AttributeError):
        fixed.planted  # noqa: B018
