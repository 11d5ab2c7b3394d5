"""What several stories begin with."""

from __future__ import annotations

import pytest

from tests.first_night import FirstNight, first_night_in


@pytest.fixture(scope="session")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> FirstNight:
    """Nobody changes it: a story that goes on with it takes a copy."""
    return first_night_in(tmp_path_factory.mktemp("first"))
