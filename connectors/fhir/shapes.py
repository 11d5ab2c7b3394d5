"""What the FHIR resource types that studies read look like, and when one of them says that something did not happen.

One entry per type, to be read beside its page (R4 and R4B; R5 where it has other names). An event is whose, what
(codes), when (time, until), when entered (recorded), and of a status. It does not count when one of the words below
`never` stands in the member above them. What a study wants to leave out beyond that, it says by `statuses`.

Of several members the first that is there is meant. `Period.start` and `.end` are its ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

REFUTED = ("refuted", "entered-in-error")
NO_RESULT = ("registered", "cancelled", "entered-in-error")
OLDER = "FHIR STU3 or older"
DO_NOT = "do-not-perform"
"""How a status says that something was forbidden."""


@dataclass(frozen=True)
class Shape:
    """How one resource type becomes events."""

    page: str
    """Of FHIR R4; R5 has the same without /R4."""
    codes: tuple[str, ...]
    """Members with what it was: CodeableConcepts. Every coding counts."""
    time: tuple[str, ...]
    until: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    status: str = "status"
    never: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Member -> words with which the resource says that nothing happened. One coding of several is enough."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """R5 status -> what R4 calls it, as studies do."""
    subject: str = "subject"
    valued: bool = False
    """Has a value, and components with values of their own."""
    medication: bool = False
    """Says what it was by a Medication, too: contained or by reference, with its ingredients."""
    encounter: tuple[str, ...] = ()
    """Where the encounter is named within which it happened."""
    known_at_its_end: bool = False
    """What lasts is known when it is over, as a result is; other things are known as soon as they begin."""
    dated_by_encounter: bool = False
    """Without time and recorded it is of the moment at which its encounter ended, and known from then on."""
    parent: tuple[str, ...] = ()
    discharge: tuple[str, ...] = ()
    visited: bool = False
    """Is of several types and classes, and may end in several ways, as an encounter does."""
    older: tuple[str, ...] = ()
    """Members that only STU3 and older have: their negations and dates stand elsewhere, so they are refused."""
    once_a_word: tuple[str, ...] = ()
    """Members that were a plain word in STU3 and older."""


SHAPES = {
    "AllergyIntolerance": Shape(
        page="https://hl7.org/fhir/R4/allergyintolerance.html#resource",
        codes=("code",),
        time=("onsetDateTime", "onsetPeriod.start", "recordedDate"),
        recorded=("recordedDate",),
        status="clinicalStatus",
        never={"verificationStatus": REFUTED},  # #AllergyIntolerance.verificationStatus
        subject="patient",
        older=("assertedDate", "substance"),
        once_a_word=("clinicalStatus", "verificationStatus"),
    ),
    "Condition": Shape(
        page="https://hl7.org/fhir/R4/condition.html#resource",
        codes=("code",),
        time=("onsetDateTime", "onsetPeriod.start", "recordedDate"),
        until=("abatementDateTime", "abatementPeriod.end"),
        recorded=("recordedDate",),
        status="clinicalStatus",
        # condition.html#Condition.verificationStatus: differential is one of several that exclude one another
        never={"verificationStatus": (*REFUTED, "differential")},
        encounter=("encounter",),
        dated_by_encounter=True,
        older=("assertedDate", "dateRecorded"),
        once_a_word=("clinicalStatus", "verificationStatus"),
    ),
    "Coverage": Shape(
        page="https://hl7.org/fhir/R4/coverage.html#resource",
        codes=("type",),
        time=("period.start",),
        until=("period.end",),
        never={"status": ("cancelled", "draft", "entered-in-error")},  # valueset-fm-status.html: withdrawn, not yet
        subject="beneficiary",
        older=("grouping", "sequence", "bin"),
    ),
    "DiagnosticReport": Shape(
        page="https://hl7.org/fhir/R4/diagnosticreport.html#resource",
        codes=("code",),
        time=("effectiveDateTime", "effectivePeriod.start"),
        until=("effectivePeriod.end",),
        recorded=("issued",),
        known_at_its_end=True,
        never={"status": NO_RESULT},  # valueset-diagnostic-report-status.html: registered has no result yet
        older=("context", "codedDiagnosis"),
    ),
    "Encounter": Shape(
        page="https://hl7.org/fhir/R4/encounter.html#resource",
        codes=("type",),
        visited=True,
        time=("period.start", "actualPeriod.start"),  # R5: actualPeriod
        until=("period.end", "actualPeriod.end"),
        never={"status": ("planned", "cancelled", "entered-in-error")},  # valueset-encounter-status.html
        renamed={"completed": "finished", "discharged": "finished", "on-hold": "onleave"},
        parent=("partOf",),
        discharge=("hospitalization.dischargeDisposition", "admission.dischargeDisposition"),  # R5: admission
        once_a_word=("class",),
    ),
    "Immunization": Shape(
        page="https://hl7.org/fhir/R4/immunization.html#resource",
        codes=("vaccineCode",),
        time=("occurrenceDateTime",),
        recorded=("recorded",),
        never={"status": ("not-done", "entered-in-error")},  # immunization.html#Immunization.status
        subject="patient",
        older=("notGiven", "wasNotGiven", "date"),
    ),
    "MedicationAdministration": Shape(
        page="https://hl7.org/fhir/R4/medicationadministration.html#resource",
        codes=("medicationCodeableConcept", "medication.concept"),
        medication=True,
        time=(
            "effectiveDateTime",
            "effectivePeriod.start",
            "occurenceDateTime",
            "occurencePeriod.start",
        ),  # R5, as here
        until=("effectivePeriod.end", "occurencePeriod.end"),
        recorded=("recorded",),
        never={"status": ("not-done", "entered-in-error")},  # valueset-medication-admin-status.html
        older=("notGiven", "wasNotGiven", "prescription"),
    ),
    "MedicationDispense": Shape(
        page="https://hl7.org/fhir/R4/medicationdispense.html#resource",
        codes=("medicationCodeableConcept", "medication.concept"),
        medication=True,
        time=("whenHandedOver", "whenPrepared"),
        recorded=("recorded",),
        # valueset-medicationdispense-status.html: preparation has not begun
        never={"status": ("preparation", "cancelled", "declined", "entered-in-error")},
        older=("notDone", "notDoneReasonCodeableConcept", "notDoneReasonReference"),
    ),
    "MedicationRequest": Shape(
        page="https://hl7.org/fhir/R4/medicationrequest.html#resource",
        codes=("medicationCodeableConcept", "medication.concept"),
        medication=True,
        time=("authoredOn",),
        recorded=("authoredOn",),
        never={
            "doNotPerform": ("true",),  # medicationrequest.html#MedicationRequest.doNotPerform
            "intent": ("proposal", "plan", "option"),  # valueset-medicationrequest-intent.html: nobody has ordered yet
            "status": ("draft", "cancelled", "entered-in-error"),  # valueset-medicationrequest-status.html
        },
        older=("context", "definition"),
    ),
    "MedicationStatement": Shape(
        page="https://hl7.org/fhir/R4/medicationstatement.html#resource",
        codes=("medicationCodeableConcept", "medication.concept"),
        medication=True,
        time=("effectiveDateTime", "effectivePeriod.start", "dateAsserted"),
        until=("effectivePeriod.end",),
        recorded=("dateAsserted",),
        never={
            "status": (
                "not-taken",
                "intended",
                "draft",
                "entered-in-error",
            ),  # valueset-medication-statement-status.html
            "adherence.code": ("not-taking",),  # R5: medicationstatement.html#MedicationStatement.adherence
        },
        older=("taken", "wasNotTaken"),
    ),
    "Observation": Shape(
        page="https://hl7.org/fhir/R4/observation.html#resource",
        codes=("code",),
        time=("effectiveDateTime", "effectivePeriod.start", "effectiveInstant"),
        until=("effectivePeriod.end",),
        recorded=("issued",),
        known_at_its_end=True,  # observation.html#Observation.effective: the period that the value is about
        never={
            "status": NO_RESULT,  # valueset-observation-status.html
            "dataAbsentReason": ("not-performed",),  # valueset-data-absent-reason.html
        },
        valued=True,
        older=("related", "context"),
    ),
    "Procedure": Shape(
        page="https://hl7.org/fhir/R4/procedure.html#resource",
        codes=("code",),
        # R5: occurrence
        time=("performedDateTime", "performedPeriod.start", "occurrenceDateTime", "occurrencePeriod.start"),
        until=("performedPeriod.end", "occurrencePeriod.end"),
        recorded=("recorded",),
        never={"status": ("preparation", "not-done", "entered-in-error")},  # valueset-event-status.html
        older=("notDone", "notPerformed", "context"),
    ),
}

# Words that a row of a database may have as its status, whatever its kind, to say that nothing happened.
ALWAYS_NEVER = (
    "cancelled",
    "differential",
    "draft",
    "entered-in-error",
    "not-done",
    "planned",
    "proposed",
    "refuted",
    DO_NOT,
)


def never_happened(kind: str) -> tuple[str, ...]:
    """Statuses with which an event of this kind does not count."""
    shape = SHAPES.get(kind)
    words = {word for words in shape.never.values() for word in words if word != "true"} if shape else set[str]()
    return tuple(sorted(words.union(ALWAYS_NEVER)))
