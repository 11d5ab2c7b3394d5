"""What a night may ask about a house's patients, and that it is no way into the vault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinney.cohort.encoded import encode_table, write_encoded
from spinney.cohort.patients import Patients
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.describe import characteristic_vector
from spinney.rows.parts import Part
from spinney.study.study import Study
from tests.federations import breast_study, deal
from tests.made_up import pull_at


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Patients, CohortRef, Study, Path]:
    """One site's cohort, encoded."""
    from spinney.configuration.site import SiteSettings

    folder = tmp_path_factory.mktemp("ash")
    settings = deal(folder / "tables", ["ash"])["ash"]
    site, study = SiteSettings.model_validate({"name": "ash", "home": folder / "home", **settings}), breast_study()
    ref = write_encoded(site.vault, pull_at(study, site).cohort, study)
    return Patients(site.vault, study, site.dask), ref, study, folder / "home"


def test_rows_are_the_arrays_that_were_encoded(known: tuple[Patients, CohortRef, Study, Path]) -> None:
    from spinney.cohort.vault import Vault

    patients, ref, study, home = known
    again = encode_table(Vault(home), ref, study)
    for name in ("X", "y", "patients", "part", "present"):
        np.testing.assert_array_equal(getattr(patients.rows(ref), name), getattr(again, name))


def test_the_vector_is_the_one_that_joining_tells(known: tuple[Patients, CohortRef, Study, Path]) -> None:
    patients, ref, study, _ = known
    told = patients.told_vector(ref)
    training = patients.rows(ref).rows(Part.TRAINING)
    assert list(told.values()) == characteristic_vector(training, study.privacy).tolist()
    assert list(told) == [feature.name for feature in study.features]
    assert [*told.values()] == pytest.approx(training.X.mean(axis=0), abs=5e-4)


def test_a_cohort_that_is_too_small_tells_nothing(known: tuple[Patients, CohortRef, Study, Path]) -> None:
    from spinney.cohort.vault import Vault

    _, ref, study, home = known
    strict = Patients(Vault(home), study.with_settings(privacy={"smallest_cohort": 10_000}))
    assert strict.told_vector(ref) == {}


def test_trees_grow_here_where_there_is_no_cluster(known: tuple[Patients, CohortRef, Study, Path]) -> None:
    assert known[0].spread is None


def test_it_offers_nothing_but_what_a_night_needs(known: tuple[Patients, CohortRef, Study, Path]) -> None:
    offered = {name for name in dir(known[0]) if not name.startswith("_")}
    assert offered == {"spread", "rows", "unseen_by", "remember_grown", "forget_grown", "told_vector"}
