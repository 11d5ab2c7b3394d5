"""Whether two nights tell who came between them."""

from __future__ import annotations

import numpy as np

from spinney.attacks import joiners
from tests.spinney.attacks.exporters import people, remembering


def test_who_came_is_found_and_where_nobody_came_nobody_is() -> None:
    X, y = people(240, 3)
    came, nobody = joiners.attack(remembering, X, y, nights=1, joiners=60, trials=3)
    assert came.auc.low > 0.75
    assert nobody.auc.low < 0.5 < nobody.auc.high


def test_more_nights_tell_more() -> None:
    X, y = people(240, 4)
    one, five = (joiners.attack(remembering, X, y, nights=n, joiners=60, trials=3)[0] for n in (1, 4))
    assert five.auc.value > one.auc.value


def test_the_same_release_twice_tells_nothing() -> None:
    X, y = people(80, 5)
    forest = remembering(X[:40], y[:40], 1)
    assert not np.any(joiners.risen([forest], [forest], X, y))
