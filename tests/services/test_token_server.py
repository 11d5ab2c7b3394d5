"""Client credentials at a certified authorisation server from npm, and a FHIR server that asks it about tokens."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from spinney.connectors.fhir.server import connect
from spinney.connectors.sources import Wanted
from spinney.connectors.sources.fhir_bulk import FhirBulk, FhirBulkSettings
from spinney.connectors.sources.fhir_rest import FhirRest, FhirRestSettings
from spinney.errors import SourceFailed
from tests.servers.fhir_traps import FhirTraps, Handler
from tests.servers.npm import install, node

pytestmark = [pytest.mark.service, pytest.mark.timeout(300)]

HERE = Path(__file__).parent / "token-server"
SECRET = "p+s %:/s3cret~" * 3
LIVES = 2


class AskingTraps(FhirTraps):
    """A FHIR server that knows tokens only by asking who has handed them out (RFC 7662)."""

    def handler(self) -> type[Handler]:
        return AskingHandler


class AskingHandler(Handler):
    def _known(self) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        answer = httpx.post(
            f"{self.traps.token_host}/token/introspection", data={"token": token}, auth=("fhir", quoted(SECRET))
        )
        self.traps.tokens[token] = 1
        return bool(answer.json().get("active"))


def quoted(word: str) -> str:
    return str(httpx.QueryParams({"": word}))[1:]


@pytest.fixture(scope="module")
def token_server() -> Iterator[str]:
    install(HERE)
    metadata = "/.well-known/openid-configuration"
    with node(lambda port: ("server.mjs", port, LIVES), metadata, HERE, CLIENT_SECRET=SECRET) as address:
        yield address


@pytest.fixture
def server(token_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FhirTraps]:
    monkeypatch.setenv("FHIR_CLIENT_SECRET", SECRET)
    patients = [{"resourceType": "Patient", "id": f"p{number}"} for number in range(20)]
    with AskingTraps(patients, clients={"": ""}, token_host=token_server, needs_token=True) as traps:
        yield traps


def settings(server: FhirTraps, client: str, **auth: Any) -> dict[str, Any]:
    known = {"kind": "client-credentials", "client_id": client, "client_secret_env": "FHIR_CLIENT_SECRET"}
    hosts = [str(server.token_host).removeprefix("http://")]
    return {"base_url": server.base_url, "allowed_hosts": hosts, "auth": {"scope": "system/*.rs", **known, **auth}}


def search(server: FhirTraps, folder: Path, client: str, page_size: int = 5, **auth: Any) -> dict[str, int]:
    chosen = FhirRestSettings.model_validate({**settings(server, client, **auth), "page_size": page_size})
    source = FhirRest(chosen, partial(connect, sleep=lambda *_: None))
    return dict(source.pull([Wanted("Patient")], folder, lambda *_: None).read)


@pytest.mark.parametrize(("client", "place"), [("spinney basic", "header"), ("spinney-post", "form")])
def test_a_search_gets_in_with_a_client_of_either_kind(
    server: FhirTraps, tmp_path: Path, client: str, place: str
) -> None:
    assert search(server, tmp_path, client, secret_in=place) == {"Patient": 20}
    assert len(server.tokens) == 1


def test_a_token_that_expires_is_renewed_in_the_middle(
    server: FhirTraps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10**6))
    monkeypatch.setattr("spinney.connectors.fhir.tokens.time.monotonic", lambda: float(next(clock)))
    assert search(server, tmp_path, "spinney basic", page_size=2) == {"Patient": 20}
    assert len(server.tokens) > 3


def test_an_export_gets_in_too(server: FhirTraps, tmp_path: Path) -> None:
    chosen = FhirBulkSettings.model_validate({**settings(server, "spinney basic"), "incremental": False})
    (tmp_path / "staging").mkdir()
    source = FhirBulk(chosen, tmp_path / "store", partial(connect, sleep=lambda *_: None))
    assert source.pull([Wanted("Patient")], tmp_path / "staging", lambda *_: None).read == {"Patient": 20}


@pytest.mark.parametrize(
    ("client", "auth", "secret", "line"),
    [
        ("nobody", {}, SECRET, r"no token \(invalid_client\)"),
        ("spinney basic", {}, "wrong", r"no token \(invalid_client\)"),
        ("spinney basic", {"scope": "system/*.cruds"}, SECRET, r"no token \(invalid_scope\); check scope"),
    ],
)
def test_what_it_refuses_is_said_in_one_line(
    server: FhirTraps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, auth: Any, secret: str, line: str
) -> None:
    monkeypatch.setenv("FHIR_CLIENT_SECRET", secret)
    with pytest.raises(SourceFailed, match=line) as failed:
        search(server, tmp_path, client, **auth)
    assert secret not in str(failed.value)
    assert base64.b64encode(secret.encode()).decode() not in str(failed.value)
