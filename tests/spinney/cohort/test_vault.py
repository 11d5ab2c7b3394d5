"""The vault: private, the same digest for the same rows, and nothing in it that the study does not name."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spinney.cohort.vault import Vault, table_digest
from spinney.errors import SourceFailed
from spinney.rows.cohort_ref import CohortRef
from spinney.storage.files import RoundState
from spinney.storage.private import OpenToOthers
from tests.made_up import NOW, study
from tests.places import ROOT

TABLE = pa.table(
    {
        "patient": ["ann", "bob", "ann"],
        "index_time": [datetime(2023, 1, day) for day in (3, 2, 1)],
        "weight": [70.5, None, 71.0],
        "outcome": [0, 1, 0],
        "surname": ["Meier", "Huber", "Meier"],
    }
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_private_and_files_too(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    ref = vault.write(TABLE, study(), NOW)
    assert {mode(folder) for folder in (vault.folder, ref.path.parent)} == {0o700}
    assert {mode(file) for file in (ref.path, ref.path.with_suffix(".json"), vault.folder / "key")} == {0o600}


def test_a_folder_that_others_could_read_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault").chmod(0o755)
    with pytest.raises(OpenToOthers, match=f"run: chmod 700 {tmp_path / 'vault'}"):
        Vault(tmp_path)
    assert mode(tmp_path / "vault") == 0o755


def test_only_what_the_study_names_is_written_and_nobody_is_named(tmp_path: Path) -> None:
    ref = Vault(tmp_path).write(TABLE, study(), NOW)
    table = pq.read_table(ref.path)
    assert table.column_names == ["patient", "index_time", "weight", "outcome"]
    for word in (b"Meier", b"ann", b"bob", b"surname"):
        assert word not in ref.path.read_bytes()


def test_a_patients_rows_stay_together_under_the_keyed_hash(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    patients = vault.read(vault.write(TABLE, study(), NOW))["patient"].to_pylist()
    assert len(set(patients)) == 2
    assert all(len(name) == 32 for name in patients)
    assert set(Vault(tmp_path / "elsewhere").pseudonyms(TABLE["patient"]).to_pylist()).isdisjoint(patients)


def test_the_same_rows_in_another_order_have_the_same_digest(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    first = vault.write(TABLE, study(), NOW)
    again = vault.write(TABLE.take([2, 0, 1]), study(), NOW)
    assert again == first


@pytest.mark.parametrize("column", ["weight", "outcome"])
def test_another_value_is_another_digest(tmp_path: Path, column: str) -> None:
    place = TABLE.column_names.index(column)
    changed = TABLE.set_column(place, column, pa.array([2, 1, 0], TABLE.schema.field(column).type))
    vault = Vault(tmp_path)
    assert vault.write(changed, study(), NOW).digest != vault.write(TABLE, study(), NOW).digest


def test_a_missing_value_is_not_a_zero_and_words_do_not_run_together() -> None:
    assert table_digest(pa.table({"x": [0.0]})) != table_digest(pa.table({"x": pa.array([None], pa.float64())}))
    assert table_digest(pa.table({"x": ["ab", "c"]})) != table_digest(pa.table({"x": ["a", "bc"]}))


def test_nan_and_null_and_both_zeros_are_the_same(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    digests = {
        vault.write(TABLE.set_column(2, "weight", pa.array(values, pa.float64())), study(), NOW).digest
        for values in ([0.0, None, 1.0], [-0.0, float("nan"), 1.0])
    }
    assert len(digests) == 1


def test_a_reference_survives_being_written_as_json(tmp_path: Path) -> None:
    ref = Vault(tmp_path).write(TABLE, study(), NOW)
    assert CohortRef.model_validate_json(ref.model_dump_json()) == ref
    assert (ref.rows, ref.study, ref.watermark) == (3, study().digest, NOW)


def test_a_cohort_that_was_changed_or_is_gone_is_not_read(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    ref = vault.write(TABLE, study(), NOW)
    pq.write_table(pq.read_table(ref.path).slice(1), ref.path)
    with pytest.raises(SourceFailed, match="was changed"):
        vault.read(ref)
    ref.path.unlink()
    with pytest.raises(SourceFailed, match="is not there any more"):
        vault.read(ref)


def test_old_cohorts_are_forgotten_and_new_ones_kept(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    old = vault.write(TABLE.slice(1), study(), NOW)
    new = vault.write(TABLE, study(), NOW)
    then = datetime.now(UTC) - timedelta(days=31)
    os.utime(old.path.with_suffix(".json"), (then.timestamp(), then.timestamp()))
    assert vault.cohorts("stays") == [old, new]
    assert vault.forget(timedelta(days=30)) == (1, ())
    assert vault.cohorts("stays") == [new]
    assert not old.path.exists()


def aged(ref: CohortRef) -> CohortRef:
    then = (datetime.now(UTC) - timedelta(days=31)).timestamp()
    for file in ref.path.parent.glob(f"{ref.path.stem}.*"):
        os.utime(file, (then, then))
    return ref


def test_a_cohort_of_a_round_that_is_not_over_is_not_forgotten(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    pinned, other = aged(vault.write(TABLE, study(), NOW)), aged(vault.write(TABLE.slice(1), study(), NOW))
    memory = RoundState(tmp_path / "rounds" / "stays" / "7")
    memory["cohort"] = pinned.model_dump_json()
    assert vault.forget(timedelta(days=30)).cohorts == 1
    assert vault.cohorts("stays") == [pinned]
    assert not other.path.exists()
    memory.forget()
    assert vault.forget(timedelta(days=30)).cohorts == 1
    assert vault.cohorts("stays") == []


def test_a_study_that_is_being_pulled_is_left_alone(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    ref = aged(vault.write(TABLE, study(), NOW))
    with vault.staging("stays"):
        assert vault.forget(timedelta(days=30)) == (0, ("stays",))
    assert vault.cohorts("stays") == [ref]


def test_what_is_forgotten_leaves_nothing_behind(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    ref = vault.write(TABLE, study(), NOW)
    vault.accept(ref)
    aged(ref)
    vault.forget(timedelta(days=30))
    assert not list((tmp_path / "vault" / "cohorts" / "stays").iterdir())


def test_every_folder_on_the_way_to_the_patients_is_private(tmp_path: Path) -> None:
    Vault(tmp_path / "deep" / "home").write(TABLE, study(), NOW)
    folders = [one for one in (tmp_path / "deep").rglob("*") if one.is_dir()]
    assert {mode(one) for one in [tmp_path / "deep", *folders]} == {0o700}


FULL = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from tests.made_up import pull_at
from tests.made_up import patient, site, study, write, observation, STAY, RIPENER
folder = Path(sys.argv[1])
crowd = [observation(f"2023-01-0{1 + n % 9}T00:00:00Z", float(n)) for n in range(4000)]
write(folder / "fhir", [patient(), STAY, RIPENER, *crowd])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    pull_at(study(), site(folder), now=datetime(2024, 1, 1, tzinfo=UTC))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("bytes_at_most", [300, 20_000])
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(tmp_path: Path, bytes_at_most: int) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path), str(bytes_at_most)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert said.startswith("SourceFailed there is no room left in ")
    left = [one.name for one in (tmp_path / "home").rglob("*") if one.is_file() and one.suffix != ".lock"]
    assert set(left) <= {"key"}


def test_staging_is_private_and_gone_when_the_pull_is_done(tmp_path: Path) -> None:
    with Vault(tmp_path).staging("stays") as folder:
        assert mode(folder) == 0o700
        (folder / "raw.ndjson").write_text("{}")
    assert not folder.exists()


def fail_in_staging(vault: Vault, error: Exception) -> None:
    with vault.staging("stays") as folder:
        (folder / "half").touch()
        raise error


def test_staging_stays_when_a_source_fails_so_that_it_can_go_on(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    with pytest.raises(SourceFailed):
        fail_in_staging(vault, SourceFailed("line cut"))
    with vault.staging("stays") as again:
        assert (again / "half").exists()


def test_staging_goes_when_anything_else_fails(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    with pytest.raises(ValueError, match="bug"):
        fail_in_staging(vault, ValueError("bug"))
    assert not (vault.folder / "staging" / "stays").exists()


def test_two_pulls_of_a_study_at_once_are_refused(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    with vault.staging("stays"), pytest.raises(SourceFailed, match="another pull"), Vault(tmp_path).staging("stays"):
        pass


def test_a_salt_is_the_house_s_own_and_no_patient_s_pseudonym(tmp_path: Path) -> None:
    vault, elsewhere = Vault(tmp_path / "here"), Vault(tmp_path / "elsewhere")
    assert vault.salt == Vault(tmp_path / "here").salt != elsewhere.salt
    hidden = vault.pseudonyms(pa.array(["spinney draws", "spinney-draws", ""])).to_pylist()
    assert not any(vault.salt.startswith(one) for one in hidden)


def test_a_damaged_key_is_named_and_not_replaced(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    (vault.folder / "key").write_bytes(b"short")
    with pytest.raises(SourceFailed, match="key is damaged"):
        vault.pseudonyms(TABLE["patient"])


def test_what_a_killed_writer_left_is_forgotten_too(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    folder = tmp_path / "vault" / "cohorts" / "s"
    store = vault.store("bulk")
    folder.mkdir(parents=True)
    left = [folder / "abc-def.partial", folder / "abc-123.parquet", store / "Patient.ndjson"]
    for path in left:
        path.write_bytes(b"rows")
        os.utime(path, (0, 0))
    os.utime(store, (0, 0))
    vault.forget(timedelta(days=30))
    assert [path for path in left if path.exists()] == []
