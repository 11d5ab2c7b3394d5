"""The champion of the registry in the next night's choice, over real houses and a real vault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from spinney.cohort.encoded import read_encoded
from spinney.cohort.tree_membership import forget_grown, unseen_by
from spinney.cohort.vault import Vault, digest_of
from spinney.configuration.site import read_site
from spinney.connectors.mlflow import Registry, lineage_of
from spinney.demo.federation import Village
from spinney.house.champion import incumbent_of
from spinney.house.site_night import RoundResult as Night
from spinney.rows.parts import Part
from spinney.storage.private import private_folder
from spinney.study.study import Study
from spinney.tasks.site import patients_of
from tests.federations import breast_study, breast_village
from tests.servers.migrated import registry_in
from tests.spinney.house.test_site_night import SITES, night


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Village, Night, Night]:
    """Ash has a champion from the first night; in the second it is judged."""
    village = breast_village(tmp_path_factory.mktemp("village"), SITES)
    _, parts = night(village)
    registry = registry_in(village.home("ash"))
    register(registry, breast_study(), parts["ash"])
    registry.promote("breast", 1)
    _, later = night(village)
    return village, parts["ash"], later["ash"]


def register(registry: Registry, study: Study, part: Night) -> None:
    assert part.outcome is not None
    lineage = lineage_of(study, "ash", part.outcome.model, part.number, part.cohort.digest)
    registry.register(study, part.outcome, lineage)


def test_the_first_night_has_no_champion_and_the_second_judges_it(two_nights):
    _, first, second = two_nights
    assert first.outcome.succession is None
    assert second.outcome.succession.champion == "1"
    assert second.outcome.succession.patients > 0
    assert second.outcome.takes_over == (second.outcome.succession.reason == "it is not worse beyond noise")
    assert "auroc" in second.outcome.gain_over_champion


def test_the_vault_knows_whom_each_own_tree_has_seen(two_nights):
    village, first, _ = two_nights
    vault, model = Vault(village.home("ash")), first.outcome.model
    own = [tree for tree, owner in zip(model.forest_.digests, model.owners_, strict=True) if owner == "ash"]
    unseen = unseen_by(vault, "breast", own, first.cohort)
    training = read_encoded(first.cohort, breast_study()).part == Part.TRAINING
    assert unseen[~training].all()
    assert 0.2 < unseen[training].mean() < 0.5  # a bootstrap leaves out about 37 of 100


def test_a_tree_that_the_vault_does_not_know_has_no_say_on_anybody(two_nights):
    village, first, _ = two_nights
    assert not unseen_by(Vault(village.home("ash")), "breast", ["0" * 32], first.cohort).any()


def test_with_a_new_key_of_the_vault_own_trees_have_no_say_instead_of_one_on_patients_they_have_seen(two_nights):
    village, first, _ = two_nights
    vault, model = Vault(village.home("ash")), first.outcome.model
    own = [tree for tree, owner in zip(model.forest_.digests, model.owners_, strict=True) if owner == "ash"]
    table = vault.read(first.cohort)
    renamed = table.set_column(0, "patient", vault.pseudonyms(table["patient"]))
    cohort = first.cohort.model_copy(update={"path": vault.folder / "renamed.parquet", "digest": digest_of(renamed)})
    pq.write_table(renamed, cohort.path)
    assert not unseen_by(vault, "breast", own, cohort).any()


def test_the_champion_is_pinned_to_the_round(two_nights):
    village, first, _ = two_nights
    registry, study = registry_in(village.home("ash")), breast_study()
    memory: dict[str, object] = {}
    patients = patients_of(read_site(village.site_file("ash")), study)
    before = incumbent_of(registry, patients, study, "ash", memory, first.cohort)
    assert (before.version, memory) == ("1", {"champion": "1"})
    again = incumbent_of(registry, patients, study, "ash", {"champion": ""}, first.cohort)
    assert again is None
    assert before.promised == first.outcome.decision.cross_validated[first.outcome.decision.name]
    assert np.isfinite(before.votes(read_encoded(first.cohort, study))).all()


def test_what_no_model_needs_is_forgotten_but_for_the_newest_rounds(tmp_path: Path):
    vault = Vault(tmp_path / "home")
    folder = private_folder(vault.folder / "grown" / "wood")
    for number in range(1, 41):
        (folder / f"{number}.npz").touch()
    forget_grown(vault, "wood", {3})
    assert sorted(int(path.stem) for path in folder.iterdir()) == [3, *range(11, 41)]


def test_nothing_of_it_is_readable_for_others(two_nights):
    village, *_ = two_nights
    for path in (village.home("ash") / "vault" / "grown").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
