"""A made-up history as the finished table of its study."""

from __future__ import annotations

import pandas as pd

from spinney.demo.site import world_study
from spinney.demo.table import finished_table


def test_the_label_is_what_the_stays_say(history):
    """Counted here in another way than by the engine."""
    stays = history.events["Encounter"].query("`class` == 'IMP'").sort_values(["patient", "time"])
    following = stays.groupby("patient", observed=True)["time"].shift(-1)
    back = (following - stays["until"]) <= pd.Timedelta(days=30)
    expected = {(who, end): yes for who, end, yes in zip(stays["patient"], stays["until"], back, strict=True)}
    table = finished_table(history, world_study())
    assert len(table) > 300
    assert [bool(one) for one in table["readmitted"]] == [
        expected[row] for row in zip(table["patient"], table["index_time"], strict=True)
    ]
