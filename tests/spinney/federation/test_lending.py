"""A site attacks what it is about to lend, where the study asks for it, and keeps what tells too much."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.errors import RoundVoid
from spinney.federation.lending import TOO_FEW, attacked
from tests.spinney.in_process import SITES, Wood, cohorts, study

ENOUGH = 900


def run(rows=ENOUGH, **privacy):
    wood = study(privacy={"lent_leaf": 5, "smallest_leaf": 2, **privacy}, forest={"trees": 6, "max_depth": 12})
    federation = Wood(wood, cohorts(wood, SITES[:3], rows=rows))
    federation.run()
    return federation


def test_trees_that_tell_too_much_stay_at_home_and_vote_there_and_the_page_says_why():
    wood = study(
        privacy={"lent_leaf": 2, "smallest_leaf": 2, "largest_advantage": 0.01},
        forest={"trees": 6, "max_depth": 12, "min_samples_leaf": 1},
    )
    federation = Wood(wood, cohorts(wood, SITES[:1], rows=ENOUGH))
    house, site = federation.houses["ash"], federation.site("ash")
    house.memory["key"] = b"0" * 32
    site.grown()
    assert not len(site.own_forest())
    assert len(site.home_forest()) == 6
    assert "this house lends no trees" in house.memory["attacked"]


def test_where_all_houses_keep_their_trees_the_round_is_void():
    with pytest.raises(RoundVoid, match="no tree"):
        run(largest_advantage=0.01, lent_leaf=2)


def test_trees_that_tell_less_are_lent_and_the_outcome_says_what_an_attack_finds():
    federation = run(largest_advantage=0.9)
    assert {*federation.order("finish").manifest.owners} == {*SITES[:3]}
    notes = federation.houses["ash"].outcome.decision.notes
    assert any("area under the curve" in note for note in notes)


def test_with_few_others_trees_are_lent_and_the_outcome_says_that_nothing_was_measured():
    federation = run(rows=160, largest_advantage=0.01)
    assert TOO_FEW in federation.houses["ash"].outcome.decision.notes


def test_unless_the_study_asks_nothing_is_attacked():
    federation = run(rows=160)
    assert "attacked" not in federation.houses["ash"].memory


def test_an_attack_on_what_would_be_lent_tonight_is_the_same_every_time():
    wood = study(forest={"trees": 6})
    people = cohorts(wood, SITES[:1], rows=ENOUGH)["ash"]
    once, again = attacked(wood, people, 20), attacked(wood, people, 20)
    assert once == again
    assert once.members == np.count_nonzero(people.part == 0)
