"""Codes and units of the made-up world: those of the study, and the habits of hospitals that write their own."""

from __future__ import annotations

from dataclasses import dataclass

LOINC = "http://loinc.org|"
SNOMED = "http://snomed.info/sct|"
RXNORM = "http://www.nlm.nih.gov/research/umls/rxnorm|"
ICD10 = "http://hl7.org/fhir/sid/icd-10|"
ATC = "http://www.whocc.no/atc|"
PRESSURE_PANEL = f"{LOINC}85354-9"


@dataclass(frozen=True)
class Measure:
    """Something that has a number: how the study writes it, and how hospitals with other habits do."""

    code: str
    unit: str
    digits: int
    other: tuple[str, float, int] | None = None
    """Another common unit, the factor to it, and its digits."""
    local: str = ""
    """The laboratory's own code."""


MEASURES = {
    "systolic": Measure(f"{LOINC}8480-6", "mm[Hg]", 0),
    "diastolic": Measure(f"{LOINC}8462-4", "mm[Hg]", 0),
    "heart_rate": Measure(f"{LOINC}8867-4", "/min", 0),
    "saturation": Measure(f"{LOINC}2708-6", "%", 0),
    "weight": Measure(f"{LOINC}29463-7", "kg", 1),
    "creatinine": Measure(f"{LOINC}2160-0", "mg/dL", 2, ("umol/L", 88.4, 0), "KREA"),
    "sodium": Measure(f"{LOINC}2951-2", "mmol/L", 0, None, "NA"),
    "potassium": Measure(f"{LOINC}2823-3", "mmol/L", 1, None, "K"),
    "haemoglobin": Measure(f"{LOINC}718-7", "g/dL", 1, ("g/L", 10, 0), "HB"),
    "glucose": Measure(f"{LOINC}2345-7", "mg/dL", 0, ("mmol/L", 1 / 18.0156, 1), "GLU"),
    "nt_probnp": Measure(f"{LOINC}33762-6", "pg/mL", 0, ("pmol/L", 1 / 8.457, 0), "NTBNP"),
    "ejection_fraction": Measure(f"{LOINC}10230-1", "%", 0),
}
VITALS = ("systolic", "diastolic", "heart_rate", "saturation", "weight")
LABORATORY = ("creatinine", "sodium", "potassium", "haemoglobin", "glucose", "nt_probnp")

NYHA = f"{LOINC}88020-3"
NYHA_CLASSES = tuple(f"{SNOMED}{code}" for code in ("420300004", "421704003", "420913000", "422293003"))

# the study's code and the one of ICD-10 or ATC
CONDITIONS = {
    "heart_failure": (f"{SNOMED}84114007", f"{ICD10}I50.9"),
    "hypertension": (f"{SNOMED}38341003", f"{ICD10}I10"),
    "diabetes": (f"{SNOMED}44054006", f"{ICD10}E11.9"),
    "atrial_fibrillation": (f"{SNOMED}49436004", f"{ICD10}I48.9"),
    "kidney_disease": (f"{SNOMED}709044004", f"{ICD10}N18.9"),
    "lung_disease": (f"{SNOMED}13645005", f"{ICD10}J44.9"),
}
DRUGS = {
    "furosemide": (f"{RXNORM}4603", f"{ATC}C03CA01"),
    "bisoprolol": (f"{RXNORM}19484", f"{ATC}C07AB07"),
    "lisinopril": (f"{RXNORM}29046", f"{ATC}C09AA03"),
    "spironolactone": (f"{RXNORM}9997", f"{ATC}C03DA01"),
    "metformin": (f"{RXNORM}6809", f"{ATC}A10BA02"),
    "apixaban": (f"{RXNORM}1364430", f"{ATC}B01AF02"),
}


@dataclass(frozen=True)
class Habits:
    """How a hospital writes what the study calls by another name. The default writes as the study does."""

    other_units: bool = False
    """mmol/L instead of mg/dL and the like, and units in the manner of its monitors (mmHg, bpm)."""
    local_codes: bool = False
    """The laboratory's own codes."""
    classifications: bool = False
    """ICD-10 and ATC instead of SNOMED CT and RxNorm."""
    unitless: tuple[str, ...] = ()
    """Measures whose unit everybody knows and nobody writes."""
    letters_for_sex: bool = False
    """M and F, where the form of the data allows it."""

    def code(self, measure: str, hospital: str) -> str:
        known = MEASURES[measure]
        return f"urn:{hospital}:laboratory|{known.local}" if self.local_codes and known.local else known.code

    def written(self, measure: str) -> tuple[str, float, int]:
        """Unit, factor to it and digits of a measure as this hospital writes it."""
        known = MEASURES[measure]
        if self.other_units and known.other is not None:
            return known.other
        unit = MONITOR_UNITS.get(known.unit, known.unit) if self.other_units else known.unit
        return unit, 1, known.digits

    def condition(self, name: str) -> str:
        return CONDITIONS[name][self.classifications]

    def drug(self, name: str) -> str:
        return DRUGS[name][self.classifications]

    def code_map(self, hospital: str) -> dict[str, str]:
        """For site.yaml: the hospital's codes in the study's words."""
        pairs = [(self.code(name, hospital), known.code) for name, known in MEASURES.items()]
        pairs += [(self.condition(name), codes[0]) for name, codes in CONDITIONS.items()]
        pairs += [(self.drug(name), codes[0]) for name, codes in DRUGS.items()]
        if self.letters_for_sex:
            pairs += [("M", "male"), ("F", "female")]
        return {theirs: ours for theirs, ours in pairs if theirs != ours}

    def unit_map(self) -> dict[str, str]:
        """For site.yaml: the hospital's units in UCUM."""
        return {theirs: ours for ours, theirs in MONITOR_UNITS.items()} if self.other_units else {}

    def assumed_units(self) -> dict[str, str]:
        """For site.yaml: units that nobody writes, by the study's code."""
        return {MEASURES[name].code: self.written(name)[0] for name in self.unitless}


MONITOR_UNITS = {"mm[Hg]": "mmHg", "/min": "bpm"}
