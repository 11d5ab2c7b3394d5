"""Credentials: SMART Backend Services on a server that checks every signature, and the simpler kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from spinney.connectors.fhir.server import connect
from spinney.connectors.sources import Pulled, Wanted
from spinney.connectors.sources.fhir_rest import FhirRest, FhirRestSettings
from spinney.errors import SourceFailed
from tests.servers.fhir_traps import FhirTraps, Stumble

KEYS = {"ES384": ec.generate_private_key(ec.SECP384R1()), "RS384": rsa.generate_private_key(65537, 2048)}
Pull = Callable[..., Pulled]


def pem(key: Any) -> str:
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


@pytest.fixture
def server() -> Iterator[FhirTraps]:
    patients = [{"resourceType": "Patient", "id": f"p{number}"} for number in range(20)]
    with FhirTraps(patients, keys={name: key.public_key() for name, key in KEYS.items()}) as traps:
        yield traps


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    path.write_text(pem(KEYS["ES384"]))
    return path


@pytest.fixture
def pull(tmp_path: Path) -> Pull:
    def run(server: FhirTraps, base_url: str | None = None, **auth: Any) -> Pulled:
        chosen = {"base_url": base_url or server.base_url, "page_size": 5, "auth": auth}
        source = FhirRest(FhirRestSettings.model_validate(chosen), partial(connect, sleep=lambda *_: None))
        return source.pull([Wanted("Patient")], tmp_path, lambda *_: None)

    return run


def smart(key_file: Path, **more: Any) -> dict[str, Any]:
    return {"kind": "smart-backend", "client_id": "spinney", "key_file": key_file, "key_id": "ES384", **more}


@pytest.mark.parametrize("algorithm", ["ES384", "RS384"])
def test_a_backend_service_proves_itself_with_either_kind_of_key(
    server: FhirTraps, pull: Pull, tmp_path: Path, algorithm: str
) -> None:
    path = tmp_path / "other.pem"
    path.write_text(pem(KEYS[algorithm]))
    assert pull(server, **smart(path, key_id=algorithm)).read == {"Patient": 20}
    assert len(server.asked("/token")) == 1
    assert server.asked("/Patient")[0].headers["authorization"] == "Bearer token-1"


def test_the_key_may_come_from_the_environment_and_as_a_jwk_that_knows_its_id(
    server: FhirTraps, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    jwk = {**jwt.get_algorithm_by_name("RS384").to_jwk(KEYS["RS384"], as_dict=True), "kid": "RS384", "alg": "RS384"}
    monkeypatch.setenv("FHIR_KEY", json.dumps(jwk))
    assert pull(server, kind="smart-backend", client_id="spinney", key_env="FHIR_KEY").read == {"Patient": 20}


def test_a_token_that_the_server_ends_early_is_renewed_in_the_middle(
    server: FhirTraps, pull: Pull, key_file: Path
) -> None:
    server.requests_per_token = 2
    assert pull(server, **smart(key_file)).read == {"Patient": 20}
    assert len(server.asked("/token")) == 3  # four pages and a count, two to a token
    assert len(server.jtis) == 3


def test_a_token_is_renewed_before_it_expires(server: FhirTraps, pull: Pull, key_file: Path) -> None:
    server.lives = 1e-6  # type: ignore[assignment]
    assert pull(server, **smart(key_file)).read == {"Patient": 20}
    statuses = [one.headers.get("authorization") for one in server.asked("/Patient")]
    assert len(set(statuses)) == len(statuses)


def test_a_fresh_token_that_is_refused_is_not_renewed_for_ever(server: FhirTraps, pull: Pull, key_file: Path) -> None:
    server.stumbles = [Stumble("/Patient", 401, times=99)]
    with pytest.raises(SourceFailed, match=r"credentials are refused; check auth \(kind is smart-backend\)"):
        pull(server, **smart(key_file))
    assert len(server.asked("/Patient")) == 2


def test_every_attempt_at_a_token_is_signed_anew(server: FhirTraps, pull: Pull, key_file: Path) -> None:
    server.stumbles = [Stumble("/token", 503, times=2)]
    assert pull(server, **smart(key_file)).read == {"Patient": 20}


def test_the_token_endpoint_may_be_given_instead_of_discovered(server: FhirTraps, pull: Pull, key_file: Path) -> None:
    pull(server, **smart(key_file, token_url=f"{server.origin}/token"))
    assert server.asked("smart-configuration") == []


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"key_id": "unknown"}, r"no token \(invalid_client\); check client_id, key_id, that the public key is regist"),
        ({"key_file": Path("nowhere.pem")}, r"nowhere\.pem: the private key cannot be read"),
        ({"key_file": None, "key_env": "NOT_THERE"}, "environment variable NOT_THERE is not set"),
        ({"token_url": "http://auth.example.org/token"}, "only sent over https; change the token endpoint"),
    ],
)
def test_what_is_wrong_with_the_credentials_is_one_line(
    server: FhirTraps, pull: Pull, key_file: Path, wrong: dict[str, Any], line: str
) -> None:
    with pytest.raises(SourceFailed, match=line) as failed:
        pull(server, **{**smart(key_file), **wrong})
    assert "secret text" not in str(failed.value)


@pytest.mark.parametrize("key", [ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 1024)])
def test_a_key_of_the_wrong_kind_is_refused(server: FhirTraps, pull: Pull, tmp_path: Path, key: Any) -> None:
    path = tmp_path / "weak.pem"
    path.write_text(pem(key))
    with pytest.raises(SourceFailed, match="RSA key from 2048 bits"):
        pull(server, **smart(path))


def test_a_broken_key_is_not_quoted(server: FhirTraps, pull: Pull, tmp_path: Path) -> None:
    path = tmp_path / "broken.pem"
    path.write_text(pem(KEYS["RS384"])[:200])
    with pytest.raises(SourceFailed) as failed:
        pull(server, **smart(path))
    assert str(failed.value) == f"{path}: not a private key in PEM or JWK form without a password"


def test_a_server_that_takes_only_the_other_algorithm_is_named(server: FhirTraps, pull: Pull, key_file: Path) -> None:
    server.algorithms = ("RS384",)
    with pytest.raises(SourceFailed, match="accepts no ES384 keys"):
        pull(server, **smart(key_file))


def test_a_server_without_smart_configuration_is_named(server: FhirTraps, pull: Pull, key_file: Path) -> None:
    server.stumbles = [Stumble("smart-configuration", 404)]
    with pytest.raises(SourceFailed, match=r"smart-configuration \(or set token_url\): nothing is there"):
        pull(server, **smart(key_file))


def test_a_fixed_token_and_a_password_come_from_the_environment(
    server: FhirTraps, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.keys = {}
    monkeypatch.setenv("HIS_SECRET", "s3cret")
    pull(server, kind="bearer", token_env="HIS_SECRET")
    pull(server, kind="basic", user="spinney", password_env="HIS_SECRET")
    sent = [one.headers["authorization"] for one in server.asked("/metadata")]
    assert sent == ["Bearer s3cret", "Basic c3Bpbm5leTpzM2NyZXQ="]


def test_no_secret_is_sent_without_tls_to_another_machine(
    server: FhirTraps, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIS_SECRET", "s3cret")
    with pytest.raises(SourceFailed, match="only sent over https; change base_url"):
        pull(server, "http://fhir.example.org/r4", kind="bearer", token_env="HIS_SECRET")
