"""Labels with scores, for the tests of figures and of intervals."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st


@st.composite
def labelled_scores(draw):
    """Both classes, and scores on a coarse grid so that ties are common."""
    rows = draw(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=1, max_size=60))
    rows += [(True, draw(st.integers(0, 12))), (False, draw(st.integers(0, 12)))]
    y, steps = zip(*draw(st.permutations(rows)), strict=True)
    return np.array(y), np.array(steps) / 12


def patients(seed, number=200, signal=1.0, rows_each=2, models=1, shared=0.0):
    """Rows of patients: a patient's rows share its label and part of its score; models share part of their noise."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(number), rows_each)
    y = (np.arange(number) < number // 3)[groups]
    common = rng.normal(size=number)[groups]
    noise = [
        math.sqrt(shared) * common + math.sqrt(1 - shared) * rng.normal(size=number)[groups] for _ in range(models)
    ]
    return y, groups, [1 / (1 + np.exp(-(signal * y + each))) for each in noise]
