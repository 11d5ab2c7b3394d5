"""A real browser without a window, spoken to through its debugging pipe: pages are looked at, not run by a library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
PATIENCE = 120.0


class Browser:
    """One page at a time."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._unread, self._number = to, back, b"", 0
        self.events: list[dict[str, Any]] = []
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its answer."""
        self._number += 1
        words: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            words["sessionId"] = self._session
        os.write(self._to, json.dumps(words).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, said["error"]
                return said["result"]
            self.events.append(said)

    def show(self, path: Path, width: int, height: int = 900) -> None:
        """Open a file from disk at a width, and wait until it is drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    @property
    def requests(self) -> list[str]:
        """What the page has asked for since it was opened."""
        asked = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    @property
    def content_width(self) -> float:
        """How wide the page is, beyond what is seen."""
        return float(self.call("Page.getLayoutMetrics")["cssContentSize"]["width"])

    def named(self, role: str) -> list[str]:
        """Accessible names of everything with a role, as a screen reader gets them."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in nodes if not node.get("ignored") and node.get("role", {}).get("value") == role]
        return [node.get("name", {}).get("value", "") for node in shown]

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._back], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser has said nothing in time"
            read = os.read(self._back, 1 << 20)
            assert read, "the browser has gone"
            self._unread += read
        raw, _, self._unread = self._unread.partition(b"\0")
        said: dict[str, Any] = json.loads(raw)
        return said


def executable() -> str | None:
    """Where the browser is, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own, gone afterwards. It reads commands from its file 3 and answers on file 4."""
    (its, to), (back, own) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="spinney-chromium-", ignore_cleanup_errors=True) as profile:
        command = ["bash", "-c", f'exec "$@" 3<&{its} 4>&{own}', "chromium", str(executable()), *FLAGS]
        process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}"],
            pass_fds=(its, own),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(its)
        os.close(own)
        try:
            yield Browser(to, back)
        finally:
            os.close(to)  # the browser ends with its pipe
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait(30)
            os.close(back)
