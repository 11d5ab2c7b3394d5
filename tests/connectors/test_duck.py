"""The connection that works through a pull: within its limits, and with one meaning for every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.connectors.duck import open_bench
from spinney.errors import SourceFailed


def test_an_unknown_time_zone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="Mars/Olympus is no time zone"):
        open_bench(tmp_path, "Mars/Olympus")
