"""Four sites of one concept, with one that is too small, and rounds of them. A file may bring other `people`."""

from __future__ import annotations

import pytest

from tests.spinney.federation.tampered import stopped
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study


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


@pytest.fixture(scope="module")
def finished(wood, people):
    """A round that went well."""
    federation = Wood(wood, people)
    federation.run()
    return federation


@pytest.fixture
def scoring(wood, people):
    """A round that stops after every site has scored, before anybody has signed or released anything."""
    return stopped(Wood(wood, people, lost=dict.fromkeys(SITES, "sign")))
