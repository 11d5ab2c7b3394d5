"""A real SFTP server for tests: openssh-server as an ordinary process, with a config and keys of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from tests.servers.seaweed import free_ports


class OpenSsh:
    """`with OpenSsh(folder) as server:` then `server.url(path)` with `server.options()`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self.port,) = free_ports(1)
        self._user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()

    def url(self, path: Path, port: int | None = None) -> str:
        """For `Exchange.open`."""
        return f"sftp://{self._user}@127.0.0.1:{port or self.port}{path}"

    def options(self, key: str = "house", known_hosts: Path | None = None) -> dict[str, Any]:
        """The keys are `house`, `reader` (may not write) and `stranger` (may not come in)."""
        return {
            "key_filename": str(self._folder / key),
            "known_hosts": str(known_hosts or self._folder / "known_hosts"),
            "look_for_keys": False,
            "allow_agent": False,
        }

    def know(self, port: int) -> None:
        """Write the server's key into known_hosts for a port that leads to it."""
        key = (self._folder / "host.pub").read_text()
        with (self._folder / "known_hosts").open("a") as known_hosts:
            known_hosts.write(f"[127.0.0.1]:{port} {key}")

    def __enter__(self) -> Self:
        for name in ("host", "house", "reader", "stranger"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / name)]
            subprocess.run(make, check=True, capture_output=True)
        house, reader = ((self._folder / f"{name}.pub").read_text() for name in ("house", "reader"))
        (self._folder / "authorized_keys").write_text(f'restrict {house}restrict,command="internal-sftp -R" {reader}')
        config = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self._folder / "host",
            "AuthorizedKeysFile": self._folder / "authorized_keys",
            "PidFile": "none",
            "StrictModes": "no",  # the temporary folder may be open to a group
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "MaxStartups": 100,
            "Subsystem": "sftp internal-sftp",
        }
        (self._folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in config.items()))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # asked for when root starts it
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        assert sshd, "sshd is missing: install openssh-server"
        with (self._folder / "log").open("wb") as log:
            command = [sshd, "-D", "-e", "-f", str(self._folder / "sshd_config")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self.know(self.port)
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                log = (self._folder / "log").read_text(errors="replace")[-2000:]
                assert self._process.poll() is None, log
                assert time.monotonic() < end, log
                time.sleep(0.05)
