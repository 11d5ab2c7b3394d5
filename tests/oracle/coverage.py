"""Studies of who was in sight without a break, and records that say from when to when, as insurers do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from spinney.study.study import Study
from tests.oracle import population, reference
from tests.oracle.faults import Plant
from tests.oracle.records import FhirCase, Records
from tests.oracle.row_records import RowCase, RowRecords

KIND, CODES = "Coverage", ("cover|public", "cover|private")
Words = dict[str, Any]


def covered_case_of(seed: int) -> FhirCase | RowCase:
    """Resources or rows, and a study that asks how long a patient was in sight before."""
    draws: Records = Records(seed) if seed % 2 else RowRecords(seed)
    made = draws.row_case() if isinstance(draws, RowRecords) else draws.case()
    stays = [one for one in made.read().events if one.kind == "Encounter"]
    around = [
        (one.patient, moment) for one in stays for moment in (one.time.first, one.until and one.until.last) if moment
    ]
    spans = [_span(draws, who, moment) for who, moment in around if draws.often(0.7)]
    study = _asked(made.study, draws.chance)
    if isinstance(made, FhirCase):
        return replace(made, study=study, resources=[*made.resources, *(_resource(draws, one) for one in spans)])
    return replace(made, study=study, tables={**made.tables, KIND: [_row(draws, one) for one in spans]})


def _span(draws: Records, who: str, moment: datetime) -> Words:
    began = moment - timedelta(days=draws.chance.choice((0, 1, 29, 30, 31, 400)), hours=draws.chance.choice((0, 0, 1)))
    ended = moment + timedelta(hours=draws.chance.choice((-24, -1, 0, 0, 1, 24, 9_000)))
    status = draws.chance.choice(("active", "active", "active", "cancelled", "draft"))
    last = {"until": draws.written(ended)} if draws.often(0.8) else {}
    return {"patient": who, "time": draws.written(began), **last, "code": draws.chance.choice(CODES), "status": status}


def _resource(draws: Records, span: Words) -> Words:
    system, _, code = span["code"].partition("|")
    period = {"start": span["time"], **({"end": span["until"]} if "until" in span else {})}
    said = {"status": span["status"], "type": {"coding": [{"system": system, "code": code}]}, "period": period}
    about = {"beneficiary": {"reference": f"Patient/{span['patient']}"}}
    return {"resourceType": KIND, "id": draws.id("v"), "payor": [{"display": "a fund"}], **about, **said}


def _row(draws: Records, span: Words) -> Words:
    return {**span, "event": draws.id("v")}


def _asked(study: Study, chance: random.Random) -> Study:
    words = study.model_dump(mode="json")
    by = {"kind": KIND, "codes": chance.choice(([], [], CODES[:1]))}
    words["cohort"]["eligible"]["observed"] = {"at_least": chance.choice(("1d", "30d", "30d")), "by": by}
    return Study.model_validate(words)


def what_has_ended_still_lasts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(population, "lasts", lambda *_: True)


def who_is_covered_has_data(patch: pytest.MonkeyPatch) -> None:
    whole = reference.newest

    def newest(study: Study, people: Any, past: Sequence[Any], site: Any) -> datetime:
        return max(
            [
                whole(study, people, past, site),
                *(one.until.last for one in past if one.until and one.until.last <= site.now),
            ]
        )

    patch.setattr(reference, "newest", newest)


FAULTS: dict[str, Plant] = {
    plant.__name__.replace("_", " "): plant for plant in (what_has_ended_still_lasts, who_is_covered_has_data)
}
