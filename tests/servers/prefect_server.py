"""A real Prefect server for tests, on a free port of 127.0.0.1 with a home of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self, TypeVar

import httpx

from tests.servers.seaweed import free_ports

PREFECT = Path(sys.executable).parent / "prefect"
STARTS_WITHIN = 180
T = TypeVar("T")


class PrefectServer:
    """`with PrefectServer(folder, template) as server:` then processes run with `server.environment`."""

    def __init__(self, folder: Path, template: Path, settings: Mapping[str, str] | None = None) -> None:
        self.home = folder
        (self.port,) = free_ports(1)
        self.ui = f"http://127.0.0.1:{self.port}"
        self.api = f"{self.ui}/api"
        self._template, self._settings = template, dict(settings or {})

    @property
    def settings(self) -> dict[str, str]:
        """What a flow, a serving process or a command needs to find this server and nothing else."""
        return {
            **quiet_settings(self.home),
            "PREFECT_API_URL": self.api,
            "PREFECT_RUNNER_POLL_FREQUENCY": "1",
            "PREFECT_RUNNER_HEARTBEAT_FREQUENCY": "30",
        }

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment() | self.settings

    def __enter__(self) -> Self:
        shutil.copy(self._template, self.home / "prefect.db")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it answers."""
        own = {
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_SERVER_UI_API_URL": self.api,
            "PREFECT_UI_URL": self.ui,
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",
        }
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(self.port)],
                env=self.environment | own | self._settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_until(self._answers, STARTS_WITHIN, lambda: self.log)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Politely, then not."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def log(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")[-3000:]

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log
        try:
            return httpx.get(f"{self.api}/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False


def quiet_settings(home: Path) -> dict[str, str]:
    """Nothing outside the home, nobody is told, and nobody starts a server of his own."""
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_PROFILES_PATH": str(home / "profiles.toml"),
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "storage"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "DO_NOT_TRACK": "1",
    }


def clean_environment() -> dict[str, str]:
    """The environment without anybody's Prefect settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}


def migrated_database(cache: Path) -> Path:
    """An empty database of this Prefect version, made once and kept: making it takes longer than starting a server."""
    from importlib.metadata import version

    template = cache / f"prefect-{version('prefect')}.db"
    if not template.exists():
        home = cache / f"migrating-{os.getpid()}"
        home.mkdir()
        command = [PREFECT, "server", "database", "upgrade", "-y"]
        subprocess.run(
            command, env=clean_environment() | quiet_settings(home), check=True, capture_output=True, timeout=300
        )
        (home / "prefect.db").replace(template)
        shutil.rmtree(home)
    return template


def wait_until(look: Callable[[], T], seconds: float, explain: Callable[[], object] = lambda: "nothing more") -> T:
    """What `look` finds, as soon as it finds something."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"not within {seconds} s; last words: {explain()}"
        time.sleep(0.1)
    return found
