"""A real S3 store for tests: SeaweedFS from PyPI, on free ports of 127.0.0.1."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen

from s3fs import S3FileSystem

BUCKET = "exchange"
KEY, SECRET = "house-key", "house-secret-0f3a9c"
READER_KEY, READER_SECRET = "reader-key", "reader-secret-77b1"
PORTS = ("master.port", "volume.port", "filer.port", "s3.port")


class Seaweed:
    """`with Seaweed(folder) as store:` then `s3://exchange` with `store.options()`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        names = [name for port in PORTS for name in (port, f"{port}.grpc")]
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.port = self._ports["s3.port"]

    def options(self, key: str = KEY, secret: str = SECRET, port: int | None = None) -> dict[str, Any]:
        """For `Exchange.open`."""
        return {"key": key, "secret": secret, "endpoint_url": f"http://127.0.0.1:{port or self.port}"}

    def filesystem(self) -> S3FileSystem:
        """A way in past the exchange."""
        return S3FileSystem(**self.options(), use_listings_cache=False, skip_instance_cache=True)

    def __enter__(self) -> Self:
        house = {"name": "house", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
        reader = {
            "name": "reader",
            "credentials": [{"accessKey": READER_KEY, "secretKey": READER_SECRET}],
            "actions": ["Read", "List"],
        }
        config = self._folder / "s3.json"
        config.write_text(json.dumps({"identities": [house, reader]}))
        (self._folder / "data").mkdir()
        weed = shutil.which("weed", path=str(Path(sys.executable).parent)) or "weed"
        command = [weed, f"-logdir={self._folder}", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3"]
        command += [f"-dir={self._folder / 'data'}"]
        command += ["-volume.max=20", "-master.volumeSizeLimitMB=64", "-master.telemetry=false", f"-s3.config={config}"]
        command += ["-s3.autoCreateBucket=false", "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        command += [f"-{name}={port}" for name, port in self._ports.items()]
        command += [f"-{name}.localSocket={self._folder / name}" for name in ("filer", "s3")]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # a polite end takes it ten seconds
        self._process.wait()

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 60
        while True:
            try:
                urlopen(f"http://127.0.0.1:{self.port}/status", timeout=5).close()
                self.filesystem().mkdir(BUCKET)
                return
            except (URLError, OSError, ValueError):
                log = (self._folder / "log").read_text(errors="replace")[-2000:]
                assert self._process.poll() is None, log
                assert time.monotonic() < end, log
                time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
