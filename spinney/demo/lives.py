"""The patients' lives, as arrays: who they are, and their stays in hospital one after the other.

Illness, kidneys and age are latent and drive everything else. A stay begins with an acute state and ends with what is
left of it; what is left, illness, kidneys, earlier stays and treatment decide whether the patient is back within 30
days. Time is in days since the first day of the world.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinney.demo.hospitals import Hospital
from spinney.demo.words import DRUGS

FIRST_NIGHT = 730.0
LAST_NIGHTS = 60
HORIZON = FIRST_NIGHT + LAST_NIGHTS
WITHIN = 30.0
MOST_STAYS = 40

Array = np.ndarray


@dataclass(frozen=True)
class People:
    """One entry per patient."""

    age: Array
    """In years, on the first day of the world."""
    female: Array
    illness: Array
    kidneys: Array
    conditions: dict[str, Array]
    ejection_fraction: Array
    weight: Array
    pressure: Array
    """What is the patient's own in the systolic pressure."""
    first: Array
    """Day of the first stay."""
    died: Array
    """Day of death; infinite: alive."""


@dataclass(frozen=True)
class Stays:
    """One entry per stay in hospital, by patient and time."""

    patient: Array
    start: Array
    end: Array
    acute: Array
    """How bad it is on admission."""
    left: Array
    """What is left of it on discharge."""
    drugs: dict[str, Array]
    """What is prescribed on discharge."""
    counted: Array
    """Whether it is booked as an inpatient stay; a readmission may be booked as an observation instead."""


def live(hospital: Hospital, seed: int) -> tuple[People, Stays]:
    """The lives of one hospital's patients, the same for the same seed."""
    people = _people(hospital, np.random.default_rng([seed, 1, hospital.number]))
    return _stays(hospital, people, np.random.default_rng([seed, 2, hospital.number]))


