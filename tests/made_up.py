"""Small made-up FHIR resources and studies, and the way from them to a table."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd

from spinney.cohort.events import Staged, stage
from spinney.cohort.pull import pull, pull_open
from spinney.cohort.pull_report import OpenRows, PullResult
from spinney.cohort.vault import Vault
from spinney.configuration.site import SiteSettings
from spinney.connectors.duck import open_bench
from spinney.connectors.sources import Pulled
from spinney.study.study import Study

NOW = datetime(2024, 1, 1, tzinfo=UTC)
WEIGHT = "http://loinc.org|29463-7"
GLUCOSE = "http://loinc.org|2339-0"
_numbers = count()

Resource = dict[str, Any]


def patient(name: str = "ann", birth: str = "1960-05-17", sex: str = "female", **more: Any) -> Resource:
    return {"resourceType": "Patient", "id": name, "birthDate": birth, "gender": sex, **more}


def coded(code: str) -> dict[str, Any]:
    system, _, word = code.partition("|")
    return {"coding": [{"system": system, "code": word}]}


def observation(
    time: str, value: float | None = None, unit: str = "kg", code: str = WEIGHT, who: str = "ann", **more: Any
) -> Resource:
    quantity = {} if value is None else {"valueQuantity": {"value": value, "code": unit}}
    return {
        "resourceType": "Observation",
        "id": f"o{next(_numbers)}",
        "status": "final",
        "code": coded(code),
        "subject": {"reference": f"Patient/{who}"},
        "effectiveDateTime": time,
        **quantity,
        **more,
    }


def encounter(start: str, end: str | None = None, who: str = "ann", kind: str = "IMP", **more: Any) -> Resource:
    return {
        "resourceType": "Encounter",
        "id": f"e{next(_numbers)}",
        "status": "finished" if end else "in-progress",
        "class": {"code": kind},
        "subject": {"reference": f"Patient/{who}"},
        "period": {"start": start, **({"end": end} if end else {})},
        **more,
    }


def event(kind: str, time: str, code: str, who: str = "ann", **more: Any) -> Resource:
    """A Condition, MedicationRequest or Procedure."""
    where, when = {
        "Condition": ("code", "onsetDateTime"),
        "MedicationRequest": ("medicationCodeableConcept", "authoredOn"),
        "Procedure": ("code", "performedDateTime"),
    }[kind]
    subject = {"reference": f"Patient/{who}"}
    return {
        "resourceType": kind,
        "id": f"x{next(_numbers)}",
        where: coded(code),
        when: time,
        "subject": subject,
        **more,
    }


REGISTRY = "https://registry.example.org/groups|hf"


def group(*members: Resource | str, called: str = REGISTRY, **more: Any) -> Resource:
    """A Group in R4; a member that is only named has no period."""
    system, _, value = called.partition("|")
    people = [{"entity": {"reference": f"Patient/{one}"}} if isinstance(one, str) else one for one in members]
    return {
        "resourceType": "Group",
        "id": f"g{next(_numbers)}",
        "type": "person",
        "actual": True,
        "identifier": [{"system": system, "value": value}],
        "member": people,
        **more,
    }


def member(who: str, start: str | None = None, end: str | None = None, **more: Any) -> Resource:
    period = {name: when for name, when in (("start", start), ("end", end)) if when}
    return {"entity": {"reference": f"Patient/{who}"}, **({"period": period} if period else {}), **more}


def feature(name: str, statistic: str, **source: Any) -> dict[str, Any]:
    """A continuous feature from weights, unless told otherwise."""
    unit = None if statistic in ("count", "exists", "days-since", "slope") else "kg"
    recipe = {"kind": "Observation", "codes": [WEIGHT], "statistic": statistic, **source}
    if statistic == "slope":
        recipe.setdefault("unit", "kg")
    return {"name": name, "kind": "continuous", "range": [-1000, 1000], "unit": unit, "source": recipe}


def study(
    *features: dict[str, Any], label: dict[str, Any] | None = None, imputation: str = "none", **cohort: Any
) -> Study:
    """A study of inpatient stays, from their ends on, unless told otherwise."""
    index = {"kind": "Encounter", "classes": ["IMP"], "statuses": ["finished"], "at": "end"}
    return Study.model_validate(
        {
            "name": "stays",
            "features": features or [feature("weight", "last")],
            "label": {"name": "outcome", "source": label or {"outcome": "index-event", "horizon": "30d"}},
            "cohort": {"index": index, **cohort},
            "imputation": imputation,
        }
    )


def write(folder: Path, resources: Iterable[Resource | str]) -> Path:
    """NDJSON files by type; a text is written to the Observations as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in resources:
        kind = "Observation" if isinstance(one, str) else one["resourceType"]
        with (folder / f"{kind}.ndjson").open("a") as file:
            file.write((one if isinstance(one, str) else json.dumps(one)) + "\n")
    return folder


