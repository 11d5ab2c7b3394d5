"""Whom each own tree was grown on: kept in the vault, and in doubt a tree has no say."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from spinney.cohort.encoded import read_encoded
from spinney.cohort.tree_membership import forget_grown, unseen_by
from spinney.cohort.vault import Vault, table_digest
from spinney.rows.parts import Part
from spinney.storage.private import private_folder
from tests.federations import breast_study


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
    cohort = first.cohort.model_copy(update={"path": vault.folder / "renamed.parquet", "digest": table_digest(renamed)})
    pq.write_table(renamed, cohort.path)
    assert not unseen_by(vault, "breast", own, cohort).any()


def test_what_no_model_needs_is_forgotten_but_for_the_newest_rounds(tmp_path: Path):
    vault = Vault(tmp_path)
    folder = private_folder(vault.folder / "grown" / "wood")
    for number in range(1, 41):
        (folder / f"{number}.npz").touch()
    forget_grown(vault, "wood", {3})
    assert sorted(int(path.stem) for path in folder.iterdir()) == [3, *range(11, 41)]


def test_nothing_of_it_is_readable_for_others(two_nights):
    village, *_ = two_nights
    for path in (village.home("ash") / "vault" / "grown").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
