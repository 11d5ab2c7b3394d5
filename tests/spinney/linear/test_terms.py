"""What arrives as the terms of a common fit is checked before it is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.errors import Refused
from spinney.linear.terms import LinearTerms

GOOD = LinearTerms(
    "stepwise", 100.0, 10.0, np.array([0, 2, 5]), np.full(3, 0.5), np.full(3, 0.2), np.zeros(3), np.arange(9.0)
)


def test_good_terms_pass_and_none_at_all_pass():
    GOOD.check(4)
    LinearTerms().check(4)
    assert GOOD
    assert not LinearTerms()


@pytest.mark.parametrize(
    "change",
    [
        {"way": "sideways"},
        {"way": "one-round"},
        {"way": ""},
        {"total": np.zeros(8)},
        {"at": np.zeros(2)},
        {"mean": np.array([0.5, np.nan, 0.5])},
        {"deviation": np.array([0.5, 0.0, 0.5])},
        {"places": np.array([0, 2, 8])},
        {"places": np.array([2, 0, 5])},
        {"places": np.array([-1, 0, 5])},
        {"rows": -1.0},
        {"rows": np.inf},
        {"penalty": 0.0},
    ],
)
def test_terms_that_make_no_sense_are_refused(change):
    with pytest.raises(Refused, match="no terms of a common logistic regression"):
        replace(GOOD, **change).check(4)


def test_other_terms_have_another_digest():
    assert GOOD.digest == replace(GOOD).digest
    others = [replace(GOOD, at=np.ones(3)), replace(GOOD, rows=101.0), LinearTerms()]
    assert len({GOOD.digest, *(one.digest for one in others)}) == 4
