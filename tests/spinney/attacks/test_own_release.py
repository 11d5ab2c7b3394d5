"""A site's attack on its own release finds who trained a forest that remembers them, and nobody else."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.attacks.own_release import FEWEST_OTHERS, attack
from tests.spinney.attacks.exporters import collapsed, people, remembering

X, y = people(600, 3)
MEMBER = np.arange(600) % 2 == 0


def attacked(exporter, member=MEMBER):
    release = exporter(X[member], y[member], 77)
    return attack(release, exporter, X, y, member, forests=16)


def test_leaves_of_one_patient_tell_nearly_everybody_and_large_leaves_far_less():
    remembered, large = attacked(remembering), attacked(collapsed)
    assert remembered.verdict.auc.low > 0.8
    assert remembered.above(0.5)
    assert large.verdict.auc.value < remembered.verdict.auc.value - 0.2
    assert not large.above(0.5)


def test_of_people_who_have_nothing_to_do_with_the_release_nothing_is_told():
    elsewhere, there = people(300, 4)
    found = attack(remembering(elsewhere, there, 1), remembering, X, y, MEMBER, forests=16)
    assert found.verdict.auc.low <= 0.5 <= found.verdict.auc.high
    assert not found.above(0.05)


def test_with_fewer_than_two_hundred_others_nothing_is_said():
    few = np.arange(600) >= FEWEST_OTHERS - 1
    assert attacked(collapsed, few) is None


def test_time_ends_an_attack_after_four_forests_at_the_earliest():
    begun = []

    def counting(rows, labels, seed):
        begun.append(seed)
        return collapsed(rows, labels, seed)

    attack(collapsed(X[MEMBER], y[MEMBER], 1), counting, X, y, MEMBER, forests=16, go_on=lambda: False)
    assert len(begun) == 4


@pytest.mark.parametrize("word", ["area under the curve of", "guessing is 0.50", "one of a hundred others"])
def test_what_came_of_it_is_told_in_words(word):
    assert word in attacked(collapsed).words
