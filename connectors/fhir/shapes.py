"""Where each FHIR resource type (R4) keeps what an event needs: subject, codes, times, status, values.

One recipe per type: the JSON members to read, with their types for DuckDB, and SQL expressions over them.
Everything that may be wrong in the source (dates, numbers) is read as text, so that it can be judged and not just lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CODING = 'STRUCT("system" VARCHAR, code VARCHAR)[]'
CONCEPT = f'STRUCT(coding {CODING}, "text" VARCHAR)'
PERIOD = 'STRUCT("start" VARCHAR, "end" VARCHAR)'
QUANTITY = 'STRUCT("value" VARCHAR, comparator VARCHAR, unit VARCHAR, code VARCHAR)'
REFERENCE = "STRUCT(reference VARCHAR)"
VALUES = {
    "valueQuantity": QUANTITY,
    "valueCodeableConcept": CONCEPT,
    "valueString": "VARCHAR",
    "valueInteger": "VARCHAR",
    "valueBoolean": "BOOLEAN",
}
COMPONENT = "STRUCT(code " + CONCEPT + ", " + ", ".join(f"{name} {kind}" for name, kind in VALUES.items()) + ")[]"
ENVELOPE = {"resourceType": "VARCHAR", "id": "VARCHAR", "meta": "STRUCT(lastUpdated VARCHAR)", "status": "VARCHAR"}


@dataclass(frozen=True)
class Shape:
    """How one resource type becomes events."""

    members: Mapping[str, str]
    codings: str
    time: str
    until: str = "NULL"
    recorded: str = "NULL"
    status: str = "status"
    encounter_class: str = "NULL::VARCHAR"
    subject: str = "subject"
    encounter: str = "NULL::VARCHAR"
    """Reference to the encounter within which it happened."""
    parent: str = "NULL::VARCHAR"
    """Reference to the encounter of which this encounter is a part."""
    discharge: str = "NULL::VARCHAR"
    valued: bool = False
    """Has a value, and components with values of their own."""

    def columns(self) -> dict[str, str]:
        """All JSON members to read, with their types."""
        values = {**VALUES, "component": COMPONENT} if self.valued else {}
        return {**ENVELOPE, self.subject: REFERENCE, **self.members, **values}

    def parts(self) -> str:
        """SQL list with one part per coding of the resource and of its components; without a coding it is one part."""
        if not self.valued:
            return _parts(self.codings, "0", *["NULL::VARCHAR"] * 4)
        own, inner = _valued_parts(self.codings, "0", ""), _valued_parts("piece.code.coding", "nth", "piece.")
        whole = f"{own} || flatten([{inner} for piece, nth in component])"
        return f"CASE WHEN component IS NULL THEN {own} ELSE {whole} END"  # joining lists costs as much as making them


def _valued_parts(codings: str, nth: str, at: str) -> str:
    concept = f"{at}valueCodeableConcept"
    first = f"{concept}.coding[1]"
    number = f"coalesce({at}valueQuantity.value, {at}valueInteger, CAST(CAST({at}valueBoolean AS INTEGER) AS VARCHAR))"
    words = f"coalesce({first}.system || '|' || {first}.code, {first}.code, {concept}.text, {at}valueString)"
    unit, comparator = f"coalesce({at}valueQuantity.code, {at}valueQuantity.unit)", f"{at}valueQuantity.comparator"
    return _parts(codings, nth, number, words, unit, comparator)


def _parts(codings: str, nth: str, number: str, words: str, unit: str, comparator: str) -> str:
    """`nth` is 0 for the resource itself; each of its components is an event of its own."""
    value = f"number := {number}, words := {words}, unit := {unit}, comparator := {comparator}"
    part = f"struct_pack(code := {{}}, nth := CAST({nth} AS INTEGER), {value})"
    coded = part.format("coalesce(one.system, '') || '|' || one.code")
    return f"CASE WHEN len({codings}) > 0 THEN [{coded} for one in {codings}] ELSE [{part.format('NULL::VARCHAR')}] END"


def _medication(time: str, members: dict[str, str], until: str = "NULL", recorded: str = "NULL") -> Shape:
    concept = {"medicationCodeableConcept": CONCEPT}
    return Shape({**concept, **members}, "medicationCodeableConcept.coding", time, until, recorded)


SHAPES = {
    "AllergyIntolerance": Shape(
        {"code": CONCEPT, "onsetDateTime": "VARCHAR", "recordedDate": "VARCHAR", "clinicalStatus": CONCEPT},
        codings="code.coding",
        time="coalesce(onsetDateTime, recordedDate)",
        recorded="recordedDate",
        status="clinicalStatus.coding[1].code",
        subject="patient",
    ),
    "Condition": Shape(
        {
            "code": CONCEPT,
            "onsetDateTime": "VARCHAR",
            "onsetPeriod": PERIOD,
            "abatementDateTime": "VARCHAR",
            "abatementPeriod": PERIOD,
            "recordedDate": "VARCHAR",
            "clinicalStatus": CONCEPT,
            "verificationStatus": CONCEPT,
            "encounter": REFERENCE,
        },
        codings="code.coding",
        time='coalesce(onsetDateTime, onsetPeriod."start", recordedDate)',
        until='coalesce(abatementDateTime, abatementPeriod."end")',
        recorded="recordedDate",
        status="CASE WHEN verificationStatus.coding[1].code IN ('refuted', 'entered-in-error') "
        "THEN verificationStatus.coding[1].code ELSE clinicalStatus.coding[1].code END",
        encounter="encounter.reference",
    ),
    "DiagnosticReport": Shape(
        {"code": CONCEPT, "effectiveDateTime": "VARCHAR", "effectivePeriod": PERIOD, "issued": "VARCHAR"},
        codings="code.coding",
        time='coalesce(effectiveDateTime, effectivePeriod."start")',
        until='effectivePeriod."end"',
        recorded="issued",
    ),
    "Encounter": Shape(
        {
            "class": "STRUCT(code VARCHAR)",
            "type": CONCEPT + "[]",
            "period": PERIOD,
            "partOf": REFERENCE,
            "hospitalization": f"STRUCT(dischargeDisposition {CONCEPT})",
        },
        codings='flatten([one.coding for one in "type"])',
        time='period."start"',
        until='period."end"',
        encounter_class='"class".code',
        parent="partOf.reference",
        discharge="coded(hospitalization.dischargeDisposition.coding[1])",
    ),
    "Immunization": Shape(
        {"vaccineCode": CONCEPT, "occurrenceDateTime": "VARCHAR", "recorded": "VARCHAR"},
        codings="vaccineCode.coding",
        time="occurrenceDateTime",
        recorded="recorded",
        subject="patient",
    ),
    "MedicationAdministration": _medication(
        'coalesce(effectiveDateTime, effectivePeriod."start")',
        {"effectiveDateTime": "VARCHAR", "effectivePeriod": PERIOD},
        until='effectivePeriod."end"',
    ),
    "MedicationDispense": _medication(
        "coalesce(whenHandedOver, whenPrepared)", {"whenHandedOver": "VARCHAR", "whenPrepared": "VARCHAR"}
    ),
    "MedicationRequest": _medication("authoredOn", {"authoredOn": "VARCHAR"}, recorded="authoredOn"),
    "MedicationStatement": _medication(
        'coalesce(effectiveDateTime, effectivePeriod."start", dateAsserted)',
        {"effectiveDateTime": "VARCHAR", "effectivePeriod": PERIOD, "dateAsserted": "VARCHAR"},
        until='effectivePeriod."end"',
        recorded="dateAsserted",
    ),
    "Observation": Shape(
        {
            "code": CONCEPT,
            "effectiveDateTime": "VARCHAR",
            "effectivePeriod": PERIOD,
            "effectiveInstant": "VARCHAR",
            "issued": "VARCHAR",
        },
        codings="code.coding",
        time='coalesce(effectiveDateTime, effectivePeriod."start", effectiveInstant)',
        until='effectivePeriod."end"',
        recorded="issued",
        valued=True,
    ),
    "Procedure": Shape(
        {"code": CONCEPT, "performedDateTime": "VARCHAR", "performedPeriod": PERIOD},
        codings="code.coding",
        time='coalesce(performedDateTime, performedPeriod."start")',
        until='performedPeriod."end"',
    ),
}
PATIENT_MEMBERS = {
    "resourceType": "VARCHAR",
    "id": "VARCHAR",
    "meta": "STRUCT(lastUpdated VARCHAR)",
    "birthDate": "VARCHAR",
    "gender": "VARCHAR",
    "deceasedDateTime": "VARCHAR",
    "deceasedBoolean": "BOOLEAN",
}
