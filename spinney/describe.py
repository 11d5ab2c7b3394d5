"""What a site says about its patients: means and shares over the study's columns, refused below the smallest cohort."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.cohort import Cohort
from spinney.errors import Declined
from spinney.settings import Privacy

VECTOR_DECIMALS = 3


def characteristic_vector(cohort: Cohort, privacy: Privacy) -> NDArray[np.float64]:
    """Mean of each scaled feature, share of each category; NaN where the site has too few known values to say."""
    people = cohort.patient_count
    if people < privacy.smallest_cohort:
        raise Declined(f"{people} patients are fewer than the study's smallest cohort of {privacy.smallest_cohort}")
    known = np.count_nonzero(~np.isnan(cohort.X), axis=0)
    enough = known >= privacy.smallest_cohort
    total = np.nansum(cohort.X, axis=0, dtype=np.float64)
    mean = np.divide(total, known, out=np.full(len(known), np.nan), where=enough)
    return np.asarray(np.round(mean, VECTOR_DECIMALS))


def rounded_rows(rows: int, privacy: Privacy) -> int:
    """The number of rows as others may know it."""
    return round(rows / privacy.rows_precision) * privacy.rows_precision
