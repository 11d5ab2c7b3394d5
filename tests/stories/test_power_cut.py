"""The power fails: what has a name is whole, and whatever was there, the next night finds its way."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from spinney.cohort.check_result import check_cohort
from spinney.cohort.encoded import read_encoded, write_encoded
from spinney.cohort.pull_report import PullReport
from spinney.configuration.site import SiteSettings, read_site
from spinney.rows.cohort_ref import CohortRef
from tests.federations import breast_study, breast_table, breast_village
from tests.first_night import FirstNight
from tests.forgetful import Disk, PowerCut, forgetful

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

NOT_OURS = ("registry/mlflow.db", "studies/", "keys/identity")  # SQLite syncs for itself; papers were there before


@pytest.fixture
def watched(first_night: FirstNight) -> Disk:
    return first_night.disk


def test_nothing_gets_its_name_before_it_is_on_the_disk(watched: Disk) -> None:
    assert len(watched.named) > 20
    assert watched.wrong == []


def test_everything_that_the_next_night_relies_on_is_on_the_disk(watched: Disk) -> None:
    files = {path.relative_to(watched.folder).as_posix(): path for path in watched.folder.rglob("*") if path.is_file()}
    ours = {name: path for name, path in files.items() if not name.startswith(NOT_OURS) and path.stat().st_size}
    assert {"vault", "registry", "outbox", "audit.jsonl", "nights", "epochs"} <= {name.split("/")[0] for name in ours}
    assert [name for name, path in ours.items() if watched.forgets(path)] == []


def test_wherever_the_power_fails_between_pull_and_round_the_next_night_has_its_cohort(tmp_path: Path) -> None:
    village = breast_village(tmp_path, ["ash"], trees=3)
    site, study = read_site(village.site_file("ash")), breast_study(trees=3)
    rows = [pa.table({name: one.to_list() for name, one in breast_table().iloc[k::3].items()}) for k in range(2)]
    evening(site, rows[0])
    with forgetful(site.home) as disk:
        evening(site, rows[1])
    assert disk.wrong == []
    assert len(disk.named) >= 4
    for place in range(len(disk.named)):
        for path in (site.home / "vault" / "cohorts" / "breast").iterdir():
            path.unlink()
        evening(site, rows[0])
        with pytest.raises(PowerCut), forgetful(site.home, place):
            evening(site, rows[1])
        ref = evening(site, rows[1])
        assert len(read_encoded(ref, study)) == ref.rows == rows[1].num_rows


def evening(site: SiteSettings, rows: pa.Table) -> CohortRef:
    """What a night does before its round, but for asking the source."""
    study = breast_study(trees=3)
    ref = site.vault.write(rows, study, None)
    check_cohort(site.home, study, ref, PullReport())
    return write_encoded(site.vault, ref, study)


def test_a_disk_that_forgets_is_told_from_one_that_does_not(tmp_path: Path) -> None:
    with forgetful(tmp_path) as disk:
        (tmp_path / "draft").write_bytes(b"not synced")
        os.rename(tmp_path / "draft", tmp_path / "named")
        with (tmp_path / "draft").open("wb") as file:
            file.write(b"synced")
            file.flush()
            os.fsync(file.fileno())
        os.replace(tmp_path / "draft", tmp_path / "other")
    assert disk.wrong == ["named is named before draft is synced", "named may be lost while other is there"]
