"""What a library says goes into no run's state, wherever in a flow it is said."""

from __future__ import annotations

from importlib import import_module

import pytest

from spinney.errors import SourceFailed, SpinneyError
from spinney.tasks.guarded import StepFailed, guarded

FLOWS = {
    "site_round": "site_named",
    "site_check": "site_named",
    "site_score": "site_named",
    "site_monitor": "site_named",
    "coordinator_round": "coordinator_named",
}


@pytest.mark.parametrize("name", FLOWS)
def test_an_error_between_the_steps_of_a_flow_is_told_without_its_words(name: str, monkeypatch: pytest.MonkeyPatch):
    module = import_module(f"spinney.flows.{name}")

    def quoting(*_: object) -> None:
        raise ValueError("could not convert 'Quibblewick, Z.'")

    monkeypatch.setattr(module, FLOWS[name], quoting)
    with pytest.raises(StepFailed, match="ValueError at") as told:
        getattr(module, name).fn()
    assert "Quibblewick" not in str(told.value)


def convert(otherwise: SpinneyError | None) -> None:
    try:
        float("Quibblewick, Z.")
    except ValueError:
        if otherwise is not None:
            raise otherwise from None
        raise


@pytest.mark.parametrize("ours", [None, SourceFailed("the file can't be read")])
def test_an_error_that_is_told_takes_along_no_error_that_it_came_from(ours: SpinneyError | None):
    with pytest.raises(SpinneyError) as told, guarded():
        convert(ours)
    assert told.value.__cause__ is told.value.__context__ is None
    assert isinstance(told.value, SourceFailed if ours else StepFailed)
