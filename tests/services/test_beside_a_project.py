"""Spinney's wheel beside a hospital's own Prefect project, which has folders called as ours are."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from spinney.demo.federation import Village
from tests.federations import breast_village, registered
from tests.nights import others
from tests.servers.installed import Installed, installed, names_in, wheel, wheel_from_sdist
from tests.servers.migrated import registry_in
from tests.servers.prefect_server import PrefectServer
from tests.servers.serving import Serving, add_settings, await_state, start

pytestmark = [pytest.mark.service, pytest.mark.timeout(900)]

ETL = """
from connectors.his import NAME
from prefect import flow
from tasks.clean import cleaned

@flow
def nightly_etl() -> str:
    return cleaned(NAME)

if __name__ == "__main__":
    nightly_etl.serve(name="theirs")
"""
LOOK = """
import json, sys
import flows.nightly_etl, connectors.his, tasks.clean
import spinney.flows.site_check, spinney.connectors.exchange, spinney.tasks.cohort
print(json.dumps([flows.nightly_etl.__file__, spinney.flows.site_check.__file__]))
"""
ASK = """
import json, sys, pandas as pd, mlflow
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model("models:/breast@champion")
columns = [column.name for column in model.metadata.get_input_schema().inputs]
print(json.dumps([model.metadata.flavors["python_function"]["loader_module"],
                  model.predict(pd.DataFrame([[1.0] * len(columns)], columns=columns))["probability"].tolist()]))
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(tmp_path_factory.mktemp("hospital"))


@pytest.fixture(params=[True, False], ids=["packages", "folders"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """With `__init__.py` in its folders, and without."""
    return project_in(tmp_path / "project", with_init=request.param)


def project_in(folder: Path, *, with_init: bool) -> Path:
    for room, file, text in (
        ("flows", "nightly_etl.py", ETL),
        ("tasks", "clean.py", "def cleaned(name: str) -> str:\n    return name.strip()\n"),
        ("connectors", "his.py", "NAME = ' the hospital '\n"),
    ):
        (folder / room).mkdir(parents=True)
        (folder / room / file).write_text(text)
        if with_init:
            (folder / room / "__init__.py").touch()
    return folder


def environment(server: PrefectServer | None = None, **more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**plain, **(server.environment if server else {}), **more}


def said(command: list[object], folder: Path, there: Mapping[str, str]) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, env=there, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_ways_to_a_wheel_give_the_same_files(tmp_path: Path) -> None:
    direct, from_source = names_in(wheel(tmp_path / "direct")), names_in(wheel_from_sdist(tmp_path / "source"))
    assert direct == from_source
    assert {"spinney/flows/site_round.py", "spinney/tasks/round.py", "spinney/connectors/duck.py"} <= direct
    assert {name.split("/")[0].split("-")[0] for name in direct} == {"spinney"}


def test_neither_hides_the_other_on_the_path(here: Installed, project: Path, tmp_path: Path) -> None:
    there = environment(PYTHONPATH=str(project))
    theirs, ours = json.loads(said([here.python, "-c", LOOK], tmp_path, there))
    assert Path(theirs).is_relative_to(project)
    assert Path(ours).is_relative_to(here.folder)
    assert said([here.spinney, "--version"], tmp_path, there).startswith("spinney, version ")


def test_neither_hides_the_other_in_the_project_s_folder(here: Installed, project: Path) -> None:
    theirs, ours = json.loads(said([here.python, "-c", LOOK], project, environment()))
    assert Path(theirs).resolve().is_relative_to(project)
    assert Path(ours).is_relative_to(here.folder)
    assert said([here.spinney, "--version"], project, environment()).startswith("spinney, version ")


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    """Maple has a champion from a night before."""
    village = breast_village(tmp_path_factory.mktemp("village"), ("maple", "birch", "cedar"))
    with others(village) as running:
        part = running["maple"].result()
    registered(village, "maple", part, admission="not needed")
    registry_in(village.home("maple")).promote("breast", 1)
    return village


@pytest.fixture(params=["on the path", "as the current folder"])
def served(
    request: pytest.FixtureRequest, here: Installed, village: Village, prefect_server: PrefectServer, tmp_path: Path
) -> Iterator[tuple[Serving, subprocess.Popen[bytes]]]:
    """One process serves our deployments and one theirs."""
    project = project_in(tmp_path / "project", with_init=request.param == "on the path")
    folder, more = (tmp_path, {"PYTHONPATH": str(project)}) if "path" in request.param else (project, {})
    there = environment(prefect_server, **more)
    add_settings(village.site_file("maple"), {"prefect": {"schedule": "none"}})
    ours = Serving(prefect_server, "site", village.site_file("maple"), folder, spinney=here.spinney, environment=there)
    theirs = subprocess.Popen(
        [here.python, project / "flows" / "nightly_etl.py"], cwd=folder, env={**there, "PYTHONPATH": str(project)}
    )
    try:
        with ours:
            yield ours, theirs
    finally:
        theirs.terminate()
        theirs.wait(60)


def test_deployments_of_both_run_to_their_end(served: tuple[Serving, subprocess.Popen[bytes]]) -> None:
    ours, _ = served
    runs = [start("site-check/maple-breast"), start("nightly-etl/theirs")]
    for run in runs:
        await_state(run, lambda found: found.state.is_final(), lambda: ours.log)
        assert await_state(run, lambda found: found.state.is_final(), lambda: ours.log).state.is_completed(), ours.log


def test_the_champion_is_loaded_in_the_project(here: Installed, village: Village, project: Path) -> None:
    database = village.home("maple") / "registry" / "mlflow.db"
    answer = said([here.python, "-c", ASK, f"sqlite:///{database}"], project, environment())
    loader, probabilities = json.loads(answer.splitlines()[-1])
    assert loader == "spinney.connectors.mlflow.loader"
    assert 0 <= probabilities[0] <= 1
