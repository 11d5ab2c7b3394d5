"""An SFTP server as the exchange. A host that is not in known_hosts is never spoken to."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem
from fsspec.utils import infer_storage_options

from connectors.exchange.address import draft_name
from connectors.exchange.errors import ExchangeDenied, ExchangeError, TransientExchangeError
from connectors.exchange.store import Store

PATIENCE = 30.0  # seconds for one answer of the server
_LOST = (paramiko.SSHException, EOFError)


class UnknownHost(paramiko.SSHException):
    """The server's key is not in known_hosts."""


class _RefuseStrangers(paramiko.MissingHostKeyPolicy):
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        raise UnknownHost


class _CheckedSftp(SFTPFileSystem):
    """fsspec's filesystem accepts every host by default and waits for ever; this one does neither."""

    def _connect(self) -> None:
        known_hosts = self.ssh_kwargs.pop("known_hosts")
        self.client = paramiko.SSHClient()
        self.client.set_missing_host_key_policy(_RefuseStrangers())
        self.client.load_host_keys(known_hosts)
        self.client.connect(self.host, **self.ssh_kwargs)
        self.ftp = self.client.open_sftp()
        self.ftp.get_channel().settimeout(PATIENCE)


class Sftp(Store):
    """Drafts are written next to their place and then renamed; SFTP's plain rename never overwrites."""

    failures = (OSError, *_LOST)

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        where = infer_storage_options(url)
        root = where.pop("path").rstrip("/")
        del where["protocol"]
        super().__init__(root, f"sftp://{where.get('host')}{root}")
        patience = dict.fromkeys(("timeout", "banner_timeout", "auth_timeout", "channel_timeout"), PATIENCE)
        known_hosts = os.path.expanduser("~/.ssh/known_hosts")
        self._options = {**patience, "known_hosts": known_hosts, **where, **options}
        self._fs: _CheckedSftp | None = None
        self._one_connection = Lock()

    @property
    def fs(self) -> _CheckedSftp:
        with self._one_connection:
            if self._fs is None:
                self._fs = self._connect()
            return self._fs

    def _connect(self) -> _CheckedSftp:
        try:
            return _CheckedSftp(**self._options, skip_instance_cache=True)
        except (FileNotFoundError, PermissionError):  # else it would read as if the server lacked a folder
            raise ExchangeDenied(
                f"the key file or known_hosts file for {self.place} cannot be read: check the exchange's options"
            ) from None

    def close(self) -> None:
        if self._fs is not None:
            self._fs.client.close()
            self._fs = None

    def read(self, path: str, size: int) -> bytes:
        with self.fs.ftp.open(self.full(path), "rb") as file:
            if size:
                file.prefetch(size)  # else each 32 kB wait for the one before
            return file.read(size)

    def write_once(self, path: str, data: bytes) -> bool:
        target = self.full(path)
        folder, _, name = target.rpartition("/")
        self._make(folder)
        draft = f"{folder}/{draft_name(name)}"
        try:
            self._write(draft, data)
            self.fs.ftp.rename(draft, target)
        except OSError:
            with suppress(FileNotFoundError):
                self.fs.ftp.remove(draft)
            if self._exists(target):
                return False
            raise
        self._seen = True
        return True

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.fs.ftp.remove(self.full(path))

    def tidy(self, folder: str) -> None:
        with suppress(OSError):  # somebody else's file is in it, or somebody else was faster
            self.fs.ftp.rmdir(self.full(folder))

    def explain(self, error: Exception) -> ExchangeError:
        if isinstance(error, UnknownHost | paramiko.BadHostKeyException):
            return ExchangeDenied(
                f"{self.place} shows a host key that known_hosts does not hold: ask its owner for the fingerprint "
                "before you add it"
            )
        if isinstance(error, paramiko.AuthenticationException):
            return ExchangeDenied(f"{self.place} refuses this house's login: check username, key_filename and password")
        explained = super().explain(error)
        if isinstance(explained, TransientExchangeError):
            self.close()
        return explained

    def _still_there(self, error: OSError) -> None:  # noqa: ARG002
        self.fs.ftp.stat(self.root or "/")

    def _info(self, path: str) -> dict[str, Any]:
        found = self.fs.ftp.lstat(path)
        return {"type": "file" if stat.S_ISREG(found.st_mode or 0) else "other", "size": found.st_size}

    def _exists(self, path: str) -> bool:
        with suppress(FileNotFoundError):
            return bool(self.fs.ftp.lstat(path))
        return False

    def _make(self, folder: str) -> None:
        """Make folders below the root. Not before looking whether the root is there: it may be a lost mount."""
        if self._exists(folder):
            return
        self.fs.ftp.stat(self.root or "/")
        below = folder.removeprefix(self.root).strip("/").split("/")
        for depth in range(1, len(below) + 1):
            path = "/".join([self.root, *below[:depth]])
            try:
                self.fs.ftp.mkdir(path)
            except PermissionError:
                raise
            except OSError:  # there already, perhaps since a moment
                if not self._exists(path):
                    raise

    def _write(self, draft: str, data: bytes) -> None:
        with self.fs.ftp.open(draft, "wx") as file:
            file.set_pipelined(True)
            file.write(data)
        if self.fs.ftp.stat(draft).st_size != len(data):  # pipelined writes do not tell when they fail
            raise OSError(errno.EIO, os.strerror(errno.EIO))
