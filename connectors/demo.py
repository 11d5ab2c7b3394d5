"""Made-up hospitals: patients with heart failure, and who of them is back within 30 days.

Sites differ as hospitals do: in size, case mix, coding, missing values and care. Nobody in these tables ever lived.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

LABEL = "readmitted"
FEWEST_PATIENTS = 60
NAMES = ("alder", "ash", "beech", "birch", "cedar", "cherry", "elm", "hazel", "holly", "larch", "maple", "oak", "rowan")


@dataclass(frozen=True)
class Hospital:
    """How one made-up hospital differs from the others."""

    name: str
    patients: int
    older: float
    """Years above the average patient."""
    sicker: float
    """Shift of how ill patients are, in standard deviations."""
    baseline: float
    """Log-odds of a readmission for the average patient."""
    missing: float
    """Share of laboratory values that nobody measured."""
    wrong_labels: float
    """Share of outcomes that were coded wrongly."""
    without: tuple[str, ...] = ()
    """Variables that this hospital does not record at all."""


def make_hospitals(sites: int, patients: int, seed: int) -> list[Hospital]:
    """First a small and poor one, then one with a rare outcome, one without a laboratory value, and ordinary ones."""
    random = np.random.default_rng([seed, 0])
    share = random.uniform(0.6, 1.6, sites)
    share[0] = 0.2
    sizes = np.maximum(FEWEST_PATIENTS, np.floor(patients * share / share.sum())).astype(int)
    hospitals = []
    for number in range(sites):
        poor, rare, no_laboratory = number == 0, number == 1, number == 2
        hospitals.append(
            Hospital(
                name=NAMES[number] if number < len(NAMES) else f"site{number + 1}",
                patients=int(sizes[number]),
                older=float(random.normal(0, 4)),
                sicker=float(random.normal(0, 0.4)),
                baseline=-3.2 if rare else float(random.normal(-1.1, 0.3)),
                missing=0.3 if poor else float(random.uniform(0.01, 0.12)),
                wrong_labels=0.12 if poor else float(random.uniform(0.0, 0.04)),
                without=("nt_probnp",) if no_laboratory else (),
            )
        )
    return hospitals


def make_table(hospital: Hospital, seed: int, number: int) -> pd.DataFrame:
    """The patients of one hospital, the same for the same seed and number."""
    random = np.random.default_rng([seed, 1, number])
    rows = hospital.patients
    illness = hospital.sicker + random.standard_normal(rows)
    age = np.clip(73 + hospital.older + 11 * random.standard_normal(rows), 30, 99)
    kidneys = 0.5 * illness + 0.02 * (age - 73) + 0.8 * random.standard_normal(rows)
    diabetes = random.random(rows) < 0.35
    fibrillation = random.random(rows) < _chance(-1.2 + 0.04 * (age - 73) + 0.3 * illness)
    admissions = random.poisson(np.exp(-0.6 + 0.45 * illness))
    pressure = 128 - 7 * illness + 17 * random.standard_normal(rows)
    table = pd.DataFrame(
        {
            "patient": [f"{hospital.name}-{row:05d}" for row in range(rows)],
            "age": age.round(),
            "female": (random.random(rows) < 0.46).astype(int),
            "systolic_pressure": np.clip(pressure, 70, 220).round(),
            "heart_rate": np.clip(80 + 5 * illness + 14 * random.standard_normal(rows), 40, 170).round(),
            "body_mass_index": np.clip(28 - illness + 5 * random.standard_normal(rows), 15, 55).round(1),
            "ejection_fraction": np.clip(42 - 7 * illness + 10 * random.standard_normal(rows), 10, 70).round(),
            "creatinine": np.clip(np.exp(0.15 + 0.28 * kidneys), 0.4, 12).round(2),
            "sodium": np.clip(139 - illness + 3 * random.standard_normal(rows), 115, 155).round(),
            "haemoglobin": np.clip(12.9 - 0.5 * kidneys + 1.5 * random.standard_normal(rows), 6, 18).round(1),
            "nt_probnp": np.clip(np.exp(7.7 + 0.8 * illness + 0.7 * random.standard_normal(rows)), 50, 70_000).round(),
            "diabetes": diabetes.astype(int),
            "atrial_fibrillation": fibrillation.astype(int),
            "prior_admissions": admissions,
            "nyha_class": np.array(["I", "II", "III", "IV"])[np.digitize(illness, [-1.2, 0.2, 1.4])],
        }
    )
    risk = 0.9 * illness + 0.35 * admissions + 0.45 * kidneys + 0.5 * diabetes + 0.5 * fibrillation * (age > 75)
    readmitted = random.random(rows) < _chance(hospital.baseline - 0.6 + risk)
    table[LABEL] = (readmitted ^ (random.random(rows) < hospital.wrong_labels)).astype(int)
    for laboratory in ("creatinine", "sodium", "haemoglobin", "nt_probnp", "ejection_fraction"):
        table.loc[random.random(rows) < hospital.missing, laboratory] = np.nan
    return table.drop(columns=list(hospital.without))


def write_demo(folder: str | Path, sites: int, patients: int, seed: int) -> dict[str, Path]:
    """Write a CSV file per hospital; the same arguments write the same bytes."""
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    files = {}
    for number, hospital in enumerate(make_hospitals(sites, patients, seed)):
        files[hospital.name] = directory / f"{hospital.name}.csv"
        make_table(hospital, seed, number).to_csv(
            files[hospital.name], index=False, float_format="%g", lineterminator="\n"
        )
    return files


def _chance(log_odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-log_odds))
