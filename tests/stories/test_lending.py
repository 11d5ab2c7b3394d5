"""What is lent has large leaves; what stays at home has small ones, votes there, and leaves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.errors import RoundVoid
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF
from spinney.study.study import LENT_LEAF
from spinney.trial.simulate import simulate
from tests.spinney.in_process import SITES, Wood, cohort, cohorts, study

SMALL = "elm"
MODES = ("masked", "ring", "trusted-third-party")


def wood_of(**privacy):
    return study(privacy={"lent_leaf": 20, "smallest_cohort": 20, **privacy})


@pytest.fixture(scope="module")
def wood():
    return wood_of()


@pytest.fixture(scope="module")
def people(wood):
    return cohorts(wood, SITES[:3], rows=300) | {SMALL: cohort(wood, 80, 3)}


@pytest.fixture(scope="module")
def finished(wood, people):
    federation = Wood(wood, people)
    federation.run()
    return federation


def fewest(house, trees, unseen):
    """The fewest distinct patients of a tree's bootstrap in any leaf."""
    training = house.cohort.rows(0)
    walker = Walker(trees, len(training.columns))
    found = len(training)
    for place, tree in enumerate(trees):
        drawn = ~unseen[:, place]
        ends, who = walker.leaves(place, training.X[drawn]), training.patients[drawn]
        found = min(found, *(len({*who[ends == leaf]}) for leaf in np.flatnonzero(tree.feature == LEAF)))
    return found


@pytest.mark.parametrize("name", SITES[:3])
def test_lent_leaves_hold_twenty_patients_and_those_of_home_five(finished, name):
    house, site = finished.houses[name], finished.site(name)
    assert fewest(house, site.own_forest(), house.memory["unseen"]) >= 20
    assert 5 <= fewest(house, site.home_forest(), house.memory["home-unseen"]) < 20


@pytest.mark.parametrize("name", SITES[:3])
def test_at_home_the_trees_of_home_vote_beside_those_of_others_and_none_that_was_lent(finished, name):
    model, site = finished.houses[name].outcome.model, finished.site(name)
    own = {digest for digest, owner in zip(model.forest_.digests, model.owners_, strict=True) if owner == name}
    assert own <= {*site.home_forest().digests}
    assert not own & {*site.own_forest().digests}


@pytest.mark.parametrize("mode", MODES)
def test_a_house_too_small_to_lend_scores_sums_and_uses(people, mode):
    federation = Wood(wood_of(secure_sum=mode), people)
    federation.run()
    assert not len(federation.site(SMALL).own_forest())
    order = federation.order("finish")
    assert SMALL not in order.manifest.owners
    assert federation.houses[SMALL].outcome.model is not None
    scored = federation.order("score")
    assert SMALL in scored.participants
    assert federation.houses[SMALL].memory["fold-counts"].sum() > 0


def test_what_was_counted_of_the_others_trees_is_what_would_be_counted_again(finished):
    site, house = finished.site("ash"), finished.houses["ash"]
    order = site._with_trees_of_home(finished.order("finish"))
    kept = site.pool(order.manifest, finished.order("finish").manifest)
    again = site.pool(order.manifest)
    can = ~kept.silent
    assert kept.owners == again.owners
    assert np.array_equal(kept.counts[:, :, can], again.counts[:, :, can])
    assert house.memory["scored"] != order.manifest.digest


@pytest.mark.parametrize(("asked", "floor"), [(40, 40), (2, 20), (0, 20)])
def test_a_house_may_be_stricter_than_the_study_and_never_laxer(wood, people, asked, floor):
    federation = Wood(wood, people)
    for house in federation.houses.values():
        house.lent_leaf = asked
    federation.run()
    house, site = federation.houses["ash"], federation.site("ash")
    assert fewest(house, site.own_forest(), house.memory["unseen"]) >= floor
    assert site.lent_leaf == floor


def test_the_floor_of_the_study_is_twenty_unless_it_is_run_as_published():
    assert study(privacy={"lent_leaf": None}).lent_leaf == LENT_LEAF == 20
    assert study(privacy={"lent_leaf": None}, algorithm={"name": "bofrf", "preset": "published"}).lent_leaf == 5
    assert study(privacy={"lent_leaf": 3}).lent_leaf == 5


@pytest.mark.parametrize(("patients", "lends"), [(63, False), (64, True)])
def test_sixty_four_training_patients_may_lend_at_twenty(wood, people, patients, lends):
    federation = Wood(wood, people)
    house = federation.houses["ash"]
    training = np.flatnonzero(house.cohort.part == 0)
    others = np.flatnonzero(house.cohort.part != 0)
    house.cohort = house.cohort.at(np.sort(np.concatenate([training[:patients], others])))
    assert federation.site("ash").may_lend == lends


def test_where_nobody_can_lend_it_is_said_what_that_takes(wood):
    with pytest.raises(RoundVoid, match="nobody has lent one, which takes 64 training patients where leaves that are"):
        simulate(wood, cohorts(wood, SITES[:3], rows=80))
