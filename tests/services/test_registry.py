"""Models elsewhere: on a hospital's MLflow server, served over HTTP, and on a machine with nothing but Spinney."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest

from spinney.configuration.house import RegistrySettings
from spinney.connectors.mlflow import Registry, lineage_of
from tests.connectors.mlflow.registered import frame
from tests.places import ROOT
from tests.servers.migrated import registry_in
from tests.spinney.in_process import Wood, cohorts, study

pytestmark = [pytest.mark.service, pytest.mark.timeout(900)]
TOOLS = Path(sys.executable).parent
MLFLOW = str(TOOLS / "mlflow")
UV = ROOT / ".tools" / "bin" / "uv"
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


@pytest.fixture(scope="module")
def wood() -> Wood:
    made = Wood(study(), cohorts(study()))
    made.run()
    return made


def register(registry: Registry, wood: Wood, round_: int = 1) -> int:
    outcome = wood.outcomes["elm"]
    lineage = lineage_of(wood.study, "elm", outcome.model, round_)
    return registry.promote("wood", registry.register(wood.study, outcome, lineage).number).number


@contextmanager
def running(command: list[str], log: Path, path: str) -> Iterator[str]:
    """A server as a process group of its own, ready when it answers; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=output,
            env={**os.environ, **QUIET, "PATH": f"{TOOLS}:{os.environ['PATH']}"},
            start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _await(process, f"{address}/{path}", log)
            yield address
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="ignore")
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"{url} did not answer in time: {log.read_text(errors='ignore')}")


def test_the_hospital_s_server_keeps_versions_aliases_and_withdrawals(tmp_path: Path, wood: Wood) -> None:
    registry_in(tmp_path / "server")
    database = f"sqlite:///{tmp_path / 'server' / 'registry' / 'mlflow.db'}"
    command = [MLFLOW, "server", "--backend-store-uri", database, "--artifacts-destination", str(tmp_path / "files")]
    with running([*command, "--workers", "1"], tmp_path / "log", "health") as address:
        registry = Registry(tmp_path / "site", RegistrySettings(tracking=address, prefix="north-"))
        assert [register(registry, wood) for _ in range(2)] == [1, 1]
        version, model = registry.champion("wood")
        assert str(version) == "north-wood/1"
        assert model.digest == wood.outcomes["elm"].model.digest
        (made,) = registry.withdraw("wood", "ash")
        assert "ash" not in registry.model(made).owners_
        assert [one.number for one in registry.versions("wood")] == [2]
        assert not [path for path in (tmp_path / "files").rglob("model.json") if '"ash"' in path.read_text()]


def test_mlflow_serves_the_champion_over_http(tmp_path: Path, wood: Wood, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = registry_in(tmp_path)
    register(registry, wood)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", registry.store.tracking)
    rows = frame(20)
    command = [MLFLOW, "models", "serve", "--model-uri", "models:/wood@champion", "--env-manager", "local"]
    with running([*command, "--workers", "1"], tmp_path / "log", "ping") as address:
        plain = json.loads(rows.to_json(orient="split", index=False))
        answer = httpx.post(f"{address}/invocations", json={"dataframe_split": plain}, timeout=60)
    said = [row["probability"] for row in answer.raise_for_status().json()["predictions"]]
    assert said == pytest.approx(wood.outcomes["elm"].model.predict_proba(rows)[:, 1], abs=1e-9)


LOADED = """
import json, sys, warnings
import mlflow, pandas as pd
rows = pd.read_json(sys.argv[2], orient="split")
said = mlflow.pyfunc.load_model(sys.argv[1]).predict(rows)
print(json.dumps([value.hex() for value in said["probability"]]))
"""


def test_a_version_loads_on_a_machine_with_nothing_but_the_wheel_and_says_the_same(tmp_path: Path, wood: Wood) -> None:
    registry = registry_in(tmp_path)
    register(registry, wood)
    folder = registry.store.client.download_artifacts(registry.version("wood", 1).run, "model")
    rows = frame(200)
    rows.to_json(tmp_path / "rows.json", orient="split", double_precision=15)
    python = fresh_machine(tmp_path)
    said = run(python, "-c", LOADED, folder, str(tmp_path / "rows.json"), cwd=tmp_path)
    ours = wood.outcomes["elm"].model.predict_proba(pd.read_json(tmp_path / "rows.json", orient="split"))[:, 1]
    assert np.array_equal([float.fromhex(value) for value in json.loads(said.splitlines()[-1])], ours)


def fresh_machine(folder: Path) -> Path:
    """A virtual environment with the wheel and what uv.lock says that it needs; no project folder, no development."""
    run(UV, "build", "--wheel", "--out-dir", folder / "wheel", ROOT, cwd=ROOT)
    run(UV, "export", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "-o", folder / "locked.txt", cwd=ROOT)
    run(UV, "venv", "--python", sys.executable, folder / "machine", cwd=folder)
    python = folder / "machine" / "bin" / "python"
    wheel = next((folder / "wheel").glob("*.whl"))
    run(UV, "pip", "install", "--python", python, "--constraint", folder / "locked.txt", wheel, cwd=folder)
    return python


def run(*command: object, cwd: Path) -> str:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "UV_PROJ"))
    }
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=clean | QUIET, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout
