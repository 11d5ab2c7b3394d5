"""How the made-up hospitals differ: size, case mix, coding habits, care, missing values and wrong labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spinney.demo.words import Habits

FEWEST_PATIENTS = 60
NAMES = ("alder", "ash", "beech", "birch", "cedar", "cherry", "elm", "hazel", "holly", "larch", "maple", "oak", "rowan")
ZONES = ("Europe/Berlin", "UTC", "Europe/Athens", "Europe/Lisbon")
HABITS = (
    Habits(classifications=True, letters_for_sex=True, unitless=("potassium",)),
    Habits(),
    Habits(other_units=True, local_codes=True, letters_for_sex=True),
    Habits(other_units=True),
)


@dataclass(frozen=True)
class Hospital:
    """One made-up hospital."""

    name: str
    number: int
    patients: int
    """Who has been there by the first night; every later night brings a few more."""
    older: float
    """Years above the average patient."""
    sicker: float
    """Shift of how ill patients are, in standard deviations."""
    baseline: float
    """Log-odds of a readmission for the average patient."""
    missing: float
    """Chance that a laboratory value is not measured in a stay."""
    uncoded: float
    """Chance that a condition is never coded."""
    wrong_labels: float
    """Chance that a readmission is booked as something else, or that a planned stay looks like one."""
    treats: float
    """Log-odds of prescribing what guidelines say, above the average hospital."""
    without: tuple[str, ...] = ()
    """Laboratory values that this hospital does not measure at all."""
    habits: Habits = field(default_factory=Habits)
    timezone: str = "UTC"


def make_hospitals(sites: int, patients: int, seed: int, shares: Sequence[float] = ()) -> list[Hospital]:
    """First a small and poor one, then one with a rare outcome, one without a laboratory value, and ordinary ones.

    `shares`: how the patients are dealt to them; empty: a fifth of the usual for the first, else by chance.
    """
    random = np.random.default_rng([seed, 0])
    share = random.uniform(0.7, 1.5, sites)
    share[0] = 0.22
    if shares:
        share = np.asarray(shares, dtype=np.float64)
    sizes = np.maximum(FEWEST_PATIENTS, np.floor(patients * share / share.sum())).astype(int)
    hospitals = []
    for number in range(sites):
        poor, rare, no_laboratory = number == 0, number == 1, number == 2
        hospitals.append(
            Hospital(
                name=NAMES[number] if number < len(NAMES) else f"site{number + 1}",
                number=number,
                patients=int(sizes[number]),
                older=float(random.normal(0, 4)),
                sicker=float(random.normal(0, 0.35)),
                baseline=-3.9 if rare else float(random.normal(-2.3, 0.25)),
                missing=0.35 if poor else float(random.uniform(0.02, 0.12)),
                uncoded=0.3 if poor else float(random.uniform(0.02, 0.1)),
                wrong_labels=0.1 if poor else float(random.uniform(0.0, 0.03)),
                treats=-0.8 if poor else float(random.normal(0, 0.3)),
                without=("nt_probnp",) if no_laboratory else (),
                habits=HABITS[number % len(HABITS)],
                timezone=ZONES[number % len(ZONES)],
            )
        )
    return hospitals
