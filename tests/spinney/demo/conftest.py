"""A made-up hospital's history."""

from __future__ import annotations

import pytest

from spinney.demo.history import MadeUpHistory, make_history
from spinney.demo.hospitals import make_hospitals


@pytest.fixture(scope="session")
def history() -> MadeUpHistory:
    """The hospital that writes as the study does."""
    return make_history(make_hospitals(4, 1600, 3)[1], 3)
