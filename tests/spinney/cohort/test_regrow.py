"""Trees that stay at home: grown on the last cohort, known to the vault, and the same if a run is repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinney.choice.model import FederatedForest
from spinney.cohort.encoded import encode_table
from spinney.cohort.purge import gone_of, purge, silent_trees
from spinney.cohort.regrow import regrow
from spinney.cohort.tree_membership import forget_grown, unseen_by
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings
from spinney.forest.tree import leaves_only
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.parts import Part
from tests.federations import breast_study, deal
from tests.made_up import pull_at

STUDY = breast_study()
MODEL = FederatedForest.from_trees(leaves_only(4), ["ash"] * 4, np.ones(4), STUDY.features)


@pytest.fixture
def pulled(tmp_path: Path) -> tuple[Vault, CohortRef]:
    """A house whose cohort has passed its checks."""
    settings = deal(tmp_path / "tables", ["ash"])["ash"]
    site = SiteSettings.model_validate({"name": "ash", "home": tmp_path / "home", **settings})
    ref = pull_at(STUDY, site).cohort
    site.vault.accept(ref)
    return site.vault, ref


def test_so_many_trees_are_grown_and_the_vault_knows_on_whom(pulled: tuple[Vault, CohortRef]) -> None:
    vault, ref = pulled
    forest = regrow(vault, STUDY, "ash", MODEL, 3, 5)
    assert forest is not None
    assert len(forest) == 5
    cohort = encode_table(vault, ref, STUDY)
    unseen, training = unseen_by(vault, "breast", forest.digests, ref), cohort.part == Part.TRAINING
    assert unseen[~training].all()
    assert 0.2 < unseen[training].mean() < 0.5
    votes = FederatedForest.from_trees(forest, ["ash"] * 5, np.ones(5), STUDY.features).votes(cohort.X, cohort.present)
    assert np.mean((votes > 0.5) == cohort.y) > 0.85


def test_a_run_that_is_repeated_grows_the_same_trees_and_another_round_others(pulled: tuple[Vault, CohortRef]) -> None:
    vault, _ = pulled
    first, again, other = (regrow(vault, STUDY, "ash", MODEL, round_, 3) for round_ in (3, 3, 4))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.digests == again.digests
    assert not {*first.digests} & {*other.digests}


def test_who_objects_later_silences_trees_that_were_grown_at_home_too(pulled: tuple[Vault, CohortRef]) -> None:
    vault, _ = pulled
    forest = regrow(vault, STUDY, "ash", MODEL, 3, 5)
    assert forest is not None
    purge(vault, "breast", gone_of(vault, [f"p{number:04d}" for number in range(12)]))
    assert silent_trees(vault, "breast") == {*forest.digests}
    without = regrow(vault, STUDY, "ash", MODEL, 3, 5)
    assert without is not None
    assert not {*forest.digests} & {*without.digests}


def test_without_a_cohort_that_has_passed_its_checks_or_for_another_study_none_are_grown(
    pulled: tuple[Vault, CohortRef], tmp_path: Path
) -> None:
    vault, _ = pulled
    assert regrow(Vault(tmp_path / "elsewhere"), STUDY, "ash", MODEL, 3, 5) is None
    assert regrow(vault, breast_study(trees=7), "ash", MODEL, 3, 5) is None
    fewer = FederatedForest.from_trees(leaves_only(4), ["ash"] * 4, np.ones(4), STUDY.features[1:])
    assert regrow(vault, STUDY, "ash", fewer, 3, 5) is None


def test_who_has_grown_them_is_forgotten_with_the_round_of_their_model(pulled: tuple[Vault, CohortRef]) -> None:
    vault, _ = pulled
    forest = regrow(vault, STUDY, "ash", MODEL, 3, 5)
    assert forest is not None
    (kept,) = (vault.folder / "grown" / "breast").iterdir()
    for number in range(10, 41):
        (kept.parent / f"{number}.npz").touch()
    forget_grown(vault, "breast", {3})
    assert kept.exists()
    forget_grown(vault, "breast", set())
    assert not kept.exists()
