"""Tokens that live for minutes: fetched with OAuth 2.0 client credentials (RFC 6749, 4.4), kept, and renewed in time.

How a client proves who it is, by a signed assertion or by a secret, is a `Proof`. The token endpoint is named by the
site or by the server's smart-configuration. Neither tokens nor an endpoint's own words get into errors or logs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from spinney.connectors.fhir.http import Http, host_of, parse_object
from spinney.errors import SourceFailed

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


class Proof(Protocol):
    """Says to a token endpoint who we are."""

    kind: str
    advice: str
    """What to look at where no token comes."""

    def fits(self, offered: Mapping[str, Any], host: str) -> None:
        """Raise SourceFailed if a smart-configuration accepts nothing of what we have."""

    def headers(self) -> Mapping[str, str]: ...

    def form(self, url: str) -> Mapping[str, str]:
        """The request for a token; made anew for every attempt."""


class FetchedToken:
    """Fetches, keeps and renews the token that a proof is worth."""

    def __init__(self, proof: Proof, token_url: str | None, base_url: str, anonymous: Callable[[], Http]) -> None:
        self.kind = proof.kind
        self._proof, self._token_url, self._base_url, self._anonymous = proof, token_url, base_url, anonymous
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
            answer = http.send(
                "POST",
                url,
                "token",
                headers={"Accept": "application/json", **self._proof.headers()},
                form=lambda: self._proof.form(url),
                accept=(200, 400, 401),
            )
        granted = parse_object(answer.body, f"{host_of(url)}: the token endpoint does not answer with JSON")
        token = granted.get("access_token")
        if answer.status != 200 or not isinstance(token, str) or not _is_sendable(token):
            raise SourceFailed(self._no_token(url, granted))
        if str(granted.get("token_type", "bearer")).lower() != "bearer":
            raise SourceFailed(f"{host_of(url)}: hands out no bearer token; register a client that gets one")
        seconds = _seconds(granted.get("expires_in"))
        self._token = token
        self._good_until = time.monotonic() + seconds - min(60.0, seconds / 5)

    def _discover(self, http: Http) -> str:
        where = f"{self._base_url}/.well-known/smart-configuration"
        offered = http.json(where, "smart-configuration (or set token_url)")
        url = offered.get("token_endpoint")
        if not isinstance(url, str) or urlsplit(url).scheme not in ("https", "http"):
            raise SourceFailed(f"{host_of(where)}: smart-configuration names no token_endpoint; set token_url")
        self._proof.fits(offered, host_of(where))
        return url

    def _no_token(self, url: str, granted: Mapping[str, Any]) -> str:
        error = granted.get("error")
        named = f" ({error})" if isinstance(error, str) and error in OAUTH_ERRORS else ""
        if error == "invalid_scope":
            return f"{host_of(url)}: no token{named}; check scope (system/*.read or system/*.rs)"
        return f"{host_of(url)}: no token{named}; check {self._proof.advice}"


def _is_sendable(token: str) -> bool:
    return bool(token) and token.isascii() and token.isprintable()


def _seconds(lives: object) -> float:
    """How long a token lives; some servers write the number as a text."""
    if isinstance(lives, str) and lives.isascii() and lives.isdigit():
        lives = float(lives[:12])
    known = isinstance(lives, int | float) and not isinstance(lives, bool) and 0 < lives < 1e9
    return float(lives) if known else SHORTEST_TOKEN  # type: ignore[arg-type]


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
