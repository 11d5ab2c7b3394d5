"""A site to be examined, servers whose clock is wrong, and what the doctor finds."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spinney.flows.cli import main
from spinney.house.keys import KEY_VARIABLE, KeyRing

DEAD = "http://127.0.0.1:1"  # no program may listen there without being root, and none does
STUDY = """\
name: wood
features:
  - {name: age, kind: continuous, range: [0, 120]}
label: {name: died}
"""


class Well(BaseHTTPRequestHandler):
    """Says under every path that it is well, at a time that the test chooses."""

    clock = timedelta(0)

    def do_GET(self) -> None:
        self.send_response_only(200)
        self.send_header("Date", format_datetime(datetime.now(UTC) + self.clock, usegmt=True))
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def wrong_clocks() -> Iterator[Callable[[timedelta], str]]:
    """Starts servers whose clocks are wrong by so much, and says where each is."""
    started: list[ThreadingHTTPServer] = []

    def start(clock: timedelta = timedelta(0)) -> str:
        handler = type("Well", (Well,), {"clock": clock})
        started.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=started[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{started[-1].server_port}"

    try:
        yield start
    finally:
        for one in started:
            one.shutdown()
            one.server_close()


def healthy_house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with a key, an approved study, an exchange and files to read; everybody may pass through its parents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("PREFECT_API_URL", "")
    for folder in ("exchange", "fhir"):
        (tmp_path / folder).mkdir()
    write_site(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    KeyRing(tmp_path / "home").create()
    assert spinney("site", "approve", "study.yaml", "--yes").exit_code == 0
    return tmp_path


def write_site(folder: Path, source: str = "{kind: files, path: fhir}", **more: str) -> None:
    lines = [f"{key}: {value}" for key, value in more.items()]
    site = ["name: ash", "home: home", f"source: {source}", "exchange: {url: exchange}", *lines]
    (folder / "site.yaml").write_text("\n".join(site))


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def findings(*words: object) -> dict[str, tuple[str, str]]:
    """By check: its state and words."""
    told = json.loads(spinney("doctor", "--json", *words).stdout)
    return {one["check"]: (one["state"], one["words"]) for one in told["findings"]}
