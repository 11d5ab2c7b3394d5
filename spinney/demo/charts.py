"""What is written down during the patients' lives: visits, vitals, laboratory, diagnoses, prescriptions.

A value depends on the patient and on the state of the moment, which moves during a stay from how bad it was on
admission to what is left of it on discharge. Every frame has the patient's number, `day` (when) and `known` (when it
was entered; NaN: nobody says).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from spinney.demo.hospitals import Hospital
from spinney.demo.lives import FIRST_NIGHT, HORIZON, Array, People, Stays
from spinney.demo.words import CONDITIONS, DRUGS, LABORATORY, MEASURES, NYHA, NYHA_CLASSES, VITALS

HOUR = 1 / 24
ORDER = list(MEASURES)


def encounters(people: People, stays: Stays, visits: pd.DataFrame) -> pd.DataFrame:
    """Stays, and visits between them."""
    booked = np.where(stays.counted, "IMP", "OBSENC")
    inpatient = pd.DataFrame({"patient": stays.patient, "day": stays.start, "until": stays.end, "class": booked})
    rows = pd.concat([inpatient, visits], ignore_index=True)
    return rows[rows["day"] < people.died[rows["patient"]]].assign(known=np.nan)


def visits_between(people: People, stays: Stays, random: np.random.Generator) -> pd.DataFrame:
    """Visits to the clinic, and to the emergency room without a stay."""
    rates = {"AMB": np.full(len(people.age), 2.4), "EMER": 0.5 * np.exp(0.4 * people.illness)}
    begins = np.where(people.first < FIRST_NIGHT, people.first - 150, people.first)  # who comes later is not known yet
    years = (np.minimum(people.died, HORIZON) - begins) / 365
    frames = []
    for kind, rate in rates.items():
        patient = np.repeat(np.arange(len(people.age)), random.poisson(rate * years))
        day = begins[patient] + random.random(len(patient)) * years[patient] * 365
        hours = random.uniform(0.5, 1.5, len(patient)) * (1 if kind == "AMB" else 5)
        frames.append(pd.DataFrame({"patient": patient, "day": day, "until": day + hours * HOUR, "class": kind}))
    visits = pd.concat(frames, ignore_index=True)
    return visits[~_in_a_stay(visits, stays)].reset_index(drop=True)


def _in_a_stay(visits: pd.DataFrame, stays: Stays) -> Array:
    """Nobody comes to the clinic from a hospital bed, nor on the day before."""
    far = 10_000.0  # days; keeps patients apart on one axis
    at = np.searchsorted(stays.patient * far + stays.start - 1, visits["patient"] * far + visits["day"]) - 1
    before = np.maximum(at, 0)
    same = stays.patient[before] == visits["patient"]
    return np.asarray((at >= 0) & same & (visits["day"] < stays.end[before] + 1))


def measurements(
    hospital: Hospital, people: People, stays: Stays, visits: pd.DataFrame, random: np.random.Generator
) -> pd.DataFrame:
    """Numbers: measure (its place in ORDER), value in the study's unit, day, known."""
    own = random.standard_normal((2, len(people.age)))
    bedside = _occasions(stays, random, fewest=2, most=5, per_day=1.0)
    clinic = visits.loc[visits["class"] == "AMB", ["patient", "day"]].assign(state=-0.3)
    blood = _occasions(stays, random, fewest=1, most=3, per_day=0.5)
    heart = _occasions(stays, random, fewest=1, most=1, per_day=0.1)
    frames = [
        _vitals(people, pd.concat([bedside, clinic], ignore_index=True), own, random),
        _laboratory(hospital, people, stays, blood, own, random),
        _echo(hospital, people, stays, heart, random),
    ]
    return pd.concat(frames, ignore_index=True)


def _occasions(stays: Stays, random: np.random.Generator, fewest: int, most: int, per_day: float) -> pd.DataFrame:
    """Moments spread over each stay, the last one shortly before discharge, with the patient's state."""
    days = stays.end - stays.start
    times = np.clip(np.round(days * per_day), fewest, most).astype(int)
    stay = np.repeat(np.arange(len(days)), times)
    place = np.arange(len(stay)) - np.repeat(np.cumsum(times) - times, times)
    part = (place + random.uniform(0.35, 0.85, len(stay))) / times[stay]
    state = stays.acute[stay] * (1 - part) + stays.left[stay] * part
    day = stays.start[stay] + part * days[stay]
    return pd.DataFrame({"stay": stay, "patient": stays.patient[stay], "day": day, "state": state})


def _vitals(people: People, at: pd.DataFrame, own: Array, random: np.random.Generator) -> pd.DataFrame:
    who, state = at["patient"].to_numpy(), at["state"].to_numpy()
    noise = random.standard_normal((5, len(at)))
    systolic = np.clip(124 - 6 * people.illness[who] - 6 * state + people.pressure[who] + 7 * noise[0], 72, 230).round()
    values = {
        "systolic": systolic,
        "diastolic": np.clip(np.minimum(10 + 0.52 * systolic + 5 * noise[1], systolic - 15), 35, 130),
        "heart_rate": np.clip(
            76
            + 3 * people.illness[who]
            + 6 * state
            + 8 * people.conditions["atrial_fibrillation"][who]
            + 6 * own[0, who]
            + 5 * noise[2],
            40,
            180,
        ),
        "saturation": np.clip(
            96 - 1.0 * state - 1.5 * people.conditions["lung_disease"][who] + 1.0 * noise[3], 72, 100
        ),
        "weight": people.weight[who] + 2.4 * state + 0.4 * noise[4],
    }
    return _long(at, values, np.zeros(len(at)), VITALS)


