"""What a FHIR server says it is and can do."""

from __future__ import annotations

import pytest

from spinney.connectors.sources.fhir_rest import FhirRestSettings
from spinney.errors import SourceFailed
from tests.connectors.fhir.rest import Puller
from tests.servers.fhir_traps import FhirTraps


def test_something_that_is_not_a_fhir_server_is_named(server: FhirTraps, pull: Puller) -> None:
    server.plays = b"<html>Please log in</html>"
    with pytest.raises(SourceFailed, match="metadata: not JSON; is base_url a FHIR server's address"):
        pull(server)
    server.plays = b'{"status": "up"}'
    with pytest.raises(SourceFailed, match="not a FHIR server at this path"):
        pull(server)
    server.plays = b'{"resourceType": "CapabilityStatement", "fhirVersion": "3.0.2"}'
    with pytest.raises(SourceFailed, match=r"speaks FHIR 3\.0\.2, but R4, R4B or R5 is needed"):
        pull(server)
    server.plays = b'{"resourceType": "CapabilityStatement", "fhirVersion": "4.6.0"}'  # a draft of R5
    with pytest.raises(SourceFailed, match=r"speaks FHIR 4\.6\.0"):
        pull(server)


@pytest.mark.parametrize("address", ["fhir.example.org", "ftp://host/fhir", "https://u:p@host/fhir", "https://h/?a=1"])
def test_an_address_that_cannot_be_right_is_refused_in_the_settings(address: str) -> None:
    with pytest.raises(ValueError, match="base_url must"):
        FhirRestSettings(base_url=address)
