"""The coordinator's night: which round it is, whatever was lost."""

from __future__ import annotations

import shutil

from spinney.demo.federation import Village
from tests.nights import night


def test_a_coordinator_on_a_new_machine_goes_on_with_the_next_round(village: Village) -> None:
    night(village)
    home = village.home("coordinator")
    for lost in ("rounds", "nights", "outbox", "keys/rounds"):
        shutil.rmtree(home / lost)
    result, _ = night(village)
    assert (result["round"], result["void"]) == (2, "")
