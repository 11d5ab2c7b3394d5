"""Trees that grow on a real Dask cluster of two processes: the same as on one machine, also when workers die."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from distributed import LocalCluster
from distributed.security import Security
from pydantic import ValidationError

from spinney.configuration.site import read_site
from spinney.connectors import dask_cluster
from spinney.connectors.dask_cluster import ClusterFailed, DaskSettings, cluster_of, reach
from spinney.demo.federation import COORDINATOR
from spinney.doctor.reach import examine
from spinney.forest.export import export_forest
from spinney.forest.grow import Grown, grow
from spinney.study.settings import ForestSettings
from tests.federations import breast_study, breast_village, simulated
from tests.nights import others
from tests.spinney.forest.grids import on_steps

GRID = on_steps([1 / 65] * 6)
REMOTE = "tcp://dask.hospital.example:8786"


def local_cluster(workers: int = 2, security: Security | None = None) -> LocalCluster:
    """Processes of their own that listen on this machine only."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        security=security,
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster() as started:
        yield started


@pytest.fixture
def settings(cluster: LocalCluster) -> DaskSettings:
    return DaskSettings(address=cluster.scheduler_address, patience=60)


@pytest.fixture(scope="module")
def table() -> SimpleNamespace:
    """Patients with several rows and gaps."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 6)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 0.4, len(X)) > 1).astype(np.int8)
    X[rng.random(X.shape) < 0.1] = np.nan
    return SimpleNamespace(X=X, y=y, patients=np.arange(len(X)) // 3)


def digests(grown: Grown, table: SimpleNamespace) -> tuple[str, ...]:
    """What the trees are called when they leave."""
    forest = export_forest(grown.trees, grown.drawn, table.X, table.y, table.patients, floor=5, rounding=GRID)
    return forest.digests


def grown_on(settings: DaskSettings | None, table: SimpleNamespace, trees: int = 20, engine: str = "spinney") -> Grown:
    chosen = ForestSettings(trees=trees, engine=engine)
    spread = cluster_of(settings)
    return grow(table.X, table.y, table.patients, chosen, 3, jobs=2, spread=spread, rounding=GRID, floor=5)


@pytest.mark.parametrize("engine", ["spinney", "scikit-learn"])
def test_two_workers_of_a_cluster_grow_the_trees_of_one_machine(settings, table, engine) -> None:
    there, here = (grown_on(where, table, engine=engine) for where in (settings, None))
    assert digests(there, table) == digests(here, table)
    assert np.array_equal(there.drawn, here.drawn)


def test_the_trees_do_grow_on_the_cluster_and_nothing_stays_there(cluster, settings, table) -> None:
    before = sum(worker.nbytes for worker in cluster.scheduler.workers.values())
    seen = threading.Event()
    watcher = threading.Thread(target=lambda: wait_for_work(cluster) and seen.set())
    watcher.start()
    grown_on(settings, table)
    watcher.join()
    assert seen.is_set()
    until(lambda: sum(worker.nbytes for worker in cluster.scheduler.workers.values()) == before)


def until(true: object, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return True


def wait_for_work(cluster: LocalCluster) -> bool:
    def growing() -> bool:
        return any("_called" in str(key) for key in list(cluster.scheduler.tasks))

    return until(growing)


@pytest.mark.parametrize("how_many", [1, 2])
def test_when_workers_are_killed_the_trees_are_the_same(cluster, settings, table, how_many) -> None:
    until(lambda: len(cluster.scheduler.workers) == 2)
    victims = [nanny.pid for nanny in cluster.workers.values()][:how_many]

    def kill() -> None:
        wait_for_work(cluster)
        for victim in victims:
            os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    there = grown_on(settings, table, trees=100)
    killer.join()
    assert digests(there, table) == digests(grown_on(None, table, trees=100), table)


def test_a_cluster_that_loses_its_workers_for_good_is_an_error_that_says_what_to_do(table) -> None:
    with local_cluster(1) as cluster:
        dismiss = threading.Thread(target=lambda: wait_for_work(cluster) and cluster.scale(0))
        dismiss.start()
        with pytest.raises(ClusterFailed, match="lost its workers while trees grew"):
            grown_on(DaskSettings(address=cluster.scheduler_address, patience=10), table, trees=400)
        dismiss.join()


def test_a_whole_round_with_a_site_on_a_cluster_gives_the_model_of_the_simulation(cluster, tmp_path: Path) -> None:
    until(lambda: len(cluster.scheduler.workers) == 2)
    village = breast_village(tmp_path, ("ash", "birch", "cedar"))
    path = village.site_file("ash")
    words = yaml.safe_load(path.read_text()) | {"dask": {"address": cluster.scheduler_address}}
    path.write_text(yaml.safe_dump(words))
    tasks = cluster.scheduler.transition_counter
    with others(village) as running:
        ended = {name: one.result() for name, one in running.items()}
    assert cluster.scheduler.transition_counter > tasks
    reference = simulated(village, breast_study())
    assert ended[COORDINATOR]["model"] == reference.model_digest
    assert ended["ash"].outcome.model.digest == reference.outcomes["ash"].model.digest
    findings = {finding.check: finding for finding in examine(read_site(path), "", 0)}
    assert findings["dask"].state == "ok"
    assert "2 workers, 2 threads, versions as here" in findings["dask"].words


def test_rows_travel_encrypted_to_a_cluster_with_certificates(tmp_path: Path, table) -> None:
    security = Security.temporary()
    paths = {"ca": "tls_ca_file", "certificate": "tls_client_cert", "key": "tls_client_key"}
    for name, field in paths.items():
        (tmp_path / f"{name}.pem").write_text(getattr(security, field))
    with local_cluster(1, security) as cluster:
        files = {name: tmp_path / f"{name}.pem" for name in paths}
        settings = DaskSettings(address=cluster.scheduler_address, **files)
        assert settings.address.startswith("tls://")
        work = threading.Thread(target=wait_for_work, args=[cluster])
        work.start()
        assert digests(grown_on(settings, table), table) == digests(grown_on(None, table), table)
        work.join()

        stranger = Security.temporary()
        files["ca"].write_text(str(stranger.tls_ca_file))
        with pytest.raises(ClusterFailed, match=r"does not answer .* check dask in site.yaml, its"):
            reach(settings.model_copy(update={"patience": 2}))


def test_a_scheduler_that_is_not_there_is_an_error_that_names_it() -> None:
    with pytest.raises(ClusterFailed, match=r"tcp://127.0.0.1:1 does not answer .*that the scheduler runs"):
        reach(DaskSettings(address="tcp://127.0.0.1:1", patience=1))


def test_a_cluster_without_workers_is_an_error_after_a_while() -> None:
    with local_cluster(0) as empty, pytest.raises(ClusterFailed, match="has no worker after 1 s"):
        reach(DaskSettings(address=empty.scheduler_address, patience=1))


def test_workers_with_other_versions_would_grow_other_trees_and_are_refused(settings, monkeypatch) -> None:
    monkeypatch.setattr(dask_cluster, "version", lambda _: "0.0.1")  # of this site; the workers tell theirs
    with pytest.raises(ClusterFailed, match=r"a worker of .* has spinney \S+, this site 0.0.1: the same seed"):
        reach(settings)


def test_without_the_extra_the_error_says_what_to_install(settings, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterFailed, match=r"needs the package distributed: install spinney\[dask\]"):
        reach(settings)


def test_rows_go_to_another_machine_only_encrypted() -> None:
    with pytest.raises(ValidationError, match="in clear to another machine"):
        DaskSettings(address=REMOTE)
    with pytest.raises(ValidationError, match="tls:// needs ca, certificate and key"):
        DaskSettings(address="tls://dask.hospital.example:8786")
    assert DaskSettings(address="tcp://[::1]:8786").address
