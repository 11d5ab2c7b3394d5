"""What a night of a small federation came to."""

from __future__ import annotations

import pytest

from spinney.reports.facts import NightFacts
from tests.spinney.reports.reported import night_facts, wood


@pytest.fixture(scope="session")
def facts() -> NightFacts:
    return night_facts(wood())
