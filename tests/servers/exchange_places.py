"""The kinds of exchange that the contract is run over on this machine: a folder, and a real S3 store."""

from __future__ import annotations

import hashlib
import os
import signal
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from spinney.connectors.exchange import Address, Exchange
from spinney.testing.exchange import writer
from tests.servers.relay import Relay, kill_in_the_middle
from tests.servers.seaweed import BUCKET, READER_KEY, READER_SECRET, SECRET, Seaweed

NOBODY = 65534
_fresh = count()


class FolderPlace:
    longest_nap = 0.15
    keeps_drafts = True
    secrets = ()

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "exchange"
        self.root.mkdir()

    def open(self) -> Exchange:
        return Exchange.open(str(self.root))

    def open_nowhere(self) -> Exchange:
        return Exchange.open(self.root.with_name("nowhere").as_uri())

    @contextmanager
    def without_rights(self) -> Iterator[Exchange]:
        self.root.chmod(0o555)
        user = os.geteuid()
        if user == 0:  # root may write everywhere
            os.seteuid(NOBODY)
        try:
            yield self.open()
        finally:
            os.seteuid(user)
            self.root.chmod(0o755)

    def leave(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def leave_huge(self, path: str) -> None:
        self.leave(path, b"")
        os.truncate(self.root / path, 2**40)  # holds nothing; reading it all would fill the memory

    def carried(self) -> int:
        return 0

    def names(self) -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()}

    def kill_writer(self, address: Address, size: int) -> None:
        assert writer(str(self.root), {}, address, size, most=size // 2).wait() == -signal.SIGXFSZ

    def pull_plug(self) -> None:
        self.root.rename(self.root.with_name("away"))

    def mend(self) -> None:
        self.root.with_name("away").rename(self.root)


class S3Place:
    longest_nap = 5.0
    keeps_drafts = False
    secrets = (SECRET, READER_SECRET)

    def __init__(self, store: Seaweed, relay: Relay) -> None:
        self.store, self.relay = store, relay
        self.root = f"{BUCKET}/test-{next(_fresh)}"
        self.url = f"s3://{self.root}"
        self._fs = store.filesystem()

    def open(self) -> Exchange:
        return Exchange.open(self.url, self.store.options(port=self.relay.port))

    def open_nowhere(self) -> Exchange:
        return Exchange.open("s3://no-such-bucket/here", self.store.options())

    @contextmanager
    def without_rights(self) -> Iterator[Exchange]:
        yield Exchange.open(self.url, self.store.options(READER_KEY, READER_SECRET))

    def leave(self, path: str, data: bytes) -> None:
        self._fs.pipe_file(f"{self.root}/{path}", data)

    def leave_huge(self, path: str) -> None:
        self.leave(path, bytes(5_000_000))

    def leave_locked(self, path: str, data: bytes) -> None:
        key = bytes(range(32))
        lock = {
            "SSECustomerAlgorithm": "AES256",
            "SSECustomerKey": b64encode(key).decode(),
            "SSECustomerKeyMD5": b64encode(hashlib.md5(key, usedforsecurity=False).digest()).decode(),
        }
        self._fs.pipe_file(f"{self.root}/{path}", data, **lock)

    def carried(self) -> int:
        return self.relay.down

    def names(self) -> set[str]:
        return {path.removeprefix(f"{self.root}/") for path in self._fs.find(self.root)}

    def kill_writer(self, address: Address, size: int) -> None:
        process = writer(self.url, self.store.options(port=self.relay.port), address, size)
        kill_in_the_middle(self.relay, process, after=size // 2)

    def pull_plug(self) -> None:
        self.relay.cut()

    def mend(self) -> None:
        self.relay.mend()