def _laboratory(
    hospital: Hospital, people: People, stays: Stays, at: pd.DataFrame, own: Array, random: np.random.Generator
) -> pd.DataFrame:
    who, state = at["patient"].to_numpy(), at["state"].to_numpy()
    kidneys, illness = people.kidneys[who], people.illness[who]
    noise = random.standard_normal((6, len(at)))
    values = {
        "creatinine": np.clip(np.exp(0.1 + 0.28 * kidneys + 0.06 * state + 0.07 * noise[0]), 0.4, 12),
        "sodium": np.clip(139 - 0.8 * illness - 1.3 * state + 2 * noise[1], 115, 155),
        "potassium": np.clip(4.3 + 0.18 * kidneys + 0.35 * noise[2], 2.4, 7),
        "haemoglobin": np.clip(
            13.3 - 0.5 * kidneys - 0.9 * people.female[who] + 1.2 * own[1, who] + noise[3] / 3, 6, 19
        ),
        "glucose": np.clip(
            104
            + 55 * people.conditions["diabetes"][who]
            + 6 * state
            + (14 + 20 * people.conditions["diabetes"][who]) * noise[4],
            45,
            480,
        ),
        "nt_probnp": np.clip(np.exp(7.4 + 0.6 * illness + 0.55 * state + 0.35 * kidneys + 0.35 * noise[5]), 30, 70_000),
    }
    frame = _long(at, values, random.uniform(1, 4, len(at)) * HOUR, LABORATORY)
    skipped = random.random((len(LABORATORY), len(stays.patient))) < hospital.missing
    skipped[[name in hospital.without for name in LABORATORY]] = True
    return frame[~skipped[frame["measure"] - ORDER.index(LABORATORY[0]), frame["stay"]]]


def _echo(
    hospital: Hospital, people: People, stays: Stays, at: pd.DataFrame, random: np.random.Generator
) -> pd.DataFrame:
    """An echocardiogram in some stays."""
    value = np.clip(people.ejection_fraction[at["patient"]] + 3 * random.standard_normal(len(at)), 10, 72)
    done = random.random(len(stays.patient)) < 0.55 * (1 - hospital.missing)
    frame = _long(at, {"ejection_fraction": value}, np.full(len(at), 2 * HOUR), ("ejection_fraction",))
    return frame[done[frame["stay"]]]


def _long(at: pd.DataFrame, values: dict[str, Array], later: Array, names: tuple[str, ...]) -> pd.DataFrame:
    day = at["day"].to_numpy()
    stay = at["stay"].fillna(-1).astype(int).to_numpy()
    base = pd.DataFrame({"patient": at["patient"].to_numpy(), "stay": stay, "day": day, "known": day + later})
    return pd.concat(
        [base.assign(measure=np.int8(ORDER.index(name)), value=values[name]) for name in names], ignore_index=True
    )


def nyha_classes(hospital: Hospital, people: People, stays: Stays, random: np.random.Generator) -> pd.DataFrame:
    """How much the patient can do, as the physician codes it before discharge."""
    count = len(stays.patient)
    felt = people.illness[stays.patient] + 0.5 * stays.left + 0.4 * random.standard_normal(count)
    words = np.array(NYHA_CLASSES)[np.digitize(felt, [-1.1, 0.2, 1.4])]
    day = stays.end - np.minimum(6 * HOUR, 0.2 * (stays.end - stays.start))
    frame = pd.DataFrame({"patient": stays.patient, "day": day, "known": day, "code": NYHA, "text": words})
    return frame[random.random(count) >= hospital.missing]


def diagnoses(hospital: Hospital, people: People, random: np.random.Generator) -> pd.DataFrame:
    """Conditions with their onset; they are entered during the first stay, if at all."""
    frames = []
    for name in CONDITIONS:
        has = people.conditions[name] & (random.random(len(people.age)) >= hospital.uncoded)
        patient = np.flatnonzero(has)
        entered = people.first[patient] + random.uniform(0.1, 0.9, len(patient))
        day = people.first[patient] - random.uniform(0, 2000, len(patient))
        frames.append(
            pd.DataFrame({"patient": patient, "day": day, "known": entered, "code": hospital.habits.condition(name)})
        )
    return pd.concat(frames, ignore_index=True)


def prescriptions(hospital: Hospital, stays: Stays) -> pd.DataFrame:
    """What is prescribed before discharge."""
    day = stays.end - np.minimum(2 * HOUR, 0.1 * (stays.end - stays.start))
    frames = [
        pd.DataFrame({"patient": stays.patient, "day": day, "known": day, "code": hospital.habits.drug(name)})[
            stays.drugs[name]
        ]
        for name in DRUGS
    ]
    return pd.concat(frames, ignore_index=True)
