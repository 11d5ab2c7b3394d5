"""A site whose cohort has marked values that break rules, and its check."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.cohort.check_result import CheckResult, check_cohort
from spinney.cohort.vault import Vault
from spinney.rows.cohort_ref import CohortRef
from tests.connectors.great_expectations.contract import CANARY, CANARY_WORD, GOOD, STUDY, Counts, first, table


@pytest.fixture(scope="session")
def marked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CohortRef, CheckResult]:
    """A site whose cohort has marked values that break rules, and its check."""
    home = tmp_path_factory.mktemp("site")
    values = {
        "systolic": first(GOOD["systolic"], CANARY),
        "sex": first(GOOD["sex"], CANARY_WORD),
        "patient": first(GOOD["patient"], CANARY_WORD),
        "diastolic": first(GOOD["diastolic"], CANARY),
        "pulse": first(GOOD["pulse"], CANARY, *[None] * 9),
        "age": first(GOOD["age"], -CANARY),
    }
    ref = Vault(home).write(table(**values), STUDY, None)
    return home, ref, check_cohort(home, STUDY, ref, Counts())
