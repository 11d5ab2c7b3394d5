"""Variables as features, and the dependent one as the label."""

from __future__ import annotations

import re
from typing import Any

from spinney.connectors.fair4health.documents import Block, member_text, shown
from spinney.connectors.fair4health.notes import Notes, Untranslated
from spinney.connectors.fair4health.queries import events_of, parameters_of, queried_kind
from spinney.connectors.fair4health.ranges import Ranges, key_of

PLACEHOLDER_RANGE, PLACEHOLDER_HORIZON = [0, 1000], "365d"
AGGREGATES = {"count": "count", "max": "max", "min": "min", "avg": "mean", "mean": "mean"}
GROUPED = re.compile(r"groupBy\(\w+\.(?:subject|patient)\.reference[^,]*,(\w+)\(([^()]*)\)\)")
EXISTS = re.compile(r"value:exists(\(\))?|aggr:exists:\w+\.(?:subject|patient)\.reference")
QUANTITY = re.compile(r"\w+\.value(Quantity|\.ofType\(Quantity\)|\.as\(Quantity\))?\.value")
AGE = re.compile(r"Patient\.birthDate\.getPeriod\(\$this,(now|today)\(\),'years?'\)")
CODED_VALUE = re.compile(r"\w+\.value(CodeableConcept|String)?(\.coding)?(\.first\(\))?(\.code|\.display|\.text)?")
BY_STAYS = ("value:readmission:", "value:hospitalization:")
UNPLANNED = {"kind": "Encounter", "codes": ["*|unplanned"]}


def path_of(variable: Block) -> str:
    """The FHIRPath without its spaces."""
    return "".join(member_text(variable, "fhir_path").split())


def is_of_stays(variable: Block) -> bool:
    """Whether rows are stays because of this variable, and no patients."""
    return path_of(variable).startswith(BY_STAYS)


def study_name_of(words: str) -> str:
    """Words as a name that a study takes: Heart failure -> heart_failure."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", words).strip("_.-").lower()[:64].rstrip("_.-")
    return name if re.match(r"[a-z]", name) else f"x_{name}"[:64].rstrip("_.-")


class Variables:
    """Translates variable after variable; says what it assumes."""

    def __init__(self, notes: Notes, ranges: Ranges) -> None:
        self._notes, self._ranges = notes, ranges

    def feature(self, variable: Block) -> dict[str, Any]:
        """A feature without its name. Raises Untranslated."""
        query, path = member_text(variable, "fhir_query"), path_of(variable)
        if (months := _number_after(path, "value:hospitalization:")) is not None:
            self._assume(variable, f"stays of class IMP in the {months} months before index time, not before today")
            window = f"{round(months * 365 / 12)}d"
            stays = {"kind": "Encounter", "classes": ["IMP"], "statistic": "count", "window": window}
            return self._number(variable, stays)
        if queried_kind(query) == "Patient":
            return _patient_feature(query, path)
        if path.startswith("value:Encounter."):
            raise Untranslated(f"{shown(path.removeprefix('value:'))}: of encounters, features count and last")
        events = events_of(query, self._notes)
        if EXISTS.fullmatch(path):
            return {"kind": "binary", "source": {**events, "statistic": "exists"}}
        if path.startswith("aggr:"):
            return self._aggregated(variable, events, path.removeprefix("aggr:"))
        if path.startswith("value:") and QUANTITY.fullmatch(path.removeprefix("value:")):
            self._assume(variable, "the last value before prediction time; FAIR4Health takes any one")
            return self._number(variable, {**events, "statistic": "last"})
        if CODED_VALUE.fullmatch(path.removeprefix("value:")):
            raise Untranslated("a categorical feature needs its categories, and the file does not name them")
        raise Untranslated(f"no statistic for the FHIRPath {shown(member_text(variable, 'fhir_path'))}")

    def label(self, variable: Block) -> dict[str, Any]:
        """The label's source. Raises Untranslated."""
        path = path_of(variable)
        if (days := _number_after(path, "value:readmission:")) is not None:
            self._assume(
                variable,
                "an encounter of type 'unplanned' within the horizon, as in FAIR4Health; with outcome: index-event any "
                "next stay would count",
            )
            return {"outcome": "event", "events": UNPLANNED, "horizon": f"{days}d"}
        if not EXISTS.fullmatch(path):
            raise Untranslated("a label is a readmission or something that exists")
        events = events_of(member_text(variable, "fhir_query"), self._notes)
        self._assume(
            variable, f"FAIR4Health has no horizon; {PLACEHOLDER_HORIZON} after index time is made up, correct it"
        )
        return {"outcome": "event", "events": events, "horizon": PLACEHOLDER_HORIZON}

    def _aggregated(self, variable: Block, events: dict[str, Any], path: str) -> dict[str, Any]:
        match = GROUPED.fullmatch(path)
        statistic = AGGREGATES.get(match[1]) if match else None
        if match is None or statistic is None:
            raise Untranslated("an aggregation other than count, max, min or avg by patient")
        if statistic != "count" and not QUANTITY.fullmatch(match[2]):
            raise Untranslated("an aggregation of something that is no quantity")
        return self._number(variable, {**events, "statistic": statistic})

    def _number(self, variable: Block, source: dict[str, Any]) -> dict[str, Any]:
        """A continuous feature; FAIR4Health knows no units, and ranges only where agents have told them."""
        told = self._ranges.get(key_of(variable))
        unit = "" if source["statistic"] == "count" else ", and there is no unit; write both as they should be"
        if told:
            self._assume(variable, f"range [{told[0]:g}, {told[1]:g}] is what agents told, with 0{unit}")
        else:
            self._assume(variable, f"range {PLACEHOLDER_RANGE} is made up{unit or '; correct it'}")
        return {"kind": "continuous", "range": told or PLACEHOLDER_RANGE, "source": source}

    def _assume(self, variable: Block, words: str) -> None:
        self._notes.assume(f"{study_name_of(member_text(variable, 'name'))}: {words}", variable.line_of("name"))


def _patient_feature(query: str, path: str) -> dict[str, Any]:
    if parameters_of(query):
        raise Untranslated("a query on Patient with conditions")
    if path == "value:Patient.gender":
        sexes = ["female", "male", "other", "unknown"]
        return {"kind": "categorical", "categories": sexes, "source": {"patient": "sex"}}
    if AGE.fullmatch(path.removeprefix("value:")):
        return {"kind": "continuous", "unit": "a", "range": [0, 120], "source": {"patient": "age"}}
    raise Untranslated(f"{shown(path.removeprefix('value:'))}: of a patient, a study knows age and sex")


def _number_after(path: str, prefix: str) -> int | None:
    rest = path.removeprefix(prefix)
    return int(rest) if path.startswith(prefix) and re.fullmatch("[1-9][0-9]{0,3}", rest) else None
