"""Trees that grow on the hospital's own Dask cluster, where one machine is too small (the extra `dask`).

The workers see the encoded rows and labels of the cohort, so the way to them is encrypted unless it stays on this
machine. Every tree has its own seed: they are the trees that one machine would grow, however often a worker is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from spinney.base import Settings
from spinney.errors import SpinneyError
from spinney.forest.grow import Spread

if TYPE_CHECKING:
    from distributed import Client

ATTEMPTS = 3
MUST_AGREE = ("spinney", "scikit-learn", "numpy")  # or the same seed grows another tree


class ClusterFailed(SpinneyError):
    """The cluster can't grow trees; the message says what to do next."""


class DaskSettings(Settings):
    """The hospital's own Dask cluster. Its workers see the cohort's rows while trees grow."""

    address: str = Field(
        pattern=r"^(tls|tcp)://\S+:\d+$",
        description="Of the scheduler, such as tls://dask.hospital.example:8786; tcp:// only on this machine.",
    )
    ca: Path | None = Field(None, description="PEM file with the cluster's certificate authority, for tls://.")
    certificate: Path | None = Field(None, description="PEM file with this site's certificate.")
    key: Path | None = Field(None, description="PEM file with the key of that certificate.")
    patience: float = Field(60, gt=0, description="Seconds to wait for the scheduler, and for a first worker.")

    @model_validator(mode="after")
    def _encrypted_unless_at_home(self) -> Self:
        where = urlsplit(self.address)
        if where.scheme == "tls" and not (self.ca and self.certificate and self.key):
            raise ValueError("tls:// needs ca, certificate and key")
        if where.scheme == "tcp" and not _is_this_machine(where.hostname or ""):
            raise ValueError("tcp:// would send patients' rows in clear to another machine; use tls://")
        return self


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def cluster_of(settings: DaskSettings | None) -> Spread | None:
    """What spreads the growing of trees over the cluster, if the site has one."""
    return None if settings is None else partial(_spread, settings)


def reach(settings: DaskSettings) -> str:
    """Who answers, in words."""
    with _connected(settings) as client:
        cores = client.ncores()
        return f"{settings.address} answers: {len(cores)} workers, {sum(cores.values())} threads, versions as here"


def _spread(
    settings: DaskSettings, function: Callable[..., Any], shared: Sequence[Any], items: Sequence[Any]
) -> list[Any]:
    """Every worker gets what is shared once. What is lost with workers is done again: the result is the same."""
    with _connected(settings) as client:
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        for _ in range(ATTEMPTS):
            try:
                client.wait_for_workers(1, timeout=settings.patience)
                held = client.scatter(list(shared), broadcast=True, hash=False)
                return list(client.gather(client.map(_called, items, function=function, shared=held, pure=False)))
            except (FutureCancelledError, CommClosedError):  # the last copy of the rows was lost with its worker
                continue
            except (KilledWorker, OSError):  # a task that killed several workers; no scheduler or no worker any more
                break
    raise ClusterFailed(
        f"{settings.address} lost its workers while trees grew; look for memory in the workers' logs, then start the "
        "run again: the round goes on where it was"
    )


def _called(item: Any, function: Callable[..., Any], shared: Sequence[Any]) -> Any:
    return function(*shared, item)


@contextmanager
def _connected(settings: DaskSettings) -> Iterator[Client]:
    """A cluster that answers, has a worker, and grows the same trees as this machine."""
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError as error:
        raise ClusterFailed(f"dask in site.yaml needs the package {error.name}: install spinney[dask]") from None

    paths = {"tls_ca_file": settings.ca, "tls_client_cert": settings.certificate, "tls_client_key": settings.key}
    files = {name: str(path) for name, path in paths.items() if path}
    try:
        security = Security(**files, require_encryption=True) if files else None
        client = Client(settings.address, security=security, timeout=settings.patience, set_as_default=False)
    except OSError as error:  # a timeout and everything that TLS complains of, too
        raise ClusterFailed(
            f"{settings.address} does not answer ({type(error).__name__}); check dask in site.yaml, its certificates, "
            "and that the scheduler runs"
        ) from None
    with client:
        _require_same_versions(client, settings)
        yield client


def _require_same_versions(client: Client, settings: DaskSettings) -> None:
    try:
        client.submit(_versions, pure=False).result(timeout=settings.patience)  # an adaptive cluster starts one now
        found = client.run(_versions)
    except OSError:  # a timeout is one, too
        raise ClusterFailed(f"{settings.address} has no worker after {settings.patience:g} s; start one") from None
    except ImportError as error:  # also a package without metadata
        raise ClusterFailed(
            f"a worker of {settings.address} has no {error.name}; install spinney {version('spinney')} at every worker"
        ) from None
    for there in found.values():
        for name, wanted in _versions().items():
            if there[name] != wanted:
                raise ClusterFailed(
                    f"a worker of {settings.address} has {name} {there[name]}, this site {wanted}: the same seed would "
                    "grow other trees; install the same versions"
                )


def _versions() -> dict[str, str]:
    return {name: version(name) for name in MUST_AGREE}
