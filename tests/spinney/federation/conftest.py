"""Four sites of one concept, and the same with one that is too small."""

from __future__ import annotations

import pytest

from tests.spinney.in_process import Wood, cohort, cohorts, study


@pytest.fixture(scope="session")
def wood():
    return study()


@pytest.fixture(scope="session")
def people(wood):
    return cohorts(wood)


@pytest.fixture(scope="session")
def with_a_small_site(wood, people):
    federation = Wood(wood, {**people, "elm": cohort(wood, 30, 3)})
    federation.run()
    return federation
