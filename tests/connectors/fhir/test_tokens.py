"""What every kind of fetched token has in common; each kind's own test has the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from spinney.connectors.fhir.http import Http
from spinney.connectors.fhir.tokens import FetchedToken, refuse_clear_text
from spinney.errors import SourceFailed
from tests.servers.fhir_traps import FhirTraps


class Anybody:
    """Proves nothing."""

    kind, advice = "anybody", "nothing"

    def fits(self, offered: Mapping[str, Any], host: str) -> None: ...

    def headers(self) -> Mapping[str, str]:
        return {}

    def form(self, _url: str) -> Mapping[str, str]:
        return {"client_id": "spinney", "client_secret": "s", "grant_type": "client_credentials"}


@pytest.mark.parametrize("lives", [None, -1, True, "soon", float("inf"), 3600])
def test_a_token_is_kept_also_where_its_life_is_not_told(lives: Any) -> None:
    with FhirTraps(clients={"spinney": "s"}, token_answer={"expires_in": lives}) as server:
        token = FetchedToken(Anybody(), f"{server.origin}/token", server.base_url, Http)
        assert token.headers() == token.headers() == {"Authorization": "Bearer token-1"}
        token.renew()
        assert token.headers() == {"Authorization": "Bearer token-2"}


def test_only_this_machine_may_be_told_a_secret_in_clear_text() -> None:
    for url in ("https://x.example.org", "http://127.0.0.1:80/t", "http://localhost/t", "http://[::1]/t"):
        refuse_clear_text(url, "base_url")
    with pytest.raises(SourceFailed, match="only sent over https"):
        refuse_clear_text("http://127.0.0.1.example.org/t", "base_url")
