"""Who else may use this house's Prefect and MLflow: nobody from elsewhere without a login.

Whoever reaches Prefect's API may start any run that is served, and whoever reaches MLflow may call another model
champion. So both listen on this machine only, or they ask for a password.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from spinney.doctor.findings import Finding

PATIENCE = 3.0  # seconds
OF_PREFECT = (
    "prefect",
    "/admin/version",
    "set PREFECT_SERVER_API_AUTH_STRING=user:password for the server and PREFECT_API_AUTH_STRING for the processes "
    "of this house",
)
OF_MLFLOW = (
    "mlflow",
    "/api/2.0/mlflow/experiments/get?experiment_id=0",
    "start it with: mlflow server --app-name basic-auth",
)
Door = tuple[str, str, str]  # whose, a path behind the login, and how to get one


def check_door(address: str, door: Door, elsewhere: Callable[[], Sequence[str]] | None = None) -> Finding:
    """Whether a server that answers at this address is open to others. `elsewhere`: where they would knock."""
    whose, path, advice = door
    check = f"{whose} login"
    try:
        answer = httpx.get(f"{address.rstrip('/')}{path}", timeout=PATIENCE)
    except (httpx.HTTPError, httpx.InvalidURL):
        return Finding(check, "ok", "not looked at, since it does not answer")
    if answer.status_code in (401, 403):
        return Finding(check, "ok", "asks for a login")
    where = [urlsplit(address).hostname or ""]
    if _is_here(where[0]):
        where = [one for one in (elsewhere or own_addresses)() if _listens(one, _port_of(address))]
    if where:
        words = f"answers at {where[0]} without a login, so others can use it; bind it to 127.0.0.1, or {advice}"
        return Finding(check, "wrong", words)
    return Finding(check, "ok", f"listens on this machine only; every user of it may use it unless you {advice}")


def own_addresses() -> list[str]:
    """Under which others know this machine. Nothing is sent: a datagram's socket only chooses where it would leave."""
    found: set[str] = set()
    for family, beyond in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), closing(socket.socket(family, socket.SOCK_DGRAM)) as leaving:
            leaving.connect((beyond, 9))
            found.add(leaving.getsockname()[0])
    with suppress(OSError):
        found |= {str(one[4][0]) for one in socket.getaddrinfo(socket.gethostname(), None)}
    return sorted(one for one in found if not _is_here(one))


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _port_of(address: str) -> int:
    parts = urlsplit(address)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _listens(host: str, port: int) -> bool:
    try:
        with closing(socket.create_connection((host, port), PATIENCE)):
            return True
    except OSError:
        return False
