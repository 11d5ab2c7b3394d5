"""A Prefect server on a free port of 127.0.0.1 with a home of its own; gone when it is no longer needed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Self, TypeVar

import httpx

from spinney.demo.guard import under_guard
from spinney.demo.leftovers import note
from spinney.errors import SpinneyError
from spinney.storage import locks

PREFECT = Path(sys.executable).parent / "prefect"
STARTS_WITHIN = 180.0
T = TypeVar("T")


class ServerFailed(SpinneyError):
    """A server did not start; the message says where its log is."""


class PrefectServer:
    """`with PrefectServer(folder, template) as server:` then processes run with `server.environment`."""

    def __init__(self, folder: Path, template: Path, settings: Mapping[str, str] | None = None) -> None:
        self.home, self.port = folder.resolve(), free_port()
        self.ui = f"http://127.0.0.1:{self.port}"
        self.api = f"{self.ui}/api"
        self.template, self._settings = template, dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """What a flow, a serving process or a command needs to find this server and nothing else."""
        return {**quiet_settings(self.home), "PREFECT_API_URL": self.api}

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment() | self.settings

    @property
    def log_file(self) -> Path:
        return self.home / "server.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it answers."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (self.home / "prefect.db").exists():
            shutil.copy(self.template, self.home / "prefect.db")
        own = {
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_SERVER_UI_API_URL": self.api,
            "PREFECT_UI_URL": self.ui,
        }
        command: list[str | Path] = [PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = start_process(command, self.environment | own | self._settings, self.log_file)
        try:
            with self.http() as client:
                if not wait_until(lambda: self._answers(client), STARTS_WITHIN):
                    raise ServerFailed(f"the Prefect server does not answer; its last words are in {self.log_file}")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Politely, then not."""
        process, self._process = self._process, None
        if process is not None:
            stop_process(process, patience=20)

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")[-3000:]

    def http(self) -> httpx.Client:
        """For asking its API. Making one takes longer than a question, so whoever asks often keeps it."""
        return httpx.Client(base_url=self.api, timeout=10, trust_env=False)

    def _answers(self, client: httpx.Client) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed(f"the Prefect server has stopped; its last words are in {self.log_file}")
        try:
            return client.get("health").status_code == 200
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
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
    }


def clean_environment() -> dict[str, str]:
    """The environment without anybody's Prefect settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}


def migrated_database(cache: Path) -> Path:
    """An empty database of this Prefect version, made once and kept: making it takes longer than starting a server."""
    template = template_file(cache)
    if not template.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with locks.in_turn(cache / f".{template.name}.lock"):  # who comes meanwhile waits, and does not make another
            if not template.exists():
                _migrate(cache / f"migrating-{os.getpid()}", template)
    return template


def _migrate(home: Path, template: Path) -> None:
    home.mkdir()
    command: list[str | Path] = [PREFECT, "server", "database", "upgrade", "-y"]
    environment = clean_environment() | quiet_settings(home)
    try:
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)  # noqa: S603
        (home / "prefect.db").replace(template)
    except subprocess.SubprocessError:
        raise ServerFailed(f"Prefect could not make its database in {home.parent}; is the disk full?") from None
    finally:
        shutil.rmtree(home, ignore_errors=True)


def template_file(cache: Path) -> Path:
    """Where the template of this Prefect version is, or will be."""
    return cache / f"prefect-{version('prefect')}.db"


def start_process(
    command: Sequence[str | Path], environment: Mapping[str, str], log_file: Path, *, outlives: bool = False
) -> subprocess.Popen[bytes]:
    """A process with a session of its own, so that a Ctrl-C in our terminal is ours alone to answer.

    It ends with us even if we are killed, unless it outlives us.
    """
    stdin = subprocess.DEVNULL if outlives else subprocess.PIPE
    command = command if outlives else under_guard(command)
    with log_file.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 (our own programs)
            command, env=environment, stdin=stdin, stdout=log, stderr=log, start_new_session=True
        )
    if not outlives:
        note(log_file.with_suffix(".pid"), process.pid)
    return process


def stop_process(process: subprocess.Popen[bytes], patience: float) -> None:
    """End a process that has a session of its own, and whatever it has started."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()  # closes the pipe to its guard, too


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until(look: Callable[[], T], seconds: float) -> T:
    """What `look` finds, as soon as it finds something; what it found last when the time is over."""
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.1)
    return found
