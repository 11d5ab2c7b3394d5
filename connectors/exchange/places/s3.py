"""A bucket of S3, or of a store that speaks like it, as the exchange."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientError as BrokenTransfer
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from s3fs import S3FileSystem

from spinney.connectors.exchange.errors import ExchangeDenied, ExchangeError, TransientExchangeError
from spinney.connectors.exchange.store import Store

_PATIENCE = {"connect_timeout": 10, "read_timeout": 30, "retries": {"total_max_attempts": 1}}  # s3fs tries again
_SLOWEST = 50_000  # bytes per second; a hospital's line that is slower is taken for dead
_BUSY = {"ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "SlowDown", "Throttling"}
_ADVICE = {
    "ExpiredToken": "renew the token",
    "InvalidAccessKeyId": "check the access key",
    "RequestTimeTooSkewed": "set this machine's clock",
    "SignatureDoesNotMatch": "check the secret",
}


class Bucket(Store):
    """An upload appears when it is complete, and with `If-None-Match: *` only where nothing is."""

    scheme = "s3"
    failures = (OSError, BotoCoreError, ClientError, BrokenTransfer, HTTPException)

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        where = urlsplit(url)
        root = f"{where.hostname}{where.path}"
        super().__init__(root, f"s3://{root}")
        patience = {**_PATIENCE, **options.get("config_kwargs", {})}
        settings = {**options, "config_kwargs": patience, "use_listings_cache": False, "skip_instance_cache": True}
        self._fs = S3FileSystem(**settings)
        self._seconds = 3.0 * (patience["connect_timeout"] + patience["read_timeout"])
        self._tried = False

    def write_once(self, path: str, data: bytes) -> bool:
        written = self.size(path) is None and self._create(path, data)
        if written and not self._tried:
            # Some stores ignore the condition and overwrite. The same bytes once more do no harm, and show it.
            if self._create(path, data):
                raise ExchangeDenied(
                    f"{self.place} ignores conditional writes, so a message could be overwritten: use a store "
                    "that knows If-None-Match"
                )
            self._tried = True
        return written

    def read(self, path: str, size: int) -> bytes:
        return self._call("cat_file", self.full(path), start=0, end=size, size=size) if size else b""

    def delete(self, path: str) -> None:
        self._call("rm_file", self.full(path))

    def explain(self, error: Exception) -> ExchangeError:
        if isinstance(error, NoCredentialsError | PartialCredentialsError):
            return ExchangeDenied(f"no access key for {self.place}: set key and secret in the exchange's options")
        code, status = _answer(error)
        if code and status < 500 and status not in (404, 408, 409, 429) and code not in _BUSY:
            advice = _ADVICE.get(
                code, "check access key, secret, region and the rights to list, read, write and delete"
            )
            return ExchangeDenied(f"{self.place} refuses ({code}): {advice}")
        if code and not isinstance(error, FileNotFoundError):
            return TransientExchangeError(f"{self.place} is busy ({code}): try later")
        return super().explain(error)

    def _create(self, path: str, data: bytes) -> bool:
        try:
            # One request whatever the size: an upload in parts that is killed would leave its parts behind.
            self._call("pipe_file", self.full(path), data, mode="create", chunksize=len(data) + 1, size=len(data))
        except OSError as error:
            if isinstance(error, FileExistsError) or _answer(error)[1] == 412:
                return False
            raise
        return True

    def _info(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._call("info", path)
        return found

    def _ls(self, folder: str) -> list[dict[str, Any]]:
        return list(self._call("ls", folder, detail=True))

    def _call(self, method: str, *arguments: Any, size: int = 0, **named: Any) -> Any:
        """botocore's own limits don't end an upload that stalls; fsspec's does."""
        return getattr(self._fs, method)(*arguments, **named, timeout=self._seconds + size / _SLOWEST)

    def _still_there(self, error: OSError) -> None:
        if _answer(error)[0] == "NoSuchBucket":
            raise error


def _answer(error: BaseException) -> tuple[str, int]:
    """S3's error code and HTTP status, if it was S3 that said no."""
    response: dict[str, Any] = next(
        (one.response for one in (error, error.__cause__) if isinstance(one, ClientError)), {}
    )
    return response.get("Error", {}).get("Code", ""), response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


PLACE = Bucket
