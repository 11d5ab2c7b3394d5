"""What a made-up hospital writes down: plausible values, coherent lives, and one more day every night."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.demo.history import NoSuchNight, end_of, make_history
from spinney.demo.hospitals import make_hospitals


def test_the_next_night_has_all_of_the_last_one_and_some_more():
    hospital = make_hospitals(4, 1600, 3)[3]
    first, second = (make_history(hospital, 3, night) for night in (1, 2))
    assert len(second.patients) >= len(first.patients)
    for kind, rows in first.events.items():
        later = second.events[kind]
        assert len(later) > len(rows) or kind == "Condition"
        assert later["number"].iloc[: len(rows)].tolist() == rows["number"].tolist()
        assert (later["time"] <= np.datetime64(end_of(2).replace(tzinfo=None))).all()


def test_a_stay_that_is_under_way_has_no_end_yet(history):
    under_way = history.events["Encounter"].query("status == 'in-progress'")
    assert len(under_way) > 0
    assert under_way["until"].isna().all()


def test_the_world_says_when_it_ends():
    with pytest.raises(NoSuchNight, match="choose one from 1 to 60"):
        end_of(61)
