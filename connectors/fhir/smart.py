"""Who we are to a FHIR server: nobody, a password, a fixed token, a SMART backend service, or a client with a secret.

A backend service proves itself with a JWT signed by its private key (RS384 or ES384). It and a client with a secret
get a token that lives for minutes; it is renewed before it expires, and once more when the server refuses it.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import Field, model_validator

from spinney.base import Settings
from spinney.connectors.fhir.client_secret import ClientCredentialsAuth, ClientSecret
from spinney.connectors.fhir.http import Anonymous, Auth, Http
from spinney.connectors.fhir.tokens import FetchedToken, from_environment, refuse_clear_text
from spinney.errors import SourceFailed

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS = 240  # SMART allows five minutes; the rest is for clocks that differ


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


AnyAuth = Annotated[NoAuth | BasicAuth | BearerAuth | SmartAuth | ClientCredentialsAuth, Field(discriminator="kind")]


class FixedHeader:
    """Basic and bearer: the same header every time."""

    def __init__(self, kind: str, authorization: str) -> None:
        self.kind, self._authorization = kind, authorization

    def headers(self) -> Mapping[str, str]:
        return {"Authorization": self._authorization}

    def renew(self) -> bool:
        return False


class SignedAssertion:
    """A JWT that only the holder of the private key can make."""

    kind = "smart-backend"
    advice = "client_id, key_id, that the public key is registered there, and this machine's clock"

    def __init__(self, settings: SmartAuth) -> None:
        self._settings = settings
        self._key, self._algorithm, self._key_id = load_key(settings)

    def fits(self, offered: Mapping[str, Any], host: str) -> None:
        algorithms = offered.get("token_endpoint_auth_signing_alg_values_supported")
        if isinstance(algorithms, list) and self._algorithm not in algorithms:
            raise SourceFailed(f"{host}: accepts no {self._algorithm} keys; register the other kind (RSA or EC)")

    def headers(self) -> Mapping[str, str]:
        return {}

    def form(self, url: str) -> Mapping[str, str]:
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


def authorise(settings: AnyAuth, base_url: str, anonymous: Callable[[], Http]) -> Auth:
    """The credentials that the settings name; `anonymous` opens a client without any, for fetching tokens."""
    if isinstance(settings, NoAuth):
        return Anonymous()
    refuse_clear_text(base_url, "base_url")
    if isinstance(settings, BasicAuth):
        pair = f"{settings.user}:{from_environment(settings.password_env)}"
        return FixedHeader("basic", "Basic " + base64.b64encode(pair.encode()).decode())
    if isinstance(settings, BearerAuth):
        return FixedHeader("bearer", f"Bearer {from_environment(settings.token_env)}")
    proof = SignedAssertion(settings) if isinstance(settings, SmartAuth) else ClientSecret(settings)
    return FetchedToken(proof, settings.token_url, base_url, anonymous)


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
