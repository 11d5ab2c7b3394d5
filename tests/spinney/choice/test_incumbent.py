"""The champion takes part in the choice, on the same rows and honestly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.choice.incumbent import Incumbent
from spinney.rows.cohort import Cohort
from spinney.rows.parts import Part
from tests.spinney.in_process import Wood, cohort, cohorts, study

NAMES = ("ash", "beech", "cedar")
GOOD, NOISE = (6.0, 3.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)


def wood_of(elm: Cohort, incumbent: Incumbent | None = None, others=None, wood=None, round_: int = 1) -> Wood:
    wood = wood or study()
    made = Wood(wood, (others or cohorts(wood, NAMES, concept=GOOD)) | {"elm": elm}, round=round_)
    made.houses["elm"].incumbent = incumbent
    made.run()
    return made


def incumbent_from(made: Wood, tonight: Cohort, *, same_patients: bool = True, promised: bool = True) -> Incumbent:
    """Last night's model of elm; its rows of last night come first in tonight's cohort."""
    outcome, house = made.outcomes["elm"], made.houses["elm"]
    model = outcome.model
    own = np.flatnonzero(np.asarray(model.owners_) == "elm")
    place = {digest: at for at, digest in enumerate(made.site("elm").own_forest().digests)}
    unseen = np.ones((len(tonight), len(own)), dtype=bool)
    if same_patients:
        training = np.flatnonzero(house.cohort.part == Part.TRAINING)
        columns = [place[model.forest_.digests[at]] for at in own]
        unseen[training] = house.memory["unseen"][:, columns]
    reached = outcome.decision.cross_validated[outcome.decision.name]
    return Incumbent("7", model, own, unseen, reached if promised else None)


@pytest.fixture(scope="module")
def elm() -> Cohort:
    return cohort(study(), 240, seed=3, concept=GOOD)


@pytest.fixture(scope="module")
def first(elm) -> Wood:
    return wood_of(elm)


def test_without_a_champion_there_is_no_succession(first):
    assert first.outcomes["elm"].succession is None
    assert first.outcomes["elm"].takes_over


def test_a_champion_changes_nothing_about_tonights_model(first, elm):
    second = wood_of(elm, incumbent_from(first, elm))
    assert second.outcomes["elm"].model.digest == first.outcomes["elm"].model.digest


def test_a_candidate_that_is_not_worse_replaces_the_champion(first, elm):
    outcome = wood_of(elm, incumbent_from(first, elm), round_=2).outcomes["elm"]
    assert outcome.succession.replaces
    assert outcome.succession.reason == "it is not worse beyond noise"
    assert outcome.takes_over
    assert "auroc" in outcome.gain_over_champion


def test_the_champion_is_judged_out_of_bag(first, elm):
    incumbent = incumbent_from(first, elm)
    flattered = replace(incumbent, unseen=np.ones_like(incumbent.unseen))
    training = elm.part == Part.TRAINING
    honest, inflated = (one.votes(elm)[training] for one in (incumbent, flattered))
    own = np.asarray(incumbent.model.owners_) == "elm"
    row = int(np.flatnonzero(~incumbent.unseen[training].all(axis=1))[0])
    votes = incumbent.model._walker.votes(elm.X[training][row : row + 1])[0]
    says = np.ones(len(votes), dtype=bool)
    says[own] = incumbent.unseen[training][row]
    weights = incumbent.model.weights_
    assert honest[row] == pytest.approx((votes * weights)[says].sum() / weights[says].sum())
    assert honest[row] != pytest.approx(inflated[row])


def test_a_worse_candidate_does_not_replace_the_champion(elm):
    """Last night there were many rows; tonight all have few, and the rows to judge on are the same."""
    wood = study(forest={"trees": 20})
    first = wood_of(elm, wood=wood, others=cohorts(wood, NAMES, rows=600, concept=GOOD))
    few = replace(elm, part=np.where(np.arange(len(elm)) < 60, elm.part, Part.VALIDATION).astype(np.int8))
    poor = {name: cohort(wood, 60, seed, concept=(0.5, 0, 0, 0)) for seed, name in enumerate(NAMES)}
    judged = study(forest={"trees": 20}, split={"validation": 0.5})
    incumbent = incumbent_from(first, few, promised=False)
    outcome = wood_of(few, incumbent, others=poor, wood=judged, round_=2).outcomes["elm"]
    assert outcome.decision.question is None
    assert outcome.succession.reason.startswith("the champion is better beyond noise (by 0.")
    assert outcome.succession.champion_quality > outcome.succession.candidate_quality
    assert not outcome.takes_over


def test_a_question_never_replaces_a_champion(first):
    turned = cohort(study(), 240, seed=3, concept=tuple(-one for one in GOOD))
    outcome = wood_of(turned, incumbent_from(first, turned), round_=2).outcomes["elm"]
    assert outcome.decision.question
    assert not outcome.succession.replaces
    assert not outcome.takes_over


def test_rows_on_which_the_champion_breaks_its_promise_raise_a_question(first):
    """All sites' labels are noise tonight: the champion looks as bad as the candidate, and it is not its fault."""
    noise = {name: cohort(study(), 240, seed, concept=NOISE) for seed, name in enumerate((*NAMES, "elm"), 1)}
    elm = noise.pop("elm")
    outcome = wood_of(elm, incumbent_from(first, elm), others=noise, round_=2).outcomes["elm"]
    assert "have the data or the label changed?" in outcome.decision.question
    assert not outcome.takes_over


