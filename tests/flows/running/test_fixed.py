"""A run is a run of the flow that was served, whatever has become of its deployment since."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from spinney.flows.running import fixed
from spinney.flows.site_check import site_check
from spinney.flows.site_round import site_round


@pytest.fixture(autouse=True)
def nothing_served(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (fixed.VARIABLE, fixed.OF_PREFECT):
        monkeypatch.setenv(name, "{}")


def test_every_deployment_keeps_the_flow_that_it_was_served_with() -> None:
    one, other = uuid4(), uuid4()
    fixed.fix_flow(one, "spinney.flows.site_check.site_check")
    fixed.fix_flow(other, "spinney.flows.site_round.site_round")
    assert (fixed.flow_of(one).fn, fixed.flow_of(other).fn) == (site_check.fn, site_round.fn)


@pytest.mark.parametrize("stranger", [None, uuid4()])
def test_a_deployment_that_is_not_served_here_has_no_flow(stranger: UUID | None) -> None:
    with pytest.raises(LookupError):
        fixed.flow_of(stranger)


def test_nothing_else_can_be_asked_of_it() -> None:
    with pytest.raises(AttributeError):
        fixed.planted  # noqa: B018
