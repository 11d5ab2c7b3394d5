"""OAuth 2.0 client credentials with a secret (RFC 6749, 2.3.1 and 4.4), as Azure, Keycloak and Medplum have them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote_plus

from pydantic import Field, field_validator

from spinney.base import Settings
from spinney.connectors.fhir.tokens import from_environment
from spinney.errors import SourceFailed

OURS = frozenset(
    {"grant_type", "scope", "client_id", "client_secret", "client_assertion", "client_assertion_type"}
)  # words of a request for a token that have a setting of their own, or none
METHODS = {"header": "client_secret_basic", "form": "client_secret_post"}


class ClientCredentialsAuth(Settings):
    """OAuth 2.0 client credentials: a registered client with a secret."""

    kind: Literal["client-credentials"]
    client_id: str = Field(description="The client's id, as registered; it is no secret.")
    client_secret_env: str = Field(description="Environment variable that holds the client's secret.")
    scope: str = Field("", description="What is asked for, such as https://fhir.example.org/.default; empty: nothing.")
    token_url: str | None = Field(None, description="Token endpoint. Empty: as the server's smart-configuration says.")
    secret_in: Literal["header", "form"] | None = Field(
        None,
        description="header: HTTP Basic; form: in the request's body. Empty: what the server says, or else header.",
    )
    parameters: dict[str, str] = Field(
        {}, description="What else the endpoint wants in the request, such as audience or resource; no secrets."
    )

    @field_validator("parameters")
    @classmethod
    def _have_no_setting(cls, value: dict[str, str]) -> dict[str, str]:
        if taken := sorted(OURS & value.keys()):
            raise ValueError(f"parameters: {taken[0]} is not set here but by the settings beside it")
        return value


class ClientSecret:
    """The secret, in the header or in the form."""

    kind = "client-credentials"
    advice = (
        "client_id, the client's secret (is it expired?), scope and secret_in, and that it may use client credentials"
    )

    def __init__(self, settings: ClientCredentialsAuth) -> None:
        self._settings = settings
        self._secret = from_environment(settings.client_secret_env)
        self._place: str = settings.secret_in or "header"

    def fits(self, offered: Mapping[str, Any], host: str) -> None:
        methods = offered.get("token_endpoint_auth_methods_supported")
        if self._settings.secret_in or not isinstance(methods, list):
            return
        place = next((place for place, method in METHODS.items() if method in methods), None)
        if place is None:
            raise SourceFailed(f"{host}: accepts no client secrets; use kind smart-backend with a key")
        self._place = place

    def headers(self) -> Mapping[str, str]:
        if self._place == "form":
            return {}
        pair = f"{quote_plus(self._settings.client_id)}:{quote_plus(self._secret)}"
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}

    def form(self, url: str) -> Mapping[str, str]:  # noqa: ARG002
        settings = self._settings
        asked = {"grant_type": "client_credentials", **({"scope": settings.scope} if settings.scope else {})}
        who = {"client_id": settings.client_id, "client_secret": self._secret} if self._place == "form" else {}
        return {**settings.parameters, **asked, **who}
