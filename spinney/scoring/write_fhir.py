"""Scores as RiskAssessment resources of a FHIR R4 server, each of them created once, however often a night is run.

A score carries an identifier that is the same in every run. Resources that are there already are looked up by it, and
what is missing is created with If-None-Exist, so that two runs at the same time make one resource, too. Many servers
ignore that header, so after the first one was created the server must find it by its identifier, or nothing more is
written: the next night would write everything again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from spinney.connectors.fhir.http import Http, host_of, objects
from spinney.connectors.fhir.server import Connect, connect
from spinney.errors import SourceFailed
from spinney.scoring.scores import Score, ScoredBy, in_batches
from spinney.scoring.settings import ScoresFhir
from spinney.study.definition import length
from spinney.study.study import Study

SYSTEM = "urn:spinney:score"
MODELS = "urn:spinney:model"
AT_ONCE = 25
FHIR_JSON = "application/fhir+json"

Resource = dict[str, Any]


def write_fhir(
    settings: ScoresFhir,
    scores: Iterable[Score],
    study: Study,
    source: ScoredBy,
    now: datetime,
    connect: Connect = connect,
) -> int:
    """Create what is not there yet; says how many resources are new."""
    made = 0
    with connect(settings) as http:
        writer = _Writer(http, settings.base_url)
        for some in in_batches(scores, AT_ONCE):
            known = writer.known([one.key for one in some])
            for one in some:
                if one.key not in known:
                    made += writer.create(assessment(one, study, source, now, settings.patient_system), one.key)
    return made


def assessment(score: Score, study: Study, source: ScoredBy, now: datetime, patient_system: str | None) -> Resource:
    """A RiskAssessment, held against the models of `fhir.resources`."""
    from fhir.resources.R4B.riskassessment import RiskAssessment  # half a second to load

    subject: Resource = {"reference": f"Patient/{score.patient}"}
    if patient_system is not None:
        subject = {"type": "Patient", "identifier": {"system": patient_system, "value": score.patient}}
    name = f"{source.model} version {source.version}"
    coding = {"system": f"{MODELS}:{source.model}", "code": source.digest, "version": str(source.version)}
    resource: Resource = {
        "resourceType": "RiskAssessment",
        "identifier": [{"system": SYSTEM, "value": score.key}],
        "status": "final",
        "method": {"coding": [{**coding, "display": name}], "text": f"Spinney, {name}"},
        "subject": subject,
        "occurrenceDateTime": now.isoformat(timespec="seconds"),
        "prediction": [
            {
                "outcome": {"text": study.label.name},
                "probabilityDecimal": round(score.probability, 4),
                "qualitativeRisk": {"text": "above the threshold" if score.decision else "below the threshold"},
                "whenPeriod": _horizon(score, study),
            }
        ],
    }
    try:
        RiskAssessment.model_validate(resource)
    except ValueError:  # its text quotes the patient
        raise SourceFailed("a score makes no valid RiskAssessment; are patient identifiers FHIR ids?") from None
    return resource


def _horizon(score: Score, study: Study) -> Resource:
    """From prediction time to the end of the horizon, where the study says how long that is."""
    offset = length(study.cohort.offset) if study.cohort else timedelta(0)
    start = score.index_time + offset
    if study.label.source is None:
        return {"start": start.isoformat(timespec="seconds")}
    end = start + length(study.label.source.horizon)
    return {"start": start.isoformat(timespec="seconds"), "end": end.isoformat(timespec="seconds")}


class _Writer:
    """One server's RiskAssessments."""

    def __init__(self, http: Http, base_url: str) -> None:
        self._http, self._address, self._proven = http, f"{base_url}/RiskAssessment", False

    def known(self, keys: Sequence[str]) -> set[str]:
        """Which of these scores the server has."""
        wanted = quote(",".join(f"{SYSTEM}|{key}" for key in keys), safe="")
        bundle = self._http.json(f"{self._address}?identifier={wanted}&_count={4 * AT_ONCE}", "RiskAssessment")
        found = [objects(entry.get("resource", {}).get("identifier")) for entry in objects(bundle.get("entry"))]
        values = {str(one.get("value")) for identifiers in found for one in identifiers if one.get("system") == SYSTEM}
        return values & {*keys}

    def create(self, resource: Resource, key: str) -> bool:
        """True if it is new, False if another run was faster."""
        headers = {"Content-Type": FHIR_JSON, "If-None-Exist": f"identifier={quote(f'{SYSTEM}|{key}', safe='')}"}
        answer = self._http.send(
            "POST",
            self._address,
            "RiskAssessment",
            headers=headers,
            content=json.dumps(resource).encode(),
            accept=(200, 201),
        )
        if not self._proven:
            if not self.known([key]):
                raise SourceFailed(
                    f"{host_of(self._address)}: does not find a RiskAssessment by its identifier, so that scores would "
                    "be written again every night; ask its administrator for that search, or write to a table"
                )
            self._proven = True
        return answer.status == 201