def site(folder: Path, **more: Any) -> SiteSettings:
    source = {"kind": "files", "path": folder / "fhir"}
    return SiteSettings.model_validate({"name": "made-up", "home": folder / "home", "source": source, **more})


def staged(folder: Path, *lines: Any, kind: str = "Observation", timezone: str = "UTC") -> tuple[Staged, list[Any]]:
    """What becomes of some lines, and the good events as (patient, code, time, until, recorded, value, text, unit)."""
    source = folder / f"{kind}.ndjson"
    source.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    with open_bench(folder, timezone) as bench:
        result = stage(bench, Pulled({kind: (source,)}), folder)
        path = result.patients or result.events[kind]
        columns = (
            "patient, birth, sex, died, died_that_day"
            if kind == "Patient"
            else 'patient, code, "time", "until", recorded, value, text, unit'
        )
        return result, bench.execute(
            f"SELECT {columns} FROM read_parquet('{path}') WHERE reason IS NULL ORDER BY 3, place"
        ).fetchall()


def pull_at(study: Study, site: SiteSettings, **how: Any) -> PullResult:
    """A pull with all that a site's settings say."""
    return pull(study, site.pull_plan(study.name), **how)


def pull_open_at(study: Study, site: SiteSettings, **how: Any) -> OpenRows:
    """The same for the rows to be scored."""
    return pull_open(study, site.pull_plan(study.name), **how)


def pulled(folder: Path, of: Study, resources: Iterable[Resource | str], **more: Any) -> PullResult:
    write(folder / "fhir", resources)
    return pull_at(of, site(folder, **more), now=NOW)


def frame(folder: Path, of: Study, resources: Iterable[Resource | str], **more: Any) -> pd.DataFrame:
    """The rows with a ripe label, in the order of their index times."""
    result = pulled(folder, of, resources, **more)
    return Vault(folder / "home").read(result.cohort).to_pandas().sort_values("index_time").reset_index(drop=True)


# A stay in January, and a much later event that makes every label before it ripe.
STAY = encounter("2023-01-01T10:00:00Z", "2023-01-10T10:00:00Z")
RIPENER = encounter("2023-12-01T10:00:00Z", "2023-12-02T10:00:00Z", who="zoe", kind="AMB")
WEIGHED = [patient(), STAY, RIPENER, observation("2023-01-05", 70.0)]

# Weights on four days before the end of the stay on the 10th, 10:00.
WEIGHTS = [
    observation("2023-01-06T10:00:00Z", 70.0),
    observation("2023-01-07T10:00:00Z", 74.0),
    observation("2023-01-08T10:00:00Z", 71.0),
    observation("2023-01-09T10:00:00Z", 79.0),
]
ORDERED = [feature(name, name) for name in ("mean", "std", "slope", "median", "last", "p10")]


def crowd(people: int) -> list[Any]:
    """A stay and thirty weights of each."""
    chance = random.Random(3)
    resources: list[Any] = []
    for number in range(people):
        who = f"p{number}"
        resources += [patient(who), encounter("2023-03-01", f"2023-03-{10 + number % 9}T07:00:00Z", who=who)]
        resources += [
            observation(f"2023-0{1 + chance.randrange(3)}-{1 + chance.randrange(28):02d}", chance.gauss(70, 9), who=who)
            for _ in range(30)
        ]
    return [*resources, RIPENER]


def plain_study() -> Study:
    """A study of finished tables: it has no definition."""
    weight = {"name": "weight", "kind": "continuous", "range": [0, 300]}
    height = {"name": "height", "kind": "continuous", "range": [0, 3]}
    return Study.model_validate({"name": "plain", "features": [weight, height], "label": {"name": "outcome"}})
