"""What FHIR REST and Bulk Data have in common: where the server is, how to connect, and what it says it can do."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from spinney.base import Settings
from spinney.connectors.fhir.http import Http, host_of, objects
from spinney.connectors.fhir.limits import Limits, is_host, refuse_stranger
from spinney.connectors.fhir.smart import AnyAuth, NoAuth, authorise
from spinney.connectors.sources import Question, SourceSettings, Surroundings, as_yaml
from spinney.errors import SourceFailed

SHORT_PATIENCE = 10.0  # seconds
NEEDS_A_TABLE = "a finished table (kind files or sql), not FHIR"
STARTER = """\
# A FHIR R4 server that {how}.
source:
  kind: {kind}
  base_url: {base_url}
{auth}
  # If its certificate is signed by an authority of your own:
  # ca_file: hospital-ca.pem
"""
AUTH = {
    "none": "  auth: {{kind: none}}",
    "basic": "  auth:\n    kind: basic\n    user: {user}\n    password_env: {secret_env}",
    "bearer": "  auth:\n    kind: bearer\n    token_env: {secret_env}",
    "smart-backend": "  auth:\n    kind: smart-backend\n    client_id: {user}\n    key_env: {secret_env}",
    "client-credentials": "  auth:\n    kind: client-credentials\n    client_id: {user}\n"
    "    client_secret_env: {secret_env}\n    # scope: https://fhir.example.org/.default\n    # token_url: https://login.example.org/token",
}


class FhirServer(Settings):
    """Address and credentials of a FHIR R4 server."""

    base_url: str = Field(description="Address of the server's FHIR endpoint, such as https://fhir.example.org/r4.")
    auth: AnyAuth = Field(
        NoAuth(), description="Credentials: kind none, basic, bearer, smart-backend or client-credentials."
    )
    ca_file: Path | None = Field(None, description="PEM file of the authority that signed the server's certificate.")
    timeout_seconds: float = Field(60, gt=0, description="Longest silence of the server within one request.")
    attempts: int = Field(6, ge=1, le=20, description="Tries of one request before the pull fails.")
    deadline_hours: float = Field(6, gt=0, description="Longest time for the whole pull.")
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Hosts (or host:port) beside the server's own to which its answers may send us: an object store "
        "with the files of exports, a token endpoint.",
    )
    limits: Limits = Field(Limits(), description="The most that one pull takes from the server.")

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not is_host(one):
                raise ValueError(f"{one!r} is no host; write files.example.org or files.example.org:8443")
        return value

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("base_url must look like https://host/path")
        if parts.username or parts.password:
            raise ValueError("base_url must hold no password; use auth with kind basic")
        return value.rstrip("/")

    def answering(self) -> str:
        """That it answers, after one short try."""
        hasty = self.model_copy(update={"attempts": 1, "timeout_seconds": SHORT_PATIENCE})
        with connect(hasty) as http:
            kinds = search_parameters(http, self.base_url)
        return f"{self.base_url} answers, with {len(kinds)} kinds of resources"


class FhirSource(FhirServer, SourceSettings):
    """What all ways to read a FHIR server have in common."""

    asks = (
        Question("base_url", "Address of the FHIR endpoint"),
        Question("auth", "How the server knows you", default="none", choices=tuple(AUTH)),
        Question("user", "User name or client id", when=lambda so_far: so_far["auth"] not in ("none", "bearer")),
        Question(
            "secret_env",
            "Environment variable with the password, token, key or client secret",
            when=lambda so_far: so_far["auth"] != "none",
        ),
    )
    how: ClassVar[str]

    def reach(self, where: Surroundings) -> str:  # noqa: ARG002
        return self.answering()

    @classmethod
    def starter(cls, answers: Mapping[str, str]) -> str:
        words = {key: as_yaml(value) for key, value in answers.items()}
        kind = cls.model_fields["kind"].default
        auth = AUTH[answers["auth"]].format(**words)
        return STARTER.format(how=cls.how, kind=kind, base_url=words["base_url"], auth=auth)


VERSIONS = ("4.0", "4.1", "4.3", "5.0")  # R4, R4B with its ballot, R5
Connect = Callable[[FhirServer], Http]


def connect(server: FhirServer, sleep: Callable[[float], object] = time.sleep) -> Http:
    """A client for this server; nothing is sent yet."""
    how: dict[str, Any] = {
        "verify": _trust(server.ca_file),
        "timeout": server.timeout_seconds,
        "attempts": server.attempts,
        "deadline": server.deadline_hours * 3600,
        "limits": server.limits,
        "refuse": lambda url, what: refuse_stranger(url, server.base_url, _allowed(server), what),
        "sleep": sleep,
    }
    return Http(authorise(server.auth, server.base_url, lambda: Http(**how)), **how)


def _allowed(server: FhirServer) -> tuple[str, ...]:
    """The listed hosts, and that of a token endpoint that the owner has named."""
    token_url = getattr(server.auth, "token_url", None)
    return (*server.allowed_hosts, *([urlsplit(token_url).netloc] if token_url else []))


def search_parameters(http: Http, base_url: str) -> dict[str, frozenset[str]]:
    """By resource type: the search parameters that the server declares. Fails if it speaks no FHIR that is read."""
    statement = http.json(f"{base_url}/metadata", "metadata")
    if statement.get("resourceType") != "CapabilityStatement":
        raise SourceFailed(
            f"{host_of(base_url)}: not a FHIR server at this path; base_url usually ends in /fhir or /r4"
        )
    version = str(statement.get("fhirVersion", "4.0"))
    if not version.startswith(VERSIONS):
        raise SourceFailed(
            f"{host_of(base_url)}: speaks FHIR {version[:8]}, but R4, R4B or R5 is needed; set base_url to an endpoint "
            "that does"
        )
    declared: dict[str, frozenset[str]] = {}
    for rest in objects(statement.get("rest")):
        for resource in objects(rest.get("resource")):
            names = frozenset(str(p.get("name")) for p in objects(resource.get("searchParam")))
            declared[str(resource.get("type"))] = names
    return declared


def _trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError):
        raise SourceFailed(f"{ca_file}: not a readable PEM file of certificates; check ca_file") from None
