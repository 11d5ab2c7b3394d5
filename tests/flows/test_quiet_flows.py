"""What a library says goes into no run's state, wherever in a flow it is said."""

from __future__ import annotations

from importlib import import_module

import pytest

from tasks.quiet import StepFailed

FLOWS = {
    "site_round": "read_site",
    "site_check": "read_site",
    "site_score": "read_site",
    "site_monitor": "read_site",
    "coordinator_round": "read_coordinator",
}


@pytest.mark.parametrize("name", FLOWS)
def test_an_error_between_the_steps_of_a_flow_is_told_without_its_words(name: str, monkeypatch: pytest.MonkeyPatch):
    module = import_module(f"flows.{name}")

    def quoting(*_: object) -> None:
        raise ValueError("could not convert 'Quibblewick, Z.'")

    monkeypatch.setattr(module, FLOWS[name], quoting)
    with pytest.raises(StepFailed, match="ValueError at") as told:
        getattr(module, name).fn()
    assert "Quibblewick" not in str(told.value)
