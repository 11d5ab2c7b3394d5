"""The same small FHIR server, which also takes RiskAssessments, as real ones do: with or without If-None-Exist."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import parse_qs

from tests.servers.fhir_traps import FhirTraps, Handler, Json


@dataclass
class FhirWrites(FhirTraps):
    """Honest until a trap is set."""

    conditional: bool = True  # honours If-None-Exist
    finds: bool = True  # finds resources by their identifier

    def handler(self) -> type[Handler]:
        return _Handler

    def having(self, identifier: str) -> list[Json]:
        """RiskAssessments with one of these identifiers (system|value, by commas)."""
        wanted = {*identifier.split(",")} if self.finds else set()
        found = self.store.get("RiskAssessment", {}).values()
        return [one for one in found if wanted & {f"{i['system']}|{i['value']}" for i in one["identifier"]}]


class _Handler(Handler):
    traps: FhirWrites

    def _route(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> None:
        if path != "/fhir/RiskAssessment":
            return super()._route(method, path, query, body)
        if not self._known():
            return self._json({"resourceType": "OperationOutcome"}, 401)
        if method == "GET":
            entries = [{"resource": one} for one in self.traps.having(query["identifier"][0])]
            return self._json({"resourceType": "Bundle", "type": "searchset", "entry": entries})
        condition = parse_qs(self.headers.get("If-None-Exist", "")).get("identifier", [""])[0]
        if self.traps.conditional and self.traps.having(condition):
            return self._json({"resourceType": "OperationOutcome"}, 200)
        made = {**json.loads(body), "id": f"r{len(self.traps.store.get('RiskAssessment', {}))}"}
        self.traps.put(made)
        return self._json(made, 201)
