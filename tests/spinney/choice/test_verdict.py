"""The verdict: words that follow from a gain and its interval, and from nothing else."""

from __future__ import annotations

import math

import pytest

from spinney.choice.metrics import Figure
from spinney.choice.verdict import verdict_of


@pytest.mark.parametrize(
    ("gain", "word"),
    [
        (Figure(0.031, 0.012, 0.05), "yes"),
        (Figure(0.0, -0.01, 0.01), "no harm"),
        (Figure(-0.004, -0.009, 0.001), "no harm"),
        (Figure(-0.03, -0.05, -0.01), "no"),
        (Figure(0.02, -0.02, 0.06), "can't tell yet"),
        (Figure(math.nan, math.nan, math.nan), "can't tell yet"),
        (None, "can't tell yet"),
    ],
)
def test_the_word_says_where_the_interval_lies(gain, word):
    assert verdict_of(gain, 500).word == word


def test_a_gain_is_told_with_its_interval():
    assert verdict_of(Figure(0.031, 0.012, 0.05), 500).sentence == "yes, +0.031 (+0.012 to +0.050)"


def test_who_keeps_its_own_model_loses_nothing():
    assert verdict_of(Figure(0.0, 0.0, 0.0), 500).sentence == "no harm: it would keep its own model"


def test_how_many_more_patients_would_tell_follows_from_the_root_of_their_number():
    # four times the patients halve the interval, which then ends at no gain: 1,500 more than 500
    verdict = verdict_of(Figure(0.02, -0.02, 0.06), 500)
    assert verdict.more_patients == 390  # less is needed to show that it does no harm: (0.04 / 0.03)^2 of 500
    assert verdict.sentence == "can't tell yet; about 390 more patients would tell"


def test_no_number_is_named_where_nobody_would_wait_for_it_or_none_would_help():
    assert verdict_of(Figure(-0.0099, -0.04, 0.03), 500).more_patients == 0
    assert verdict_of(Figure(-0.02, -0.05, 0.01), 500).more_patients == 0


def test_without_a_figure_the_reason_is_said():
    assert verdict_of(None, 500).sentence == "can't tell yet: too few patients to measure on"