def chance(log_odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def _people(hospital: Hospital, random: np.random.Generator) -> People:
    later = int(np.ceil(hospital.patients * LAST_NIGHTS / FIRST_NIGHT))
    count = hospital.patients + later
    first = np.concatenate(
        [random.uniform(0, FIRST_NIGHT - 1, hospital.patients), random.uniform(FIRST_NIGHT, HORIZON, later)]
    )
    illness = hospital.sicker + random.standard_normal(count)
    age = np.clip(72 + hospital.older + 11 * random.standard_normal(count), 30, 97)
    kidneys = 0.5 * illness + 0.02 * (age - 72) + 0.8 * random.standard_normal(count)
    female = random.random(count) < 0.46
    conditions = {
        "heart_failure": np.ones(count, bool),
        "hypertension": random.random(count) < chance(0.5 + 0.03 * (age - 72)),
        "diabetes": random.random(count) < chance(-0.7 + 0.3 * kidneys),
        "atrial_fibrillation": random.random(count) < chance(-1.0 + 0.04 * (age - 72) + 0.3 * illness),
        "kidney_disease": kidneys + 0.3 * random.standard_normal(count) > 0.8,
        "lung_disease": random.random(count) < 0.2,
    }
    return People(
        age=age,
        female=female,
        illness=illness,
        kidneys=kidneys,
        conditions=conditions,
        ejection_fraction=42 - 7 * illness + 9 * random.standard_normal(count),
        weight=np.clip(np.where(female, 71, 84) + 14 * random.standard_normal(count), 42, 170),
        pressure=8 * random.standard_normal(count) + 5 * conditions["hypertension"],
        first=first,
        died=np.full(count, np.inf),
    )


def _stays(hospital: Hospital, people: People, random: np.random.Generator) -> tuple[People, Stays]:
    """Stay after stay for all patients at once, until everybody is past the horizon or dead."""
    count = len(people.age)
    start, died = people.first.copy(), people.died.copy()
    starts: list[Array] = []
    rows: list[dict[str, Array]] = []
    for _ in range(MOST_STAYS):
        acute = 0.4 * people.illness + 1.1 * random.standard_normal(count)
        end = start + np.clip(np.exp(1.45 + 0.18 * acute + 0.45 * random.standard_normal(count)), 1, 35)
        left = 0.35 * acute + 0.75 * random.standard_normal(count)
        drugs = _prescribed(hospital, people, random)
        recent = np.sum([(start - 365 <= one) & (one < start) for one in starts], axis=0) if starts else np.zeros(count)
        back = random.random(count) < chance(hospital.baseline + _risk(people, left, recent, drugs))
        soon = 1 + (WITHIN - 1.5) * random.beta(1.0, 1.6, count)
        late = WITHIN + 2 + random.exponential(230 * np.exp(-0.3 * people.illness))
        following = end + np.where(back, soon, late)
        dies = random.random(count) < chance(-2.6 + 0.5 * people.illness + 0.04 * (people.age - 72))
        death = np.where(dies, end + 1 + random.exponential(120, count), np.inf)
        planned, missed = random.random((2, count)) < hospital.wrong_labels
        extra = end + random.uniform(4, 24, count)
        here = (start < HORIZON) & np.isinf(died)
        stay = {"start": start, "end": end, "acute": acute, "left": left, "missed": missed, **drugs}
        rows.append({name: value[here] for name, value in stay.items()} | {"patient": np.flatnonzero(here)})
        also = here & planned & ~back & (extra + 1 < np.minimum(following, death))
        elective = {**stay, "start": extra, "end": extra + 0.8, "acute": left, "missed": np.zeros(count, bool)}
        rows.append({name: value[also] for name, value in elective.items()} | {"patient": np.flatnonzero(also)})
        starts.append(np.where(here, start, -np.inf))
        died = np.where(here & (death < following), death, died)
        start = following
        if not (here & np.isinf(died) & (start < HORIZON)).any():
            break
    return _with_deaths(people, died), _sorted(rows)


def _prescribed(hospital: Hospital, people: People, random: np.random.Generator) -> dict[str, Array]:
    ill = people.conditions
    wanted = {
        "furosemide": 0.9 + 0.5 * people.illness,
        "bisoprolol": 0.8 + 0.4 * ill["atrial_fibrillation"] - 0.6 * ill["lung_disease"],
        "lisinopril": 0.6 - 0.5 * people.kidneys,
        "spironolactone": -0.4 + 0.3 * people.illness - 0.5 * people.kidneys,
        "metformin": np.where(ill["diabetes"], 0.8 - 0.8 * people.kidneys, -5.0),
        "apixaban": np.where(ill["atrial_fibrillation"], 1.2, -4.0),
    }
    count = len(people.age)
    return {name: random.random(count) < chance(odds + hospital.treats) for name, odds in wanted.items()}


def _risk(people: People, left: Array, recent: Array, drugs: dict[str, Array]) -> Array:
    """Log-odds of being back within 30 days, apart from the hospital's own."""
    ill = people.conditions
    log_odds: Array = (
        0.45 * people.illness
        + 1.0 * left
        + 0.45 * people.kidneys
        + 0.35 * np.minimum(recent, 3)
        + 0.4 * ill["diabetes"]
        + 0.5 * (ill["atrial_fibrillation"] & (people.age > 75))
        + 0.4 * ill["lung_disease"]
        - 0.4 * drugs["lisinopril"]
        - 0.3 * drugs["spironolactone"]
    )
    return log_odds


def _with_deaths(people: People, died: Array) -> People:
    return People(**{**vars(people), "died": died})


def _sorted(rows: list[dict[str, Array]]) -> Stays:
    joined = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    order = np.lexsort((joined["start"], joined["patient"]))
    stay = {name: value[order] for name, value in joined.items()}
    after = np.zeros(len(order), bool)
    after[1:] = (stay["patient"][1:] == stay["patient"][:-1]) & (stay["start"][1:] - stay["end"][:-1] <= WITHIN)
    return Stays(
        patient=stay["patient"],
        start=stay["start"],
        end=stay["end"],
        acute=stay["acute"],
        left=stay["left"],
        drugs={name: stay[name] for name in DRUGS},
        counted=~(after & stay["missed"]),
    )