def test_with_too_few_patients_of_a_class_tonights_model_stands_and_says_why(first):
    rare = cohort(study(), 160, seed=3, base=-5.5)
    assert 0 < min(rare.rows(Part.TRAINING).patients_by_class()) < 10
    succession = wood_of(rare, incumbent_from(first, rare, same_patients=False), round_=2).outcomes["elm"].succession
    assert succession.replaces
    assert "too few to compare with the champion" in succession.reason


def test_a_champion_of_an_older_study_votes_with_the_columns_that_still_mean_the_same():
    wood = study(forest={"trees": 20, "max_depth": 1, "absent": "abstain"})
    elm = cohort(wood, 240, seed=3)
    first = wood_of(elm, wood=wood)
    incumbent = incumbent_from(first, elm, same_patients=False)
    changed = [{"name": f"x{at}", "kind": "continuous", "range": [0, 2 if at == 0 else 1]} for at in (1, 2, 3, 0)]
    tonight = cohort(study(features=changed), 240, seed=3)
    still = np.flatnonzero(~incumbent.model.forest_.uses(4)[:, 0])
    assert 0 < len(still) < len(incumbent.model.owners_)
    old_order = tonight.X[:, [3, 0, 1, 2]]
    votes = incumbent.model._walker.votes(old_order)[:, still] @ incumbent.model.weights_[still]
    assert incumbent.votes(tonight) == pytest.approx(votes / incumbent.model.weights_[still].sum())


def test_a_champion_whose_columns_are_all_gone_has_no_say_and_is_replaced(first, elm):
    incumbent = incumbent_from(first, elm, same_patients=False)
    renamed = study(features=[{"name": f"z{at}", "kind": "continuous", "range": [0, 1]} for at in range(4)])
    people = {name: cohort(renamed, 240, seed, concept=GOOD) for seed, name in enumerate((*NAMES, "elm"), 1)}
    tonight = people.pop("elm")
    succession = wood_of(tonight, incumbent, others=people, wood=renamed, round_=2).outcomes["elm"].succession
    assert np.isnan(incumbent.votes(tonight)).all()
    assert (succession.replaces, succession.reason) == (True, "no tree of the champion has a say here any more")


def test_a_model_s_promise_is_not_held_against_it_where_it_is_unknown(first):
    noise = {name: cohort(study(), 240, seed, concept=NOISE) for seed, name in enumerate((*NAMES, "elm"), 1)}
    elm = noise.pop("elm")
    unpromised = incumbent_from(first, elm, promised=False)
    question = wood_of(elm, unpromised, others=noise, round_=2).outcomes["elm"].decision.question
    assert question is None or "have the data" not in question
