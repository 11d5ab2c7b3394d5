"""Where the OMOP Common Data Model (5.3 and 5.4) keeps what an event needs, and how its concepts are called elsewhere.

One record per table: the names of its columns and what the study calls it. What was renamed between the two versions
is named both ways; the one that a database has is used.
https://ohdsi.github.io/CommonDataModel/cdm54.html and cdm53.html say what the columns mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

VERSIONS = ("5.3", "5.4")
OMOP, OMOP_URI = "omop", "https://fhir-terminology.ohdsi.org"  # the OHDSI vocabularies as a code system, by concept id
LOCAL = "omop-source"
"""System of what stands in a *_source_value that is mapped to no concept."""
SYSTEMS = {
    "SNOMED": "http://snomed.info/sct",
    "LOINC": "http://loinc.org",
    "RxNorm": "http://www.nlm.nih.gov/research/umls/rxnorm",
    "ATC": "http://www.whocc.no/atc",
    "CVX": "http://hl7.org/fhir/sid/cvx",
    "NDC": "http://hl7.org/fhir/sid/ndc",
    "CPT4": "http://www.ama-assn.org/go/cpt",
    "HCPCS": "http://www.cms.gov/Medicare/Coding/HCPCSReleaseCodeSets",
    "ICD10": "http://hl7.org/fhir/sid/icd-10",
    "ICD10CM": "http://hl7.org/fhir/sid/icd-10-cm",
    "ICD10PCS": "http://www.cms.gov/Medicare/Coding/ICD10",
    "ICD10GM": "http://fhir.de/CodeSystem/bfarm/icd-10-gm",
    "OPS": "http://fhir.de/CodeSystem/bfarm/ops",
    "ICD9CM": "http://hl7.org/fhir/sid/icd-9-cm",
    "ICD9Proc": "http://hl7.org/fhir/sid/icd-9-cm/procedure",
    "ICDO3": "http://terminology.hl7.org/CodeSystem/icd-o-3",
    "UCUM": "http://unitsofmeasure.org",
}
SEXES = {8507: "male", 8532: "female", 8521: "other", 8551: "unknown", 8570: "other"}
CLASSES = {
    9201: "IMP",  # inpatient visit
    262: "IMP",  # emergency room and inpatient visit
    8717: "IMP",  # inpatient hospital
    32037: "IMP",  # intensive care
    9203: "EMER",  # emergency room visit
    8870: "EMER",  # emergency room - hospital
    581385: "OBSENC",  # observation room
    9202: "AMB",  # outpatient visit
    8756: "AMB",  # outpatient hospital
    8940: "AMB",  # office
    581477: "AMB",  # office visit
    581476: "HH",  # home visit
    5083: "VR",  # telehealth
}
STILL_PATIENT = 32220  # the type of a visit whose end is only the day on which the database was filled
DISPOSITION = "http://terminology.hl7.org/CodeSystem/discharge-disposition"
DISPOSITIONS = {
    8536: "home",
    581476: "home",
    8546: "hosp",
    8863: "snf",
    8920: "rehab",
    8971: "psy",
    8717: "other-hcf",
    4216643: "exp",
    4021968: "aadvice",
}
COMPARATORS = {4171756: "<", 4171754: "<=", 4171755: ">=", 4172704: ">"}  # 4172703 is =


@dataclass(frozen=True)
class Record:
    """One table whose rows are events."""

    table: str
    concept: str
    """Column with the standard concept; the one with the source's own, and the source's word, are called after it."""
    start: str
    """Its columns are called so with _date and _datetime."""
    end: str | None = None
    key: str = ""
    status: str | None = None
    valued: bool = False

    @property
    def primary(self) -> str:
        return self.key or f"{self.table}_id"

    @property
    def source_concept(self) -> str:
        return self.concept.replace("_concept_id", "_source_concept_id")

    @property
    def source_value(self) -> str:
        return self.concept.replace("_concept_id", "_source_value")


VISIT = Record("visit_occurrence", "visit_concept_id", "visit_start", "visit_end")
DETAIL = Record("visit_detail", "visit_detail_concept_id", "visit_detail_start", "visit_detail_end")
DRUG = Record("drug_exposure", "drug_concept_id", "drug_exposure_start")
TAKEN = Record("drug_exposure", "drug_concept_id", "drug_exposure_start", "drug_exposure_end")
DRUG_ERA = Record("drug_era", "drug_concept_id", "drug_era_start", "drug_era_end")
CONDITION_ERA = Record("condition_era", "condition_concept_id", "condition_era_start", "condition_era_end")
RECORDS: Mapping[str, tuple[Record, ...]] = {
    "Condition": (Record("condition_occurrence", "condition_concept_id", "condition_start", "condition_end"),),
    "Coverage": (
        Record("observation_period", "period_type_concept_id", "observation_period_start", "observation_period_end"),
    ),
    "Encounter": (VISIT,),
    "Immunization": (DRUG,),
    "MedicationAdministration": (TAKEN,),
    "MedicationDispense": (DRUG,),
    "MedicationRequest": (DRUG,),
    "MedicationStatement": (TAKEN,),
    "Observation": (
        Record("measurement", "measurement_concept_id", "measurement", status="final", valued=True),
        Record("observation", "observation_concept_id", "observation", status="final", valued=True),
    ),
    "Procedure": (
        Record("procedure_occurrence", "procedure_concept_id", "procedure", "procedure_end", status="completed"),
    ),
}
ERAS: Mapping[str, tuple[Record, ...]] = {
    "Condition": (CONDITION_ERA,),
    "MedicationRequest": (DRUG_ERA,),
    "MedicationStatement": (DRUG_ERA,),
}


def cdm_version(words: str) -> str | None:
    """The version that cdm_source tells, such as 5.4 for `v5.4.0`; None if there is none in it."""
    found = re.search(r"(\d+)\.(\d+)", words)
    return f"{found[1]}.{found[2]}" if found else None


def vocabulary(system: str) -> str:
    """The vocabulary_id of what a study calls by a URI; anything else is taken for a vocabulary_id itself."""
    return _VOCABULARIES.get(system, system)


_VOCABULARIES = {uri: name for name, uri in SYSTEMS.items()}


def named(vocabulary_id: str | None, code: str | None) -> str | None:
    """What a concept's code is called in a study: a vocabulary without a URI by OMOP's name."""
    return f"{SYSTEMS.get(vocabulary_id, vocabulary_id)}|{code}" if vocabulary_id and code else None


def is_midnight(moment: datetime | str | None) -> bool:
    """Whether this is the beginning of a day, which the model has for a time that nobody knows."""
    return moment is not None and not str(moment)[10:].strip("T :0.Z+")


def when(day: date | str | None, moment: datetime | str | None, midnight_is_a_day: bool = True) -> str | None:
    """A point in time, or the day where only that is known."""
    if moment and not (midnight_is_a_day and is_midnight(moment)):
        return moment.isoformat() if isinstance(moment, datetime) else moment
    known = day or moment
    return str(known)[:10] if known else None


def birth(year: int | None, month: int | None, day: int | None, moment: datetime | str | None) -> str | None:
    """A day of birth as precisely as it is known."""
    if year and month and day:
        return f"{int(year):04d}-{int(month):02d}-{int(day):02d}"
    if moment:
        return str(moment)[:10]
    if year is None:
        return None
    return f"{int(year):04d}-{int(month):02d}" if month else f"{int(year):04d}"
