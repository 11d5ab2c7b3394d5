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
from fnmatch import fnmatchcase
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


class Gone(AssertionError):
    """The browser could not do it, often because the page has changed meanwhile."""


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
                if "error" in said:
                    raise Gone(said["error"])
                return said["result"]
            self.events.append(said)

    def show(self, path: Path, width: int, height: int = 900) -> None:
        """Open a file from disk at a width, and wait until it is drawn."""
        self.visit(path.as_uri(), width, height)

    def visit(self, url: str, width: int, height: int = 900) -> None:
        """Open a page at a width, and wait until it is drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.call("Page.navigate", url=url)
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

    def click(self, role: str, name: str, patience: float = PATIENCE) -> None:
        """Press what a person would: the first thing of this role and name (* for anything), once it is there."""
        x, y = self._await(role, name, patience)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)

    def follow(self, name: str, patience: float = PATIENCE) -> None:
        """Press a link as a person does: again where the page was not ready for the first time."""
        end, before = time.monotonic() + patience, self.address
        while self.address == before:
            assert time.monotonic() < end, f"the link {name!r} leads nowhere from {before}"
            self.click("link", name, patience)
            again = time.monotonic() + 10
            while self.address == before and time.monotonic() < again:
                time.sleep(0.2)

    def open_tab(self, name: str, patience: float = PATIENCE) -> None:
        """Press a tab as a person does: again where the page was not ready for the first time."""
        end = time.monotonic() + patience
        while not self._selected(name):
            assert time.monotonic() < end, f"the tab {name!r} does not open at {self.address}"
            self.click("tab", name, patience)
            time.sleep(1)

    def fill(self, role: str, name: str, text: str) -> None:
        """Click into a field, and type over what it holds."""
        self.click(role, name)
        self.call("Input.dispatchKeyEvent", type="keyDown", key="a", code="KeyA", modifiers=2, commands=["selectAll"])
        self.call("Input.dispatchKeyEvent", type="keyUp", key="a", code="KeyA", modifiers=2)
        self.call("Input.insertText", text=text)

    def await_text(self, words: str, patience: float = PATIENCE) -> None:
        """Until these words can be read on the page."""
        end = time.monotonic() + patience
        while words not in self.text:
            assert time.monotonic() < end, f"{words!r} is not on the page:\n{self.text[:3000]}"
            time.sleep(0.2)

    @property
    def text(self) -> str:
        """What can be read on the page."""
        return str(self._ask("document.body.innerText"))

    @property
    def address(self) -> str:
        """Where the page is now."""
        return str(self._ask("location.href"))

    def photograph(self, path: Path) -> None:
        """What is seen, as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def _ask(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")

    def _await(self, role: str, name: str, patience: float) -> tuple[float, float]:
        """Where it is, once it is there and stands still: pages that are being drawn move what one wants to press."""
        end, before = time.monotonic() + patience, None
        while (place := self._place(role, name)) is None or place != before:
            assert time.monotonic() < end, f"no {role} {name!r} among {self.named(role)} at {self.address}"
            before = place
            time.sleep(0.2)
        return place

    def _selected(self, tab: str) -> bool:
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        tabs = [node for node in nodes if node.get("role", {}).get("value") == "tab"]
        (states,) = [node["properties"] for node in tabs if node.get("name", {}).get("value") == tab] or [[]]
        return any(one["name"] == "selected" and one["value"].get("value") for one in states)

    def _place(self, role: str, name: str) -> tuple[float, float] | None:
        for node in self.call("Accessibility.getFullAXTree")["nodes"]:
            is_it = node.get("role", {}).get("value") == role and "backendDOMNodeId" in node
            if is_it and fnmatchcase(node.get("name", {}).get("value", ""), name) and not node.get("ignored"):
                try:
                    self.call("DOM.scrollIntoViewIfNeeded", backendNodeId=node["backendDOMNodeId"])
                    box = self.call("DOM.getBoxModel", backendNodeId=node["backendDOMNodeId"])["model"]["border"]
                except Gone:
                    return None
                return sum(box[::2]) / 4, sum(box[1::2]) / 4
        return None

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
