"""FAIR4Health feature sets become a first study: what can be translated is, the rest is listed.

A feature set (JSON of the PPDDM manager, also inside a dataset, a model or a preparation request) has variables, each a
FHIR query and a FHIRPath behind a prefix: `value:` takes a value or asks whether there is a resource, `aggr:` groups by
patient, `value:readmission:30` and `value:hospitalization:12` look at other stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

from pydantic import ValidationError

from spinney.errors import StudyInvalid
from spinney.study.definition import Kind
from spinney.study.study import Study

LARGEST_FILE = 50_000_000
PLACEHOLDER_RANGE, PLACEHOLDER_HORIZON = [0, 1000], "365d"
KINDS = frozenset(get_args(Kind))
# Search parameters that choose no other resources than the study does by itself.
HARMLESS = frozenset({"subject", "patient", "_count", "_sort", "_format", "_summary", "_total", "_pretty"})
CODE_PARAMETERS = frozenset({"code", "medication.code", "vaccine-code"})
# FAIR4Health queries name codes without their system; these are told apart by their form.
CODE_FORMS = (
    (re.compile(r"\d{1,7}-\d"), "http://loinc.org"),
    (re.compile(r"[A-Z]\d\d[A-Z]{2}\d\d"), "http://www.whocc.no/atc"),
    (re.compile(r"[A-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?"), "http://hl7.org/fhir/sid/icd-10"),
)
AGGREGATES = {"count": "count", "max": "max", "min": "min", "avg": "mean", "mean": "mean"}
GROUPED = re.compile(r"groupBy\(\s*\w+\.(?:subject|patient)\.reference[^,]*,\s*(\w+)\(([^()]*)\)\s*\)")
QUANTITY = re.compile(r"\w+\.value(Quantity|\.ofType\(Quantity\)|\.as\(Quantity\))?\.value")
AGE = re.compile(r"Patient\.birthDate\.getPeriod\(\$this,\s*(now|today)\(\),\s*'years?'\)")


class Untranslated(Exception):
    """This variable has no counterpart in a study, and why."""


@dataclass
class Draft:
    """What the variables became, what was assumed on the way, and which of them are left out."""

    features: list[dict[str, Any]] = field(default_factory=list)
    label: dict[str, Any] | None = None
    assumed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, variable: Mapping[str, Any]) -> None:
        name = _name(str(variable.get("name", "")))
        noted: list[str] = []
        try:
            if variable.get("variable_type") == "dependent" and self.label is None:
                self.label = {"name": name, "source": _label(variable, name, noted)}
            else:
                self.features.append(_feature(variable, name, noted))
            self.assumed += noted
        except Untranslated as why:
            self.left_out.append(f"{name}: {why}")


@dataclass(frozen=True)
class Imported:
    """A first study, what was assumed to get there, and what is not in it."""

    study: Study
    assumed: tuple[str, ...]
    left_out: tuple[str, ...]


def import_feature_set(path: Path) -> Imported:
    """Translate a file, or raise StudyInvalid with what keeps it from being a study."""
    content = _content(path)
    feature_set = _feature_set(content)
    if feature_set is None:
        raise StudyInvalid([f"{path}: no FAIR4Health feature set: nothing in it has `variables` with `fhir_query`"])
    draft = Draft()
    for variable in feature_set["variables"]:
        draft.add(variable)
    if not draft.features or draft.label is None:
        raise StudyInvalid([f"{path}: has no feature or no dependent variable to translate", *draft.left_out])
    cohort = _cohort(content, draft)
    words = {"name": _name(str(feature_set.get("name", ""))), "description": str(feature_set.get("description", ""))}
    features = _distinct(draft.features, draft.label["name"])
    try:
        study = Study.model_validate({**words, "features": features, "label": draft.label, "cohort": cohort})
    except ValidationError as error:
        mistakes = [f"{path}: {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise StudyInvalid(mistakes) from None
    return Imported(study, tuple(draft.assumed), tuple(draft.left_out))


def _content(path: Path) -> Any:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise StudyInvalid([f"{path}: larger than {LARGEST_FILE // 1_000_000} MB, so this is no feature set"])
        return json.loads(path.read_bytes())
    except OSError as error:
        raise StudyInvalid([f"{path}: cannot be read ({error.strerror})"]) from None
    except (ValueError, RecursionError):
        raise StudyInvalid([f"{path}: not JSON; export the feature set from the FAIR4Health platform"]) from None


def _feature_set(content: Any) -> dict[str, Any] | None:
    """The first object that has variables with queries, wherever it is in the file."""
    if isinstance(content, dict):
        variables = content.get("variables")
        if isinstance(variables, list) and variables and all(_is_variable(one) for one in variables):
            return content
    inside = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return next((found for one in inside if (found := _feature_set(one)) is not None), None)


def _is_variable(one: object) -> bool:
    return isinstance(one, dict) and isinstance(one.get("fhir_query"), str) and isinstance(one.get("fhir_path"), str)


def _feature(variable: Mapping[str, Any], name: str, assumed: list[str]) -> dict[str, Any]:
    query, path = variable["fhir_query"], "".join(variable["fhir_path"].split())
    if (months := _number_after(path, "value:hospitalization:")) is not None:
        assumed.append(f"{name}: stays of class IMP in the {months} months before index time, not before today")
        window = f"{round(months * 365 / 12)}d"
        return _counted(
            name, {"kind": "Encounter", "classes": ["IMP"], "statistic": "count", "window": window}, assumed
        )
    if urlsplit(query).path.strip("/") == "Patient":
        return _patient_feature(query, path, name)
    events = _events(query, name, assumed)
    if path in ("value:exists", "value:exists()"):
        return {"name": name, "kind": "binary", "source": {**events, "statistic": "exists"}}
    if path.startswith("aggr:"):
        return _aggregated(events, path, name, assumed)
    if path.startswith("value:") and QUANTITY.fullmatch(path.removeprefix("value:")):
        assumed.append(f"{name}: the last value before prediction time; FAIR4Health takes any one")
        return _measured(name, {**events, "statistic": "last"}, assumed)
    if variable.get("variable_data_type") == "categorical":
        raise Untranslated("a categorical feature needs its categories, and the file does not name them")
    raise Untranslated(f"no statistic for the FHIRPath {variable['fhir_path'][:80]}")


def _patient_feature(query: str, path: str, name: str) -> dict[str, Any]:
    if urlsplit(query).query:
        raise Untranslated("a query on Patient with conditions")
    if path == "value:Patient.gender":
        sexes = ["female", "male", "other", "unknown"]
        return {"name": name, "kind": "categorical", "categories": sexes, "source": {"patient": "sex"}}
    if AGE.fullmatch(path.removeprefix("value:")):
        return {"name": name, "kind": "continuous", "unit": "a", "range": [0, 120], "source": {"patient": "age"}}
    raise Untranslated("of a patient, a study knows age and sex")


def _aggregated(events: dict[str, Any], path: str, name: str, assumed: list[str]) -> dict[str, Any]:
    match = GROUPED.fullmatch(path.removeprefix("aggr:"))
    statistic = AGGREGATES.get(match[1]) if match else None
    if match is None or statistic is None:
        raise Untranslated("an aggregation other than count, max, min or avg by patient")
    if statistic == "count":
        return _counted(name, {**events, "statistic": "count"}, assumed)
    if not QUANTITY.fullmatch(match[2]):
        raise Untranslated("an aggregation of something that is no quantity")
    return _measured(name, {**events, "statistic": statistic}, assumed)


def _counted(name: str, source: dict[str, Any], assumed: list[str]) -> dict[str, Any]:
    assumed.append(f"{name}: range {PLACEHOLDER_RANGE} is made up; correct it")
    return {"name": name, "kind": "continuous", "range": PLACEHOLDER_RANGE, "source": source}


def _measured(name: str, source: dict[str, Any], assumed: list[str]) -> dict[str, Any]:
    assumed.append(f"{name}: range {PLACEHOLDER_RANGE} is made up and there is no unit; correct both")
    return {"name": name, "kind": "continuous", "range": PLACEHOLDER_RANGE, "source": source}


def _label(variable: Mapping[str, Any], name: str, assumed: list[str]) -> dict[str, Any]:
    path = "".join(variable["fhir_path"].split())
    if (days := _number_after(path, "value:readmission:")) is not None:
        assumed.append(f"{name}: any next stay counts; FAIR4Health counts those of type 'unplanned'")
        return {"outcome": "index-event", "horizon": f"{days}d"}
    if path not in ("value:exists", "value:exists()"):
        raise Untranslated("a label is a readmission or something that exists")
    events = _events(variable["fhir_query"], name, assumed)
    assumed.append(f"{name}: FAIR4Health has no horizon; {PLACEHOLDER_HORIZON} after index time is made up, correct it")
    return {"outcome": "event", "events": events, "horizon": PLACEHOLDER_HORIZON}


def _events(query: str, name: str, assumed: list[str]) -> dict[str, Any]:
    """The resources that a FHIR query asks for, as a study says it."""
    parts = urlsplit(query)
    kind = parts.path.strip("/")
    if kind not in KINDS:
        raise Untranslated(f"resource type {kind}")
    chosen: dict[str, Any] = {"kind": kind}
    for parameter, value in parse_qsl(parts.query, keep_blank_values=True):
        if parameter in CODE_PARAMETERS:
            chosen["codes"] = [_code(word, name, assumed) for word in value.split(",")]
        elif parameter in ("class", "status"):
            chosen["classes" if parameter == "class" else "statuses"] = [w.rpartition("|")[2] for w in value.split(",")]
        elif parameter.startswith("code:"):
            raise Untranslated(f"{parameter}={value[:40]} stands for many codes; name each of them")
        elif parameter not in HARMLESS:
            raise Untranslated(f"search parameter {parameter}")
    return chosen


def _code(word: str, name: str, assumed: list[str]) -> str:
    if "|" in word.strip("|"):
        return word
    plain = word.strip("|")
    system = next((system for form, system in CODE_FORMS if form.fullmatch(plain)), None)
    if system is None:
        raise Untranslated(f"code {plain[:40]} has no system, and its form does not tell one")
    assumed.append(f"{name}: code {plain} is of {system}, by its form")
    return f"{system}|{plain}"


def _cohort(content: Any, draft: Draft) -> dict[str, Any]:
    """Rows are stays in hospital that ended, unless a criterion on Encounter says which."""
    index: dict[str, Any] = {}
    for query, path in _criteria(content):
        kind = urlsplit(query).path.strip("/")
        try:
            if kind == "Encounter" and not path:
                index = _events(query, "index event", draft.assumed)
            elif kind != "Patient" or path or urlsplit(query).query:
                raise Untranslated("a study has no such rule")
        except Untranslated as why:
            draft.left_out.append(f"eligibility {query[:80]}{' with ' + path[:80] if path else ''}: {why}")
    if not index:
        draft.assumed.append("index event: every inpatient stay that ended; FAIR4Health has a row per patient or stay")
    return {"index": {"kind": "Encounter", "classes": ["IMP"], "statuses": ["finished"], "at": "end", **index}}


def _criteria(content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, dict):
        criteria = content.get("eligibility_criteria")
        if isinstance(criteria, list):
            for one in criteria:
                if isinstance(one, dict) and isinstance(one.get("fhir_query"), str):
                    yield one["fhir_query"], str(one.get("fhir_path") or "")
            return
    for one in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _criteria(one)


def _number_after(path: str, prefix: str) -> int | None:
    rest = path.removeprefix(prefix)
    return int(rest) if path.startswith(prefix) and rest.isdigit() and 0 < int(rest) < 10_000 else None


def _name(words: str) -> str:
    """Words as a name that a study takes: Heart failure -> heart_failure."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", words).strip("_.-").lower()[:64]
    return name if re.match(r"[a-z]", name) else f"x_{name}"[:64].rstrip("_")


def _distinct(features: list[dict[str, Any]], label: str) -> list[dict[str, Any]]:
    """Names that two variables share get a number."""
    taken = {label}
    distinct = []
    for feature in features:
        name, number = feature["name"], 2
        while name in taken:
            name, number = f"{feature['name'][:60]}_{number}", number + 1
        taken.add(name)
        distinct.append({**feature, "name": name})
    return distinct
