"""Who we are to a FHIR server: nobody, a user with a password, a fixed token, or a SMART backend service.

A backend service proves itself with a JWT signed by its private key (RS384 or ES384) and gets a token that lives for
minutes; it is renewed before it expires, and once more when the server refuses it.
"""

from __future__ import annotations

import base64
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import Field, model_validator

from spinney.base import Settings
from spinney.connectors.fhir.http import Anonymous, Auth, Http, host_of, parse_object
from spinney.errors import SourceFailed

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS = 240  # SMART allows five minutes; the rest is for clocks that differ
SHORTEST_TOKEN = 300.0  # assumed where the server does not say how long a token lives
OAUTH_ERRORS = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)


class NoAuth(Settings):
    """The server asks for nothing."""

    kind: Literal["none"] = "none"


class BasicAuth(Settings):
    """User name and password."""

    kind: Literal["basic"]
    user: str = Field(description="User name.")
    password_env: str = Field(description="Environment variable that holds the password.")


class BearerAuth(Settings):
    """A token that somebody else renews."""

    kind: Literal["bearer"]
    token_env: str = Field(description="Environment variable that holds the token.")


class SmartAuth(Settings):
    """SMART Backend Services: a registered client with a private key."""

    kind: Literal["smart-backend"]
    client_id: str = Field(description="The client's id, as registered at the server.")
    key_file: Path | None = Field(None, description="Private key as PEM or JWK: RSA from 2048 bits, or EC P-384.")
    key_env: str | None = Field(None, description="Environment variable that holds the key instead of a file.")
    key_id: str | None = Field(None, description="The key's id (kid) at the server; a JWK may bring its own.")
    scope: str = Field("system/*.read", description="What is asked for; SMART 2 servers want system/*.rs.")
    token_url: str | None = Field(None, description="Token endpoint. Empty: as the server's smart-configuration says.")

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if (self.key_file is None) == (self.key_env is None):
            raise ValueError("smart-backend needs either key_file or key_env")
        return self


AnyAuth = Annotated[NoAuth | BasicAuth | BearerAuth | SmartAuth, Field(discriminator="kind")]


class FixedHeader:
    """Basic and bearer: the same header every time."""

    def __init__(self, kind: str, authorization: str) -> None:
        self.kind, self._authorization = kind, authorization

    def headers(self) -> Mapping[str, str]:
        return {"Authorization": self._authorization}

    def renew(self) -> bool:
        return False


class SmartBackend:
    """Fetches, keeps and renews the token of a backend service."""

    kind = "smart-backend"

    def __init__(self, settings: SmartAuth, base_url: str, anonymous: Callable[[], Http]) -> None:
        self._settings, self._base_url, self._anonymous = settings, base_url, anonymous
        self._key, self._algorithm, self._key_id = load_key(settings)
        self._token_url = settings.token_url
        self._token, self._good_until = "", 0.0

    def headers(self) -> Mapping[str, str]:
        if time.monotonic() >= self._good_until:
            self._fetch()
        return {"Authorization": f"Bearer {self._token}"}

    def renew(self) -> bool:
        self._good_until = 0.0
        return True

    def _fetch(self) -> None:
        with self._anonymous() as http:
            url = self._token_url = self._token_url or self._discover(http)
            refuse_clear_text(url, "the token endpoint")
            answer = http.send("POST", url, "token", form=lambda: self._form(url), accept=(200, 400, 401))
        granted = parse_object(answer.body, f"{host_of(url)}: the token endpoint does not answer with JSON")
        token = granted.get("access_token")
        if answer.status != 200 or not isinstance(token, str) or not token:
            raise SourceFailed(_no_token(url, granted))
        lives = granted.get("expires_in")
        seconds = float(lives) if isinstance(lives, int | float) and lives > 0 else SHORTEST_TOKEN
        self._token = token
        self._good_until = time.monotonic() + seconds - min(60.0, seconds / 5)

    def _discover(self, http: Http) -> str:
        where = f"{self._base_url}/.well-known/smart-configuration"
        offered = http.json(where, "smart-configuration (or set token_url)")
        url = offered.get("token_endpoint")
        if not isinstance(url, str) or urlsplit(url).scheme not in ("https", "http"):
            raise SourceFailed(f"{host_of(where)}: smart-configuration names no token_endpoint; set token_url")
        algorithms = offered.get("token_endpoint_auth_signing_alg_values_supported")
        if isinstance(algorithms, list) and self._algorithm not in algorithms:
            raise SourceFailed(
                f"{host_of(where)}: accepts no {self._algorithm} keys; register the other kind (RSA or EC)"
            )
        return url

    def _form(self, url: str) -> dict[str, str]:
        now = int(time.time())
        me = self._settings.client_id
        claims = {
            "iss": me,
            "sub": me,
            "aud": url,
            "jti": secrets.token_hex(16),
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
        }
        headers = {"kid": self._key_id} if self._key_id else None
        return {
            "grant_type": "client_credentials",
            "scope": self._settings.scope,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": jwt.encode(claims, self._key, algorithm=self._algorithm, headers=headers),
        }


