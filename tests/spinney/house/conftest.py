"""Three sites and a coordinator that have joined each other, and have patients."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.demo.federation import Village
from tests.federations import breast_village
from tests.spinney.house.houses import SITES


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return breast_village(tmp_path, SITES)
