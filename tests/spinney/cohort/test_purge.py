"""Somebody leaves what earlier nights have kept; the trees that they have grown are silent, and nobody else's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from spinney.cohort.encoded import read_encoded, write_encoded
from spinney.cohort.purge import gone_of, purge, purge_others, silent_trees
from spinney.cohort.tree_membership import unseen_by
from spinney.cohort.vault import Vault
from spinney.rows.cohort_ref import CohortRef
from spinney.scoring.predictions import Predictions
from spinney.storage import locks
from spinney.storage.private import private_folder
from tests.made_up import plain_study

PEOPLE = ("ann", "bob", "cy", "di")


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "home")


def cohort(vault: Vault, *people: str, study: str = "plain") -> CohortRef:
    of = plain_study().model_copy(update={"name": study})
    columns = {"patient": [*people, *people], "index_time": pd.date_range("2023-01-01", periods=2 * len(people))}
    values = {"weight": np.arange(2.0 * len(people)), "height": 1.0, "outcome": ["1", "0"] * len(people)}
    table = pa.Table.from_pandas(pd.DataFrame({**columns, **values}), preserve_index=False)
    return vault.write(table, of, None)


def grown(vault: Vault, trees: dict[str, tuple[str, ...]], study: str = "plain") -> None:
    """As `remember_grown` writes it: by pseudonym, who has grown which tree."""
    hidden = np.array(vault.pseudonyms(pa.array(PEOPLE)).to_pylist(), dtype="S32")
    order = np.argsort(hidden)
    seen = np.array([[who in grew for grew in trees.values()] for who in PEOPLE])[order]
    folder = private_folder(vault.folder / "grown" / study)
    names = np.array([*trees], dtype="S32")
    np.savez(folder / "1.npz", people=hidden[order], trees=names, seen=np.packbits(seen, axis=0))


def test_rows_leave_a_cohort_and_its_arrays_and_all_else_stays(vault: Vault) -> None:
    study = plain_study()
    before = write_encoded(vault, cohort(vault, *PEOPLE), study)
    vault.accept(before)
    done = purge(vault, "plain", gone_of(vault, ["bob"]))
    (left,) = vault.cohorts("plain")
    assert done.replaced == {before.digest: left}
    assert (done.rows, left.rows) == (2, 6)
    assert vault.read(left)["weight"].to_pylist() == [
        weight
        for who, weight in zip(
            *(
                vault.read(cohort(Vault(vault.folder.parent), "ann", "bob", "cy", "di"))[name].to_pylist()
                for name in ("patient", "weight")
            ),
            strict=True,
        )
        if who != vault.pseudonyms(pa.array(["bob"]))[0].as_py()
    ]
    assert vault.is_accepted(left)
    arrays = read_encoded(left, study)
    assert (arrays.patient_count, len(arrays)) == (3, 6)
    assert sorted({*arrays.patients.tolist()}) == [0, 1, 2]


def test_a_cohort_of_nobody_else_goes_as_a_whole(vault: Vault) -> None:
    before = cohort(vault, "bob")
    assert purge(vault, "plain", gone_of(vault, ["bob"])).replaced == {before.digest: None}
    assert [*before.path.parent.iterdir()] == []


def test_what_is_left_is_as_old_as_it_was(vault: Vault) -> None:
    import os

    before = cohort(vault, *PEOPLE)
    os.utime(before.path.with_suffix(".json"), (1e9, 1e9))
    purge(vault, "plain", gone_of(vault, ["bob"]))
    assert vault.forget(timedelta(days=3000), datetime.now(UTC)).cohorts == 1


def test_a_cohort_of_a_round_that_is_not_over_is_left_unless_it_is_asked_for(vault: Vault) -> None:
    before = cohort(vault, *PEOPLE)
    pin = private_folder(vault.folder.parent / "rounds" / "plain" / "3") / "cohort.text"
    pin.write_text(before.model_dump_json())
    assert purge(vault, "plain", gone_of(vault, ["bob"])).rows == 0
    assert purge(vault, "plain", gone_of(vault, ["bob"]), pinned=True).rows == 2


def test_kept_predictions_go(vault: Vault) -> None:
    home = vault.folder.parent
    hidden = vault.pseudonyms(pa.array(PEOPLE))
    times = pd.date_range("2023-01-01", periods=4)
    table = pa.table({"patient": hidden, "index_time": times, "probability": [0.1] * 4, "decision": [False] * 4})
    Predictions(home, "plain").add(table, 1, datetime.now(UTC))
    assert purge(vault, "plain", gone_of(vault, ["bob"])).predictions == 1
    assert len(Predictions(home, "plain").of(1)) == 3


def test_trees_that_somebody_has_grown_are_silent_and_have_no_say_on_anybody(vault: Vault) -> None:
    trees = {"a" * 32: ("ann", "bob"), "b" * 32: ("ann",), "c" * 32: ("cy", "di"), "d" * 32: ("bob",)}
    grown(vault, trees)
    ref = cohort(vault, "ann", "cy", "di")
    before = unseen_by(vault, "plain", [*trees], ref)
    assert purge(vault, "plain", gone_of(vault, ["bob"])).silenced == 2
    assert silent_trees(vault, "plain") == {"a" * 32, "d" * 32}
    after = unseen_by(vault, "plain", [*trees], ref)
    np.testing.assert_array_equal(after[:, [1, 2]], before[:, [1, 2]])
    assert not after[:, [0, 3]].any()


def test_who_leaves_is_not_in_the_notes_of_the_trees_any_more(vault: Vault) -> None:
    grown(vault, {"a" * 32: ("ann",)})
    bob = vault.pseudonyms(pa.array(["bob"]))[0].as_py().encode()
    path = vault.folder / "grown" / "plain" / "1.npz"
    assert bob in path.read_bytes()
    purge(vault, "plain", gone_of(vault, ["bob"]))
    assert bob not in path.read_bytes()


def test_silence_adds_up_and_asking_again_changes_nothing(vault: Vault) -> None:
    grown(vault, {"a" * 32: ("bob",), "b" * 32: ("cy",), "c" * 32: ("di",)})
    purge(vault, "plain", gone_of(vault, ["bob"]))
    assert purge(vault, "plain", gone_of(vault, ["bob"])).silenced == 0
    purge(vault, "plain", gone_of(vault, ["bob", "cy"]))
    assert silent_trees(vault, "plain") == {"a" * 32, "b" * 32}


def test_where_a_yes_is_wanted_all_others_go(vault: Vault) -> None:
    cohort(vault, *PEOPLE)
    purge(vault, "plain", gone_of(vault, ["bob"], ["ann", "bob"]))
    assert [ref.rows for ref in vault.cohorts("plain")] == [2]


def test_studies_that_have_no_nights_any_more_are_searched_too_and_busy_ones_are_told(vault: Vault) -> None:
    for study in ("old", "busy", "plain"):
        cohort(vault, *PEOPLE, study=study)
    with locks.alone(private_folder(vault.folder.parent / "rounds" / "busy") / ".lock", RuntimeError("no")):
        assert purge_others(vault, "plain", gone_of(vault, ["bob"])) == ("busy",)
    assert {study: vault.cohorts(study)[0].rows for study in ("old", "busy", "plain")} == {
        "old": 6,
        "busy": 8,
        "plain": 8,
    }
