"""Houses that are served by a process of their own, as systemd would start it, and what can happen to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import yaml
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun

from tests.servers.prefect_server import PrefectServer, wait_until

SPINNEY = Path(sys.executable).parent / "spinney"
PATIENCE = 240.0


class Serving:
    """`with Serving(server, "site", village.site_file("ash"), folder):` and its flows run when they are due."""

    def __init__(
        self,
        server: PrefectServer,
        role: str,
        file: Path,
        folder: Path,
        *,
        spinney: Path = SPINNEY,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment, self._log = environment or server.environment, folder / f"serving-{file.parent.name}.log"
        self._command = [spinney, role, "serve", f"--{role}", file]

    def __enter__(self) -> Self:
        self.launch()
        self.await_words("is served")
        return self

    def launch(self) -> None:
        """Without waiting, so that several start at once."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._log.parent,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_words(self, words: str) -> None:
        wait_until(lambda: self._alive() and words in self.log, PATIENCE, lambda: self.log)

    def __exit__(self, *_: object) -> None:
        self.cut_power()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> int:
        """As systemd does."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(90)

    def cut_power(self) -> None:
        """The process and every run that it has started, at once."""
        for process in [self._process.pid, *_children(self._process.pid)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()

    def _alive(self) -> bool:
        assert self._process.poll() is None, self.log
        return True


def _children(parent: int) -> list[int]:
    """And theirs."""
    answer = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in answer.splitlines()]
    found, waiting = [], [parent]
    while waiting:
        above = waiting.pop()
        below = [pid for pid, ppid in pairs if ppid == above]
        found += below
        waiting += below
    return found


def start(deployment: str, **changes: str) -> UUID:
    """A run of a deployment, as somebody starts it in the UI, with some fields of its form changed."""
    with get_client(sync_client=True) as client:
        known = client.read_deployment_by_name(deployment)
        form = {"run": known.parameters["run"] | changes} if changes else None
        return client.create_flow_run_from_deployment(known.id, parameters=form).id


def run_of(run: UUID) -> FlowRun:
    with get_client(sync_client=True) as client:
        return client.read_flow_run(run)


def await_state(run: UUID, wanted: Callable[[FlowRun], bool], explain: Callable[[], object] = str) -> FlowRun:
    """The run, as soon as it is in a state that is wanted."""
    with get_client(sync_client=True) as client:  # one for all looks: making it costs more than a look

        def look() -> FlowRun | None:
            now = client.read_flow_run(run)
            return now if wanted(now) else None

        return wait_until(look, PATIENCE, lambda: (run_of(run).state, explain()))


def add_settings(file: Path, settings: Mapping[str, Any]) -> None:
    """Write more into a house's settings file."""
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **settings}))
