"""The page about a cohort's quality, for the site's staff."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.cohort.check_result import CheckResult
from spinney.rows.cohort_ref import CohortRef

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


def test_the_page_shows_failures_first_and_loads_nothing(marked: tuple[Path, CohortRef, CheckResult]) -> None:
    home, _, checked = marked
    page = checked.docs.read_text()
    assert checked.docs == home / "data-docs" / "contract.html"
    assert page.index("<td>failed</td><td>adults</td>") < page.index("<td>kept</td>")
    assert "default-src 'none'" in page
    assert not any(word in page for word in ("http://", "https://", "<script", "src="))
    assert checked.docs.stat().st_mode & 0o777 == 0o600
