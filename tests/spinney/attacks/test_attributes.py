"""Whether a release tells the values that are not known of a patient."""

from __future__ import annotations

import numpy as np

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


def test_several_unknown_values_are_rebuilt_of_members_and_of_nobody_else() -> None:
    members, others = people(400, 3), people(400, 4)
    figure = attributes.attack(remembering(*members, 5), members, others, unknown=0.3)
    assert figure.low > 0


def test_what_is_known_stays_and_what_was_never_measured_is_not_counted() -> None:
    X, y = people(60, 6)
    X[:, 2] = np.nan
    forest = remembering(np.nan_to_num(X), y, 7)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[:, 0] = True
    found = attributes.rebuilt(forest, X, y, hidden)
    assert np.array_equal(found[:, 1:], X[:, 1:], equal_nan=True)
    assert not np.isnan(found[:, 0]).any()
    assert np.all(attributes.share_told(forest, X[:, 2:3].repeat(5, axis=1), y) == 0)
