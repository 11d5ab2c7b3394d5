"""All that one made-up hospital has written down by the end of a day, as patients and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

from spinney.demo.charts import (
    ORDER,
    diagnoses,
    encounters,
    measurements,
    nyha_classes,
    prescriptions,
    visits_between,
)
from spinney.demo.hospitals import Hospital
from spinney.demo.lives import FIRST_NIGHT, LAST_NIGHTS, People, live
from spinney.demo.words import MEASURES
from spinney.errors import SpinneyError

FIRST_DAY = datetime(2022, 7, 1, tzinfo=UTC)
KINDS = ("Encounter", "Observation", "Condition", "MedicationRequest")


class NoSuchNight(SpinneyError):
    """The made-up world ends."""


@dataclass(frozen=True)
class MadeUpHistory:
    """What a hospital knows. Times are UTC; codes, values and units are as the hospital writes them."""

    hospital: Hospital
    patients: pd.DataFrame
    """patient, birth, sex, died."""
    events: Mapping[str, pd.DataFrame]
    """By kind: number, patient, code, time, until, recorded, value, text, unit, status, class; as the kind has them."""

    def by_night(self, night: int) -> MadeUpHistory:
        """What was known in the evening before this night: stays may be under way, and the future is dark."""
        now = pd.Timestamp(end_of(night).replace(tzinfo=None))
        events = {kind: _known(rows, now) for kind, rows in self.events.items()}
        seen = self.patients["patient"].isin(events["Encounter"]["patient"])
        patients = self.patients[seen]
        died = patients["died"].where(patients["died"] <= now)
        return MadeUpHistory(self.hospital, patients.assign(died=died).reset_index(drop=True), events)


def end_of(night: int) -> datetime:
    """When the data of a night end."""
    if not 1 <= night <= LAST_NIGHTS:
        raise NoSuchNight(f"the made-up world has {LAST_NIGHTS} nights; choose one from 1 to {LAST_NIGHTS}")
    return FIRST_DAY + timedelta(days=FIRST_NIGHT + night - 1)


def make_history(hospital: Hospital, seed: int, night: int = 1) -> MadeUpHistory:
    """The records of a hospital by the given night, the same for the same seed."""
    people, stays = live(hospital, seed)
    random = np.random.default_rng([seed, 3, hospital.number])
    visits = visits_between(people, stays, random)
    numbers = _as_written(hospital, measurements(hospital, people, stays, visits, random))
    words = nyha_classes(hospital, people, stays, random)
    frames = {
        "Encounter": encounters(people, stays, visits).assign(status="finished"),
        "Observation": pd.concat([numbers, words], ignore_index=True).assign(status="final"),
        "Condition": diagnoses(hospital, people, random),
        "MedicationRequest": prescriptions(hospital, stays).assign(status="active"),
    }
    names = [f"{hospital.name}-{number:05d}" for number in range(len(people.age))]
    events = {kind: _events(frame, people, names) for kind, frame in frames.items()}
    return MadeUpHistory(hospital, _patients(people, names), events).by_night(night)


def _patients(people: People, names: list[str]) -> pd.DataFrame:
    born = pd.Timestamp(FIRST_DAY.replace(tzinfo=None)) - pd.to_timedelta(people.age * 365.25, unit="D")
    died = _moments(np.where(np.isinf(people.died), np.nan, people.died))
    sex = np.where(people.female, "female", "male")
    return pd.DataFrame({"patient": names, "birth": born.normalize(), "sex": sex, "died": died})


def _as_written(hospital: Hospital, numbers: pd.DataFrame) -> pd.DataFrame:
    """Codes, units and rounding as this hospital has them."""
    habits, measure = hospital.habits, numbers["measure"].to_numpy()
    written = [habits.written(name) for name in ORDER]
    ours = np.array([10.0 ** MEASURES[name].digits for name in ORDER])[measure]
    theirs = np.array([10.0**digits for _, _, digits in written])[measure]
    factor = np.array([factor for _, factor, _ in written])[measure]
    value = np.rint(np.rint(numbers["value"].to_numpy() * ours) / ours * factor * theirs) / theirs
    units = [None if name in habits.unitless else unit for name, (unit, _, _) in zip(ORDER, written, strict=True)]
    return pd.DataFrame(
        {
            "patient": numbers["patient"],
            "day": numbers["day"],
            "known": numbers["known"],
            "code": np.array([habits.code(name, hospital.name) for name in ORDER], object)[measure],
            "value": value,
            "unit": np.array(units, object)[measure],
        },
    )


def _events(frame: pd.DataFrame, people: People, names: list[str]) -> pd.DataFrame:
    """Numbered by time, so that a later night keeps the numbers of an earlier one."""
    alive = frame["day"].to_numpy() < people.died[frame["patient"]]
    frame = frame[alive].sort_values(["day", "patient"], kind="stable", ignore_index=True)
    rows = {
        "number": np.arange(len(frame)),
        "patient": pd.Categorical.from_codes(frame["patient"].to_numpy(), pd.Index(names)),
        "time": _moments(frame["day"].to_numpy()),
        "recorded": _moments(frame["known"].to_numpy()),
    }
    if "until" in frame:
        ends = np.minimum(frame["until"].to_numpy(), people.died[frame["patient"]])
        rows["until"] = _moments(ends)
    kept = [column for column in ("code", "value", "text", "unit", "status", "class") if column in frame]
    return pd.DataFrame({**rows, **{column: frame[column].to_numpy() for column in kept}})


def _moments(days: np.ndarray) -> pd.Series:
    """Days as moments to the minute. Nothing happens between midnight and four o'clock, when clocks are changed."""
    whole = np.floor(days)
    hours = 4 + 19.9 * (days - whole)
    minutes = pd.Series(np.round((whole * 24 + hours) * 60))
    return pd.Timestamp(FIRST_DAY.replace(tzinfo=None)) + pd.to_timedelta(minutes, unit="min")


def _known(rows: pd.DataFrame, now: pd.Timestamp) -> pd.DataFrame:
    rows = rows[rows["recorded"].fillna(rows["time"]) <= now]
    if "until" in rows:
        under_way = rows["until"] > now
        rows = rows.assign(
            until=rows["until"].mask(under_way), status=np.where(under_way, "in-progress", rows["status"])
        )
    return rows.reset_index(drop=True)
