"""In which steps values are recorded, of whole numbers, of converted ones and of none."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.rows.recorded import converted_steps, recorded_steps, rounded_down


def test_tenths_of_a_millimole_are_found_behind_their_conversion():
    values = np.arange(20, 90).repeat(3) * 0.1 * 18.0156
    assert recorded_steps(values) is None
    assert converted_steps(values) == pytest.approx(1.80156)


def test_a_few_odd_values_do_not_hide_the_step():
    assert recorded_steps(np.append(np.arange(10.0, 400.0), [3.37, 9.99])) == 1


def test_many_zeros_are_no_steps():
    assert recorded_steps(np.concatenate([np.zeros(900), np.arange(1.0, 90.0, 0.5)])) == 0.5


@pytest.mark.parametrize("step", [0.001, 0.2, 5, 1000])
def test_any_round_step_is_found(step):
    assert recorded_steps(np.arange(1, 300) * step) == step


@pytest.mark.parametrize(("number", "below"), [(0.3, 0.2), (7, 5), (10, 10), (1999, 1000)])
def test_round_numbers_below(number, below):
    assert rounded_down(number) == below
