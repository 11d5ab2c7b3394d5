"""A site's cohorts for a data catalogue, in the words of DCAT-AP, as JSON-LD.

Counts are those that the site has told the other houses, once per epoch: rounded, and never of a cohort below the
study's smallest. So the catalogue tells nobody more. It was held against no published shapes, and claims none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney.configuration.house import AboutSettings
from spinney.federation.messages import Description
from spinney.house import encoding as wire
from spinney.house.audit import Audit
from spinney.house.sent import NotKept, SentMessages
from spinney.study.study import Study

CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "dcatap": "http://data.europa.eu/r5r/",
    "spinney": "urn:spinney:",
}
RIGHTS = "http://publications.europa.eu/resource/authority/access-right/NON_PUBLIC"
HEALTH = "http://publications.europa.eu/resource/authority/data-theme/HEAL"


@dataclass(frozen=True)
class ToldCount:
    """What a site has told about its cohort when an epoch opened."""

    epoch: int
    day: str
    rows: int


def told_counts(home: Path, study: Study) -> list[ToldCount]:
    """The counts that a house has told under this study, the oldest first, as long as it keeps what it has sent."""
    kept, found = SentMessages(home, study.name), []
    for line in Audit(home / "audit.jsonl").lines():
        if (line.entry.direction, line.entry.kind, line.entry.study) == ("sent", "Description", study.name):
            try:
                sent = kept.of(line)
            except NotKept:
                continue
            told = wire.decode_message(wire.unsqueeze(sent.content))
            if sent.study == study.digest and isinstance(told, Description):
                found.append(ToldCount(line.entry.round, line.time[:10], told.rows))
    return found


def catalogue(site: str, about: AboutSettings, cohorts: Iterable[tuple[Study, Sequence[ToldCount]]]) -> dict[str, Any]:
    """The catalogue of a site. What `about` in site.yaml leaves empty is left out."""
    publisher = {"@type": "foaf:Agent", "foaf:name": about.organisation or site}
    return {
        "@context": CONTEXT,
        "@type": "dcat:Catalog",
        "@id": f"urn:spinney:site:{site}",
        "dcterms:title": f"Cohorts at {about.organisation or site}",
        "dcterms:description": "Cohorts that take part in federated learning. No record of a patient leaves the house.",
        "dcterms:publisher": publisher,
        **({"foaf:homepage": {"@id": about.url}} if about.url else {}),
        "dcat:dataset": [_dataset(site, about, publisher, study, told) for study, told in cohorts],
    }


def _dataset(
    site: str, about: AboutSettings, publisher: dict[str, Any], study: Study, told: Sequence[ToldCount]
) -> dict[str, Any]:
    return {
        "@type": "dcat:Dataset",
        "@id": f"urn:spinney:{study.digest}:cohort:{site}",
        "dcterms:identifier": f"{study.digest}:{site}",
        "dcterms:title": f"Cohort of the study {study.name} at {about.organisation or site}",
        "dcterms:description": study.description or f"Patients of whom the study {study.name} asks {study.label.name}",
        "dcterms:publisher": publisher,
        "dcterms:accessRights": {"@id": RIGHTS},
        "dcat:theme": [{"@id": HEALTH}],
        "dcat:keyword": [feature.name for feature in study.features],
        "dcat:version": str(study.version),
        **({"dcterms:modified": told[-1].day} if told else {}),
        **({"dcat:contactPoint": _contact(about.contact)} if about.contact else {}),
        **({"dcatap:applicableLegislation": {"@id": about.applies}} if about.applies else {}),
        "spinney:purpose": study.purpose,
        "spinney:legalBasis": study.legal_basis,
        "spinney:trainingRows": [
            {"spinney:epoch": one.epoch, "dcterms:date": one.day, "spinney:about": one.rows} for one in told
        ],
    }


def _contact(address: str) -> dict[str, Any]:
    return {"@type": "vcard:Kind", "vcard:hasEmail": {"@id": f"mailto:{address}"}}
