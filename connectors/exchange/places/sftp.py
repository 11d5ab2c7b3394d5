"""An SFTP server as the exchange. A host that is not in known_hosts is never spoken to."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, cast

import paramiko
from fsspec.utils import infer_storage_options

from spinney.connectors.exchange.address import draft_name
from spinney.connectors.exchange.errors import ExchangeDenied, ExchangeError, TransientExchangeError
from spinney.connectors.exchange.store import Store

PATIENCE = 30.0  # seconds for one answer of the server


class UnknownHost(paramiko.SSHException):
    """The server's key is not in known_hosts."""


class _RefuseStrangers(paramiko.MissingHostKeyPolicy):
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        raise UnknownHost


class Sftp(Store):
    """Drafts are written next to their place and then renamed; SFTP's plain rename never overwrites."""

    scheme = "sftp"
    failures = (OSError, paramiko.SSHException, EOFError)

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        where = infer_storage_options(url)
        root = where.pop("path").rstrip("/")
        super().__init__(root, f"sftp://{where['host']}{root}")
        login = {name: where[name] for name in ("username", "password", "port") if name in where}
        patience = dict.fromkeys(("timeout", "banner_timeout", "auth_timeout", "channel_timeout"), PATIENCE)
        self._options: dict[str, Any] = {"hostname": where["host"], **patience, **login, **options}
        self._known_hosts = self._options.pop("known_hosts", os.path.expanduser("~/.ssh/known_hosts"))
        self._client: paramiko.SSHClient | None = None
        self._one_connection = Lock()

    @property
    def ftp(self) -> paramiko.SFTPClient:
        """The connection, made when it is needed."""
        with self._one_connection:
            if self._client is None:
                self._client, self._ftp = self._connect()
            return self._ftp

    def close(self) -> None:
        with self._one_connection:
            if self._client is not None:
                self._client.close()
                self._client = None

    def read(self, path: str, size: int) -> bytes:
        with self.ftp.open(self.full(path), "rb") as file:
            if size:
                file.prefetch(size)  # else each 32 kB wait for the one before
            data: bytes = file.read(size)
            return data

    def write_once(self, path: str, data: bytes) -> bool:
        target = self.full(path)
        folder, _, name = target.rpartition("/")
        self._make(folder)
        draft = f"{folder}/{draft_name(name)}"
        try:
            self._write(draft, data)
            self.ftp.rename(draft, target)
        except OSError:
            with suppress(FileNotFoundError):
                self.ftp.remove(draft)
            if self._exists(target):
                return False
            raise
        self._seen = True
        return True

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.ftp.remove(self.full(path))

    def tidy(self, folder: str) -> None:
        with suppress(OSError):  # somebody else's file is in it, or somebody else was faster
            self.ftp.rmdir(self.full(folder))

    def explain(self, error: Exception) -> ExchangeError:
        if isinstance(error, UnknownHost | paramiko.BadHostKeyException):
            return ExchangeDenied(
                f"{self.place} shows a host key that known_hosts does not hold: ask its owner for the fingerprint "
                "before you add it"
            )
        if isinstance(error, paramiko.AuthenticationException):
            return ExchangeDenied(f"{self.place} refuses this house's login: check username, key_filename and password")
        if type(error) is paramiko.SSHException:  # paramiko says so of a dead line and of a login without any key
            explained: ExchangeError = TransientExchangeError(
                f"{self.place} cannot be spoken to: look at the network, that server and this house's key"
            )
        else:
            explained = super().explain(error)
        if isinstance(explained, TransientExchangeError):
            self.close()
        return explained

    def _connect(self) -> tuple[paramiko.SSHClient, paramiko.SFTPClient]:
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(_RefuseStrangers())
        try:
            client.load_host_keys(self._known_hosts)
            client.connect(**self._options)
            ftp = client.open_sftp()
        except BaseException as error:
            client.close()
            if isinstance(error, FileNotFoundError | PermissionError):  # not the server's files, but ours
                raise ExchangeDenied(
                    f"the key file or known_hosts file for {self.place} cannot be read: check the exchange's options"
                ) from None
            raise
        cast(paramiko.Channel, ftp.get_channel()).settimeout(self._options["timeout"])  # it was opened just now
        return client, ftp

    def _still_there(self, error: OSError) -> None:  # noqa: ARG002
        self.ftp.stat(self.root or "/")

    def _info(self, path: str) -> dict[str, Any]:
        return _described(self.ftp.lstat(path))

    def _ls(self, folder: str) -> list[dict[str, Any]]:
        return [_described(found) for found in self.ftp.listdir_iter(folder)]

    def _exists(self, path: str) -> bool:
        with suppress(FileNotFoundError):
            return bool(self.ftp.lstat(path))
        return False

    def _make(self, folder: str) -> None:
        """Make folders below the root, never the root: it may be a mount that is lost."""
        if self._exists(folder):
            return
        self.ftp.stat(self.root or "/")
        path = self.root
        for name in folder.removeprefix(self.root).strip("/").split("/"):
            path = f"{path}/{name}"
            try:
                self.ftp.mkdir(path)
            except OSError:  # there already, perhaps since a moment
                if not self._exists(path):
                    raise

    def _write(self, draft: str, data: bytes) -> None:
        with self.ftp.open(draft, "wx") as file:
            file.set_pipelined(True)
            file.write(data)
        if self.ftp.stat(draft).st_size != len(data):  # pipelined writes do not tell when they fail
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def _described(found: paramiko.SFTPAttributes) -> dict[str, Any]:
    mode = found.st_mode or 0
    kind = "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"
    return {"name": getattr(found, "filename", ""), "type": kind, "size": found.st_size, "mtime": found.st_mtime}


PLACE = Sftp