def authorise(
    settings: NoAuth | BasicAuth | BearerAuth | SmartAuth, base_url: str, anonymous: Callable[[], Http]
) -> Auth:
    """The credentials that the settings name; `anonymous` opens a client without any, for fetching tokens."""
    if isinstance(settings, NoAuth):
        return Anonymous()
    refuse_clear_text(base_url, "base_url")
    if isinstance(settings, BasicAuth):
        pair = f"{settings.user}:{from_environment(settings.password_env)}"
        return FixedHeader("basic", "Basic " + base64.b64encode(pair.encode()).decode())
    if isinstance(settings, BearerAuth):
        return FixedHeader("bearer", f"Bearer {from_environment(settings.token_env)}")
    return SmartBackend(settings, base_url, anonymous)


def load_key(settings: SmartAuth) -> tuple[Any, str, str | None]:
    """The private key, the algorithm that fits it, and its id."""
    where = str(settings.key_file or settings.key_env)
    try:
        text = (
            settings.key_file.read_text(encoding="utf-8")
            if settings.key_file
            else from_environment(str(settings.key_env))
        )
    except (OSError, UnicodeDecodeError):
        raise SourceFailed(f"{where}: the private key cannot be read; check key_file and its rights") from None
    key_id = settings.key_id
    try:
        if text.lstrip().startswith("{"):
            jwk = jwt.PyJWK.from_json(text)
            key, key_id = jwk.key, key_id or jwk.key_id
        else:
            key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, jwt.PyJWTError):  # their messages may quote the key
        raise SourceFailed(f"{where}: not a private key in PEM or JWK form without a password") from None
    if isinstance(key, RSAPrivateKey) and key.key_size >= 2048:
        return key, "RS384", key_id
    if isinstance(key, EllipticCurvePrivateKey) and key.curve.name == "secp384r1":
        return key, "ES384", key_id
    raise SourceFailed(f"{where}: SMART needs a private RSA key from 2048 bits (RS384) or EC P-384 (ES384)")


def from_environment(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise SourceFailed(f"the environment variable {name} is not set; it should hold a secret of the FHIR source")
    return value


def refuse_clear_text(url: str, what: str) -> None:
    """Credentials travel over TLS, except to this very machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise SourceFailed(f"{host_of(url)}: credentials are only sent over https; change {what}")


def _no_token(url: str, granted: Mapping[str, Any]) -> str:
    error = granted.get("error")
    named = f" ({error})" if isinstance(error, str) and error in OAUTH_ERRORS else ""
    if error == "invalid_scope":
        return f"{host_of(url)}: no token{named}; check scope (system/*.read or system/*.rs)"
    return (
        f"{host_of(url)}: no token{named}; check client_id, key_id, that the public key is registered there, "
        "and this machine's clock"
    )
