"""A handful is told as a handful."""

from __future__ import annotations

import pytest

from spinney.rows.floors import few


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0"), (1, "fewer than 5"), (4, "fewer than 5"), (5, "5"), (1234, "1,234")]
)
def test_a_few_are_told_as_few_and_nobody_as_nobody(count: int, told: str) -> None:
    assert few(count) == told
