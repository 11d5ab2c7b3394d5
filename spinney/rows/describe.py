"""What a site says about its patients: means and shares over the study's columns, refused below the smallest cohort."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Declined
from spinney.rows.cohort import Cohort
from spinney.study.settings import Privacy

VECTOR_DECIMALS = 3
MEAN_STEPS = 10**VECTOR_DECIMALS


def characteristic_vector(cohort: Cohort, privacy: Privacy, missing_rates: bool | None = None) -> NDArray[np.float64]:
    """Mean of each scaled feature, share of each category; NaN where the site has too few known values to say.

    What is true of fewer patients than the smallest leaf is not told.

    With `missing_rates` (by default as the privacy policy says) the share of rows without a value follows, per feature,
    and the share of rows with the outcome is last where the policy says `label_rate`.
    """
    people = cohort.patient_count
    if people < privacy.smallest_cohort:
        raise Declined(
            f"{people} training patients are fewer than the study's smallest cohort of {privacy.smallest_cohort}"
        )
    known = np.count_nonzero(~np.isnan(cohort.X), axis=0)
    enough = patients_known(cohort) >= privacy.smallest_cohort
    total = np.nansum(cohort.X, axis=0, dtype=np.float64)
    mean = np.divide(total, known, out=np.full(len(known), np.nan), where=enough)
    mean = _without_small_cells(mean, cohort, privacy.smallest_leaf)
    if privacy.missing_rates if missing_rates is None else missing_rates:
        mean = np.concatenate([mean, _missing_rates(cohort, privacy.smallest_leaf)])
    if privacy.label_rate:
        mean = np.append(mean, _label_rate(cohort, privacy.smallest_leaf))
    return np.asarray(np.round(mean, VECTOR_DECIMALS))


def _without_small_cells(mean: NDArray[np.float64], cohort: Cohort, fewest: int) -> NDArray[np.float64]:
    """What is true of a handful of patients only points at them, and is told as if they were like the others.

    Shares of a category are told among the categories with enough patients, so that nothing is left to subtract.
    """
    told = mean.copy()
    places: dict[str, list[int]] = {}
    for place, column in enumerate(cohort.columns):
        places.setdefault(column.feature.name, []).append(place)
    for columns in places.values():
        if np.isnan(mean[columns]).any():
            continue
        values = cohort.X[:, columns]
        if len(columns) == 1:
            common, patients = most_common(values[:, 0], cohort.patients)
            if patients < fewest:
                told[columns] = common
        else:
            rows = np.asarray(np.nansum(values, axis=0, dtype=np.float64))
            people = np.array([len(np.unique(cohort.patients[one == 1])) for one in values.T])
            rows[people < fewest] = 0
            told[columns] = rows / max(rows.sum(), 1)
    return told


def most_common(values: NDArray[np.float32], patients: NDArray[np.int64]) -> tuple[float, int]:
    """The value of most rows, and how many patients have another one."""
    known = ~np.isnan(values)
    found, counts = np.unique(values[known], return_counts=True)
    common = found[counts.argmax()]
    return float(common), len(np.unique(patients[known & (values != common)]))


def patients_known(cohort: Cohort) -> NDArray[np.int64]:
    """Patients with a value in each column; many values of one patient tell about that patient."""
    return np.array([len(np.unique(cohort.patients[~np.isnan(column)])) for column in cohort.X.T])


def known_rows(cohort: Cohort, privacy: Privacy) -> NDArray[np.int64]:
    """How many rows have a value in each column, as others may know it."""
    known = np.count_nonzero(~np.isnan(cohort.X), axis=0)
    return np.array([rounded_rows(int(rows), privacy) for rows in known], dtype=np.int64)


def _missing_rates(cohort: Cohort, fewest: int) -> NDArray[np.float64]:
    """Share of rows without a value per feature; a handful of patients who differ from the others are not told of."""
    rates = []
    for place in _first_columns(cohort):
        missing = np.isnan(cohort.X[:, place])
        rate = float(missing.mean())
        if len(np.unique(cohort.patients[missing])) < fewest:
            rate = 0.0
        elif len(np.unique(cohort.patients[~missing])) < fewest:
            rate = 1.0
        rates.append(rate)
    return np.array(rates)


def _label_rate(cohort: Cohort, fewest: int) -> float:
    """Share of rows with the outcome; as if nobody or everybody had it where a handful of patients differ."""
    with_it, without = cohort.y == 1, cohort.y != 1
    if len(np.unique(cohort.patients[with_it])) < fewest:
        return 0.0
    return 1.0 if len(np.unique(cohort.patients[without])) < fewest else float(with_it.mean())


def vector_names(cohort: Cohort, privacy: Privacy) -> tuple[str, ...]:
    """What each number of the characteristic vector is about."""
    names = [column.name for column in cohort.columns]
    if privacy.missing_rates:
        names += [f"{cohort.columns[place].feature.name} missing" for place in _first_columns(cohort)]
    return (*names, "the outcome") if privacy.label_rate else tuple(names)


def _first_columns(cohort: Cohort) -> list[int]:
    """The place of each feature's first column; a categorical feature is known in all of its columns or in none."""
    places: dict[str, int] = {}
    for place, column in enumerate(cohort.columns):
        places.setdefault(column.feature.name, place)
    return list(places.values())


def rounded_rows(rows: int, privacy: Privacy) -> int:
    """The number of rows as others may know it."""
    return round(rows / privacy.rows_precision) * privacy.rows_precision


def most_rows(told: int, privacy: Privacy) -> int:
    """How many rows there may be behind a rounded number of them."""
    return told + privacy.rows_precision // 2
