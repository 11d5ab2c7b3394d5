"""Who refuses what, judged by what the others found; and whose a tree is that several have sent."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from spinney.federation.messages import Verdict
from spinney.federation.refusals import UNREADABLE, broken, false_refusals, held

FOUR = ("ash", "beech", "cedar", "elm")


def verdicts(refusals, names=FOUR):
    """What sites say: site -> {owner: rule}."""
    return {name: Verdict({}, refusals.get(name, {})) for name in names}


@pytest.mark.parametrize("names", [FOUR, (*FOUR, "fir")])
@pytest.mark.parametrize("said", ["depth", UNREADABLE, ""])
def test_one_site_s_word_about_any_forest_breaks_none_and_makes_nobody_else_a_liar(names, said):
    for liar in names:
        for rivals in product([0, 1], repeat=len(names)):
            about = {owner: said for owner, named in zip(names, rivals, strict=True) if named and said}
            told = verdicts({liar: about}, names)
            assert not any(broken(told, owner) for owner in names)
            assert {*false_refusals(told)} <= {liar}
            assert bool(false_refusals(told)) == (said == "depth" and any(about))


@pytest.mark.parametrize("names", [FOUR, (*FOUR, "fir")])
def test_one_site_that_takes_a_broken_forest_saves_it_not_and_makes_nobody_a_liar(names):
    others = names[1:]
    for friend in others:
        told = verdicts({name: {"ash": "trees"} for name in others if name != friend}, names)
        assert broken(told, "ash") == (len(others) - 1 > len(names) / 2)
        assert false_refusals(told) == {}


def test_two_of_four_who_refuse_a_third_take_nothing_out_and_are_not_left_out_either():
    told = verdicts({"ash": {"elm": "depth"}, "beech": {"elm": "depth"}})
    assert not broken(told, "elm")
    assert false_refusals(told) == {}


def test_who_can_not_read_a_forest_is_no_judge_of_it():
    told = verdicts({"ash": {"elm": "depth"}, "beech": {"elm": "depth"}, "cedar": {"elm": UNREADABLE}})
    assert broken(told, "elm")
    alone = verdicts({"ash": {"elm": "depth"}, "beech": {"elm": UNREADABLE}, "cedar": {"elm": UNREADABLE}})
    assert not broken(alone, "elm")
    assert false_refusals(alone) == {}  # nobody has seen that it is not so


def test_words_about_sites_that_are_gone_count_for_nothing():
    assert false_refusals(verdicts({"ash": {"oak": "depth"}})) == {}


def test_a_tree_that_several_have_sent_counts_once_and_in_about_as_many_names():
    digests = [f"{number:032x}" for number in range(400)]
    found = held({"ash": digests, "beech": digests[::-1], "elm": digests})
    assert (found["ash"] + found["beech"][::-1] + found["elm"] == 1).all()
    assert all(100 < np.count_nonzero(mine) < 170 for mine in found.values())
    again = held({"elm": digests, "beech": digests[::-1], "ash": digests})
    assert all(np.array_equal(found[name], again[name]) for name in found)


def test_of_copies_within_a_forest_the_first_counts():
    assert held({"ash": ["a", "b", "a", "a"]})["ash"].tolist() == [True, True, False, False]
