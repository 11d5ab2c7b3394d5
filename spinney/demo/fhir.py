"""A made-up history as FHIR R4 resources: one NDJSON file per type, as a Bulk Data export has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from spinney.demo.history import FIRST_DAY, MadeUpHistory
from spinney.demo.words import MEASURES, MONITOR_UNITS, PRESSURE_PANEL

ACT = "http://terminology.hl7.org/CodeSystem/v3-ActCode"
CLINICAL = "http://terminology.hl7.org/CodeSystem/condition-clinical"
SYSTOLIC, DIASTOLIC = MEASURES["systolic"].code, MEASURES["diastolic"].code
NOT_UCUM = frozenset(MONITOR_UNITS.values())


def write_resources(history: MadeUpHistory, folder: Path) -> None:
    """Write a history into a folder; what was there under these names is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "Patient.ndjson", _patients(history))
    writers: dict[str, Callable[[pd.DataFrame], Iterator[str]]] = {
        "Encounter": _encounters,
        "Observation": _observations,
        "Condition": _conditions,
        "MedicationRequest": _prescriptions,
    }
    for kind, lines in writers.items():
        _write(folder / f"{kind}.ndjson", lines(history.events[kind]))


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _patients(history: MadeUpHistory) -> Iterator[str]:
    rows = history.patients
    system = f"urn:{history.hospital.name}:record-number"
    first = FIRST_DAY.strftime("%Y-%m-%dT%H:%M:%SZ")
    for number, (patient, born, sex, died) in enumerate(
        zip(rows["patient"], _days(rows["birth"]), rows["sex"], _instants(rows["died"]), strict=True)
    ):
        deceased = f',"deceasedDateTime":"{died}"' if died else ""
        yield (
            f'{{"resourceType":"Patient","id":"{patient}","meta":{{"lastUpdated":"{died or first}"}},'
            f'"identifier":[{{"system":"{system}","value":"{100_000 + number}"}}],'
            f'"gender":"{sex}","birthDate":"{born}"{deceased}}}'
        )


def _encounters(rows: pd.DataFrame) -> Iterator[str]:
    columns = (rows["number"], rows["patient"], _instants(rows["time"]), _instants(rows["until"]))
    for number, patient, start, end, status, kind in zip(*columns, rows["status"], rows["class"], strict=True):
        until = f',"end":"{end}"' if end else ""
        yield (
            f'{_head("Encounter", number, end or start)},"status":"{status}",'
            f'"class":{{"system":"{ACT}","code":"{kind}"}},{_subject(patient)},'
            f'"period":{{"start":"{start}"{until}}}}}'
        )


def _observations(rows: pd.DataFrame) -> Iterator[str]:
    """A blood pressure is one resource with two components, as everywhere."""
    codes = {code: _concept(code) for code in pd.unique(rows["code"])}
    units = {unit: _unit(unit) for unit in pd.unique(rows["unit"]) if isinstance(unit, str)}
    texts = {text: _concept(text) for text in pd.unique(rows["text"]) if isinstance(text, str)}
    lower = rows["value"].shift(-1)  # written right after the systolic pressure of the same cuff
    columns = (rows["number"], rows["patient"], rows["code"], _instants(rows["time"]), _instants(rows["recorded"]))
    values = (rows["value"], rows["unit"], rows["text"], lower)
    for number, patient, code, time, recorded, value, unit, text, below in zip(*columns, *values, strict=True):
        if code == DIASTOLIC:
            continue
        quantity = units.get(unit, "")
        if code == SYSTOLIC:
            parts = ",".join(
                f'{{"code":{concept},"valueQuantity":{{"value":{number_}{quantity}}}}}'
                for concept, number_ in ((codes[SYSTOLIC], value), (codes[DIASTOLIC], below))
            )
            content = f'"code":{_PANEL},"component":[{parts}]'
        elif text in texts:
            content = f'"code":{codes[code]},"valueCodeableConcept":{texts[text]}'
        else:
            content = f'"code":{codes[code]},"valueQuantity":{{"value":{value}{quantity}}}'
        yield (
            f'{_head("Observation", number, recorded)},"status":"final",{_subject(patient)},'
            f'"effectiveDateTime":"{time}","issued":"{recorded}",{content}}}'
        )


def _conditions(rows: pd.DataFrame) -> Iterator[str]:
    active = f'{{"coding":[{{"system":"{CLINICAL}","code":"active"}}]}}'
    columns = (rows["number"], rows["patient"], rows["code"], _instants(rows["time"]), _instants(rows["recorded"]))
    for number, patient, code, onset, recorded in zip(*columns, strict=True):
        yield (
            f'{_head("Condition", number, recorded)},"clinicalStatus":{active},"code":{_concept(code)},'
            f'{_subject(patient)},"onsetDateTime":"{onset}","recordedDate":"{recorded}"}}'
        )


def _prescriptions(rows: pd.DataFrame) -> Iterator[str]:
    columns = (rows["number"], rows["patient"], rows["code"], _instants(rows["time"]))
    for number, patient, code, time in zip(*columns, strict=True):
        yield (
            f'{_head("MedicationRequest", number, time)},"status":"active","intent":"order",'
            f'"medicationCodeableConcept":{_concept(code)},{_subject(patient)},"authoredOn":"{time}"}}'
        )


def _head(kind: str, number: int, updated: str) -> str:
    return f'{{"resourceType":"{kind}","id":"{kind[0].lower()}{number}","meta":{{"lastUpdated":"{updated}"}}'


def _subject(patient: str) -> str:
    return f'"subject":{{"reference":"Patient/{patient}"}}'


def _concept(code: str) -> str:
    system, _, word = code.partition("|")
    return json.dumps({"coding": [{"system": system, "code": word}]}, separators=(",", ":"))


def _unit(unit: str) -> str:
    """What follows the value of a quantity; only UCUM has a system and a code."""
    return f',"unit":"{unit}"' + ("" if unit in NOT_UCUM else f',"system":"http://unitsofmeasure.org","code":"{unit}"')


def _instants(times: pd.Series) -> list[str]:
    """As FHIR writes moments in UTC; empty: none."""
    texts = np.datetime_as_string(times.to_numpy().astype("datetime64[s]"))
    return ["" if text == "NaT" else f"{text}Z" for text in texts.tolist()]


def _days(times: pd.Series) -> list[str]:
    days: list[str] = np.datetime_as_string(times.to_numpy().astype("datetime64[D]")).tolist()
    return days


_PANEL = _concept(PRESSURE_PANEL)
