"""OAuth 2.0 client credentials, at a server that answers as RFC 6749 says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spinney.connectors.fhir.client_secret import ClientCredentialsAuth
from spinney.connectors.fhir.server import connect
from spinney.connectors.sources import Pulled, Wanted
from spinney.connectors.sources.fhir_bulk import FhirBulk, FhirBulkSettings
from spinney.connectors.sources.fhir_rest import FhirRest, FhirRestSettings
from spinney.errors import SourceFailed
from tests.servers.fhir_traps import FhirTraps, Stumble

SECRET = "p+s %ä:/s3cret~"
NAME = "spinney:north"
Pull = Callable[..., Pulled]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FhirTraps]:
    monkeypatch.setenv("FHIR_CLIENT_SECRET", SECRET)
    patients = [{"resourceType": "Patient", "id": f"p{number}"} for number in range(20)]
    with FhirTraps(patients, clients={NAME: SECRET}) as traps:
        yield traps


@pytest.fixture
def pull(tmp_path: Path) -> Pull:
    def run(server: FhirTraps, base_url: str | None = None, **more: Any) -> Pulled:
        auth = {"kind": "client-credentials", "client_id": NAME, "client_secret_env": "FHIR_CLIENT_SECRET", **more}
        settings = {"base_url": base_url or server.base_url, "page_size": 5, "auth": auth}
        source = FhirRest(FhirRestSettings.model_validate(settings), partial(connect, sleep=lambda *_: None))
        return source.pull([Wanted("Patient")], tmp_path, lambda *_: None)

    return run


@pytest.mark.parametrize("place", ["header", "form"])
def test_a_client_proves_itself_with_its_secret_in_either_place(server: FhirTraps, pull: Pull, place: str) -> None:
    assert pull(server, secret_in=place).read == {"Patient": 20}
    assert len(server.asked("/token")) == 1
    assert ("client_secret" in server.forms[0]) is (place == "form")
    assert server.asked("/Patient")[0].headers["authorization"] == "Bearer token-1"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_place_is_the_one_that_the_server_names(server: FhirTraps, pull: Pull, method: str) -> None:
    server.methods = (method, "private_key_jwt")
    assert pull(server).read == {"Patient": 20}
    assert ("client_secret" in server.forms[0]) is (method == "client_secret_post")


def test_a_server_that_names_no_place_gets_the_header(server: FhirTraps, pull: Pull) -> None:
    server.methods = None
    assert pull(server).read == {"Patient": 20}
    assert server.forms == [{"grant_type": "client_credentials"}]


def test_scope_and_what_else_the_endpoint_wants_are_sent(server: FhirTraps, pull: Pull) -> None:
    server.scopes = ("https://fhir.example.org/.default",)
    pull(server, scope="https://fhir.example.org/.default", parameters={"audience": "fhir"})
    asked = {"grant_type": "client_credentials", "scope": "https://fhir.example.org/.default", "audience": "fhir"}
    assert server.forms == [asked]


def test_a_token_that_ends_early_is_renewed_in_the_middle_of_a_search(server: FhirTraps, pull: Pull) -> None:
    server.requests_per_token = 2
    assert pull(server).read == {"Patient": 20}
    assert len(server.asked("/token")) == 3


@pytest.mark.parametrize("lives", [1e-6, "1"])
def test_a_token_is_renewed_before_it_expires_also_where_the_number_is_a_text(
    server: FhirTraps, pull: Pull, lives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.token_answer = {"expires_in": lives}
    clock = iter(range(0, 10**6, 2))
    monkeypatch.setattr("spinney.connectors.fhir.tokens.time.monotonic", lambda: float(next(clock)))
    assert pull(server).read == {"Patient": 20}
    tokens = [one.headers["authorization"] for one in server.asked("/Patient")]
    assert len(set(tokens)) == len(tokens)


def test_an_export_is_kicked_off_polled_and_downloaded_with_the_token(server: FhirTraps, tmp_path: Path) -> None:
    server.needs_token = True
    auth = {"kind": "client-credentials", "client_id": NAME, "client_secret_env": "FHIR_CLIENT_SECRET"}
    settings = FhirBulkSettings.model_validate({"base_url": server.base_url, "auth": auth, "incremental": False})
    source = FhirBulk(settings, tmp_path / "store", partial(connect, sleep=lambda *_: None))
    (tmp_path / "staging").mkdir()
    assert source.pull([Wanted("Patient")], tmp_path / "staging", lambda *_: None).read == {"Patient": 20}


@pytest.mark.parametrize(
    ("traps", "settings", "line"),
    [
        ({"clients": {NAME: "another"}}, {}, r"no token \(invalid_client\); check client_id, the client's secret"),
        ({"scopes": ("a",)}, {"scope": "b"}, r"no token \(invalid_scope\); check scope"),
        ({"methods": ("private_key_jwt",)}, {}, "accepts no client secrets; use kind smart-backend"),
        ({"token_answer": {"token_type": "mac"}}, {}, "hands out no bearer token"),
        ({"token_answer": {"access_token": "a\r\nb: c"}}, {}, "no token; check client_id"),
        ({"token_answer": {"access_token": ["x"]}}, {}, "no token; check client_id"),
        ({"token_answer": {"access_token": ""}}, {}, "no token; check client_id"),
        ({"token_host": "http://login.example.org"}, {}, r"login\.example\.org"),
        ({}, {"token_url": "http://login.example.org/token"}, "only sent over https; change the token endpoint"),
        ({}, {"client_secret_env": "NOT_THERE"}, "environment variable NOT_THERE is not set"),
        ({"stumbles": [Stumble("smart-configuration", 404)]}, {}, r"smart-configuration \(or set token_url\)"),
    ],
)
def test_what_is_wrong_is_one_line_without_a_secret(
    server: FhirTraps, pull: Pull, traps: dict[str, Any], settings: dict[str, Any], line: str
) -> None:
    for name, value in traps.items():
        setattr(server, name, value)
    with pytest.raises(SourceFailed, match=line) as failed:
        pull(server, **settings)
    assert "\n" not in str(failed.value)
    assert not any(word in str(failed.value) for word in (SECRET, "secret text", "token-1"))


def test_neither_secret_nor_token_is_logged(server: FhirTraps, pull: Pull, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.requests_per_token = 1
    pull(server)
    assert not any(word in caplog.text for word in (SECRET, "token-", "s3cret", "Bearer", "Basic "))


def test_a_secret_goes_to_no_other_machine_without_tls(server: FhirTraps, pull: Pull) -> None:
    with pytest.raises(SourceFailed, match="only sent over https; change base_url"):
        pull(server, "http://fhir.example.org/r4")
    assert server.requests == []


@pytest.mark.parametrize("name", ["client_secret", "scope", "grant_type"])
def test_a_secret_can_not_be_written_into_the_settings_by_another_name(name: str) -> None:
    words = {"kind": "client-credentials", "client_id": "spinney", "client_secret_env": "S", "parameters": {name: "x"}}
    with pytest.raises(ValidationError, match=f"parameters: {name} is not set here"):
        ClientCredentialsAuth.model_validate(words)
