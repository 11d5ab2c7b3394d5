"""Whether a release tells the one value that is not known of a patient."""

from __future__ import annotations

from spinney.attacks import attributes
from tests.spinney.attacks.exporters import collapsed, people, remembering


def test_a_forest_that_remembers_tells_values_of_those_who_were_there() -> None:
    X, y = people(160, 21)
    here, away = (X[:80], y[:80]), (X[80:], y[80:])
    told, less = (attributes.attack(grown(*here, 1), here, away) for grown in (remembering, collapsed))
    assert told.low > 10
    assert less.value < told.low


def test_nothing_is_learnt_of_people_who_were_not_there() -> None:
    X, y = people(240, 22)
    forest = remembering(X[:80], y[:80], 1)
    found = attributes.attack(forest, (X[80:160], y[80:160]), (X[160:], y[160:]))
    assert found.low < 0 < found.high
