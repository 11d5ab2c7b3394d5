"""How a site chooses its model, and what it says about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.choice import metrics
from spinney.choice.intervals import delong
from spinney.choice.personalise import Chooser, Outcome
from spinney.forest.traverse import Walker
from spinney.rows.cohort import Cohort
from spinney.rows.parts import Part
from tests.spinney.choice.choosers import chooser_at
from tests.spinney.in_process import Wood, cohort, cohorts, study

NAMES = ("ash", "beech", "cedar")


def federation(wood=None, elm: Cohort | None = None, **kwargs) -> Wood:
    """Three sites of one kind, and elm as the test wants it."""
    wood = wood or study()
    people = cohorts(wood, NAMES, **kwargs) | {"elm": elm or cohort(wood, seed=3, **kwargs)}
    made = Wood(wood, people)
    made.run()
    return made


def outcome_at_elm(wood=None, elm: Cohort | None = None, **kwargs) -> Outcome:
    return federation(wood, elm, **kwargs).outcomes["elm"]


@pytest.fixture(scope="module")
def alike() -> Wood:
    return federation()


# ---------------------------------------------------------------------------------------------------------------
# What a choice may look at


@pytest.mark.parametrize("validation", [0, 0.25])
def test_test_rows_change_neither_the_decision_nor_the_model(validation):
    wood = study(split={"validation": validation}, choice={"fewest_patients": 2})
    elm = cohort(wood, seed=3)
    measured = elm.part == Part.TEST
    other = replace(
        elm, X=np.where(measured[:, None], 1 - elm.X, elm.X), y=np.where(measured, 1 - elm.y, elm.y).astype(np.int8)
    )
    before, after = outcome_at_elm(wood, elm), outcome_at_elm(wood, other)
    assert before.decision == after.decision
    assert before.model.digest == after.model.digest
    assert before.auroc != after.auroc


def test_with_a_validation_part_the_choice_is_made_there_and_nowhere_else():
    wood = study(split={"validation": 0.3}, choice={"fewest_patients": 2})
    elm = cohort(wood, 240, seed=3)
    kept_out = elm.part == Part.VALIDATION
    other = replace(elm, y=np.where(kept_out, np.roll(elm.y, 1), elm.y).astype(np.int8))
    first, second = federation(wood, elm), federation(wood, other)
    assert first.order("finish").weights.tolist() == second.order("finish").weights.tolist()
    decisions = [made.outcomes["elm"].decision.cross_validated for made in (first, second)]
    assert decisions[0] != decisions[1]
    assert len(chooser_at(first).judged_rows) == np.count_nonzero(kept_out)


def test_own_trees_vote_out_of_bag_by_patient():
    wood = study()
    made = federation(wood, cohort(wood, 320, seed=3, rows_per_patient=3))
    house = made.houses["elm"]
    training, unseen = house.cohort.rows(Part.TRAINING), house.memory["unseen"]
    for patient in np.unique(training.patients):
        assert len(np.unique(unseen[training.patients == patient], axis=0)) == 1
    assert 0.2 < unseen.mean() < 0.5  # a bootstrap leaves out about 37 of 100


def test_a_vote_in_cross_validation_has_no_tree_that_knows_the_patient():
    chooser = chooser_at(federation(study(choice={"judges": 0})))
    training = chooser.cohort.rows(Part.TRAINING)
    own = chooser.walker.votes(training.X)[:, chooser.pool.own]
    honest = [own[row, unseen].mean() for row, unseen in enumerate(chooser.pool.unseen) if unseen.any()]
    assert chooser.judged["local"] == pytest.approx(honest)


def test_a_candidate_of_few_trees_does_not_cost_the_others_any_row():
    algorithm = {"name": "bofrf", "taus": (0.0, 0.45, 0.5, 0.55, 0.6)}  # only some own trees are as good
    wood = study(algorithm=algorithm, choice={"judges": 0})
    chooser = chooser_at(federation(wood))
    assert len(chooser.judged_rows) == np.count_nonzero(chooser.pool.unseen.any(axis=1))
    assert any(0 < np.count_nonzero(chooser.weights(f"F_n tau {tau:g}")) < 3 for tau in wood.algorithm.taus)


def test_trees_that_only_judge_speak_with_the_own_ones_and_count_as_much_as_those_do_in_the_model(alike):
    chooser = chooser_at(alike)
    pool, rows = chooser.pool, chooser.cohort.rows(Part.TRAINING)
    assert len(pool.judges) == 11  # 1.72 for each of 6
    every, others = chooser.walker.votes(rows.X), ~pool.ours
    judging = Walker(pool.judges, len(rows.columns)).votes(rows.X)
    weights, expected = chooser.weights("fedrf"), []
    for row in range(len(rows)):
        own, beside = every[row, pool.own][pool.unseen[row]], judging[row][pool.judges_unseen[row]]
        home = np.concatenate([own, beside]).mean()
        expected.append((weights[others] @ every[row, others] + weights[pool.own].sum() * home) / weights.sum())
    assert chooser.judged["fedrf"] == pytest.approx(expected)


def test_they_are_in_no_model_and_in_no_forest_that_leaves(alike):
    pool = chooser_at(alike).pool
    judging = {*pool.judges.digests}
    assert not judging & {*pool.forest.digests}
    assert not judging & {*alike.outcomes["elm"].model.forest_.digests}


def test_where_candidates_are_judged_on_a_validation_part_nobody_else_need_judge():
    made = federation(study(split={"validation": 0.25}, choice={"fewest_patients": 2}))
    assert len(chooser_at(made).pool.judges) == 0


# ---------------------------------------------------------------------------------------------------------------
# The guard and the question


def test_federated_is_the_default_among_sites_of_one_kind(alike):
    assert [outcome.decision.name for outcome in alike.outcomes.values()] == ["bofrf"] * 4
    assert alike.outcomes["elm"].decision.reason == "federated is the default"


@pytest.fixture(scope="module")
def another_concept() -> Wood:
    wood = study(forest={"trees": 20})
    return federation(wood, cohort(wood, 400, seed=3, concept=(0.3, 0, 6, 6)))


def test_the_guard_keeps_the_local_forest_where_it_is_better_beyond_noise(another_concept):
    decision = another_concept.outcomes["elm"].decision
    assert decision.name == "local"
    assert decision.reason.startswith("the local forest is better beyond noise (by 0.")
    assert decision.question is None
    assert set(another_concept.outcomes["elm"].model.owners_) == {"elm"}


def test_the_guard_at_one_site_leaves_the_others_federated(another_concept):
    assert another_concept.outcomes["ash"].decision.name == "bofrf"


@pytest.mark.parametrize(("push", "chosen"), [(0.05, "bofrf"), (0.2, "local")])
def test_a_lead_of_the_local_forest_counts_only_beyond_one_standard_error(alike, push, chosen):
    chooser = chooser_at(alike)
    truth, votes = 2.0 * chooser.judged_rows.y - 1, chooser.judged["bofrf"]
    chooser.judged["local"] = votes + push * truth + np.random.default_rng(0).normal(0, 0.2, len(votes))
    lead, error = chooser._lead_of_local("bofrf")
    assert (lead > 0, lead > error) == (True, chosen == "local")
    assert chooser.decide().name == chosen


@pytest.mark.parametrize("metric", ["auprc", "mcc"])
def test_the_guard_works_by_the_study_s_metric(metric):
    wood = study(forest={"trees": 20}, choice={"metric": metric})
    assert outcome_at_elm(wood, cohort(wood, 300, seed=3, concept=(0.3, 0, 6, 6))).decision.name == "local"
    assert outcome_at_elm(wood, cohort(wood, 120, seed=3)).decision.name == "bofrf"


def test_the_standard_error_of_a_lead_is_delong_s_for_one_row_per_patient(another_concept):
    chooser = chooser_at(another_concept)
    y, votes = chooser.judged_rows.y, chooser.judged
    local, other, error = delong(y, votes["local"], votes["bofrf"])
    assert chooser._lead_of_local("bofrf") == (pytest.approx(local - other), error)


def test_it_is_larger_for_several_rows_per_patient_that_say_the_same():
    wood = study()
    elm = cohort(wood, 200, seed=3)
    twice = Cohort(elm.columns, elm.present, *(np.repeat(each, 2, axis=0) for each in (elm.X, elm.y)), *(
        np.repeat(each, 2) for each in (elm.patients, elm.part)
    ))  # fmt: skip
    chooser = chooser_at(federation(wood, twice))
    rows = chooser.judged_rows
    naive = delong(rows.y, chooser.judged["local"], chooser.judged["bofrf"])[2]
    assert chooser._lead_of_local("bofrf")[1] > 1.15 * naive


@pytest.fixture(scope="module")
def reversed_labels() -> Wood:
    wood = study()
    return federation(wood, cohort(wood, 200, seed=3, concept=(-4, -2, 0, 0)))


def test_reversed_labels_raise_a_question_instead_of_a_choice(reversed_labels):
    decision = reversed_labels.outcomes["elm"].decision
    assert "is the label coded the other way round?" in decision.question
    assert decision.name == "local"


def test_the_other_sites_are_not_asked(reversed_labels):
    assert reversed_labels.outcomes["ash"].decision.question is None


def test_with_fewer_than_ten_patients_of_a_class_the_default_stands_and_says_why():
    wood = study()
    elm = cohort(wood, seed=3, base=-5.5)
    positives = int(elm.rows(Part.TRAINING).y.sum())
    assert 0 < positives < 10
    outcome = outcome_at_elm(wood, elm)
    assert outcome.decision.name == "bofrf"
    assert outcome.decision.reason.startswith(f"{positives} patients of one class are too few to choose on")
    assert "too few patients of one class to calibrate on" in outcome.decision.notes[0]


@pytest.fixture(scope="module")
def rare():
    """The model of a site with too few ill patients to choose on, its votes on many more, and their outcomes."""
    wood = study()
    model, many = outcome_at_elm(wood, cohort(wood, seed=3, base=-5.5)).model, cohort(wood, 3000, seed=4, base=-5.5)
    return model, model.votes(many.X, many.present), many.y


def test_so_few_are_enough_to_take_the_others_base_rates_out_of_the_probabilities(rare):
    model, votes, y = rare
    said = metrics.calibrated(votes, *model.calibration_)
    assert model.calibration_[0] == 1
    assert abs(said.mean() - y.mean()) < 0.5 * abs(votes.mean() - y.mean())
    assert metrics.brier(y, said) < metrics.brier(y, votes)


def test_who_is_called_does_not_depend_on_so_few(rare):
    model, votes, _ = rare
    np.testing.assert_array_equal(metrics.calibrated(votes, *model.calibration_) >= model.threshold_, votes >= 0.5)


def test_the_personalised_selection_does_not_choose_on_so_few_either():
    wood = study()
    made = federation(wood, cohort(wood, seed=3, base=-5.5))
    assert chooser_at(made).personalised() == "bofrf"


# ---------------------------------------------------------------------------------------------------------------
# Candidates


def test_the_personalised_selection_tries_every_tau_with_all_trees_and_with_its_own(alike):
    tried = set(alike.outcomes["elm"].decision.cross_validated)
    taus = ("0", "0.1", "0.15", "0.2", "0.25", "0.3", "0.4")
    assert {f"{kind} tau {tau}" for kind in ("F", "F_n") for tau in taus} <= tried
    assert {"local", "fedrf", "bofrf", "F", "F_n"} <= tried


def test_a_study_may_let_the_personalised_selection_decide():
    decision = outcome_at_elm(study(algorithm={"name": "bofrf", "selection": "personalised"})).decision
    best = max((name for name in decision.cross_validated if name[0] == "F"), key=decision.cross_validated.get)
    assert decision.name in (best, "local")


def test_the_candidate_that_is_shown_as_personalised_is_the_best_in_cross_validation(alike):
    chooser = chooser_at(alike)
    assert chooser.qualities[chooser.personalised()] == max(chooser.qualities[name] for name in chooser.rules.personal)


def test_own_trees_alone_are_a_candidate(alike):
    chooser = chooser_at(alike)
    assert np.flatnonzero(chooser.weights("F_n")).tolist() == chooser.pool.own.tolist()


def test_a_site_whose_columns_nobody_else_has_votes_with_its_own_trees_and_says_so():
    wood = study(forest={"absent": "abstain"})
    elm = cohort(wood, seed=3, concept=(0, 0, 0, 4), absent=(0, 1, 2))
    people = cohorts(wood, NAMES, absent=(3,)) | {"elm": elm}
    made = Wood(wood, people)
    made.run()
    outcome = made.outcomes["elm"]
    assert set(outcome.model.owners_) == {"elm"}
    assert "no tree of the round has a say here: own trees vote" in outcome.decision.notes
    assert outcome.auroc["chosen"].value > 0.6


@pytest.mark.parametrize("largest", [0.2, 0.4])
def test_no_other_site_outweighs_the_cap_even_where_some_trees_abstain(largest):
    wood = study(privacy={"largest_share": largest}, quorum=2, forest={"absent": "abstain"})
    made = federation(wood, cohort(wood, seed=3, absent=(0,)))
    for name, outcome in made.outcomes.items():
        foreign = [given["weight"] for site, given in outcome.credit.items() if site != name]
        assert max(foreign) <= largest + 1e-9


# ---------------------------------------------------------------------------------------------------------------
# Calibration and thresholds


def test_platt_scaling_mends_a_site_whose_outcome_is_rarer_than_elsewhere():
    brier = {}
    for calibrate in (True, False):
        wood = study(choice={"calibrate": calibrate})
        elm = cohort(wood, 500, seed=3, base=-2.5)
        brier[calibrate] = outcome_at_elm(wood, elm).figures["brier"].value
    assert brier[True] < 0.95 * brier[False]


def test_calibration_is_part_of_the_model(alike):
    outcome = alike.outcomes["elm"]
    assert outcome.model.calibration_ == outcome.decision.calibration
    assert outcome.model.threshold_ == outcome.decision.threshold


@pytest.mark.parametrize("wanted", [0.8, 0.95])
def test_a_threshold_may_aim_at_a_sensitivity(wanted):
    made = federation(study(choice={"threshold": "sensitivity", "sensitivity": wanted}))
    chooser, decision = chooser_at(made), made.outcomes["elm"].decision
    rows = chooser.judged_rows
    found = metrics.calibrated(chooser.judged[decision.name], *decision.calibration)[rows.y == 1] >= decision.threshold
    assert wanted <= found.mean() < wanted + 0.05


def test_a_threshold_may_aim_at_youden_s_index():
    made = federation(study(choice={"threshold": "youden", "calibrate": False}))
    chooser, decision = chooser_at(made), made.outcomes["elm"].decision
    assert decision.threshold == metrics.best_threshold(chooser.judged_rows.y, chooser.judged[decision.name], "youden")


# ---------------------------------------------------------------------------------------------------------------
# What is reported


def test_too_few_test_patients_give_a_note_instead_of_figures():
    wood = study(choice={"fewest_test_patients": 40})
    outcome = outcome_at_elm(wood)
    assert set(outcome.auroc) == {"local", "fedrf", "bofrf", "personalised", "chosen"}
    assert set(outcome.auroc.values()) == {None}
    assert (outcome.figures, outcome.gain, outcome.calibration) == ({}, {}, None)
    assert "test patients of one class are too few for figures (the study wants 40)" in outcome.decision.notes[-1]
    assert outcome.out_of_bag is not None


def test_figures_are_those_of_the_model_that_the_site_keeps(alike):
    outcome, test = alike.outcomes["elm"], alike.houses["elm"].cohort.rows(Part.TEST)
    votes = outcome.model.votes(test.X, test.present)
    p = metrics.calibrated(votes, *outcome.decision.calibration)
    assert outcome.auroc["chosen"].value == pytest.approx(metrics.auroc(test.y, votes))
    assert outcome.figures["brier"].value == pytest.approx(metrics.brier(test.y, p))
    called = metrics.confusion(test.y, p >= outcome.model.threshold_)
    assert outcome.figures["sensitivity"].value == pytest.approx(metrics.sensitivity(called))


def test_every_figure_lies_in_its_interval(alike):
    for figure in [*alike.outcomes["elm"].figures.values(), *alike.outcomes["elm"].auroc.values()]:
        assert figure.low <= figure.value <= figure.high


def test_the_gain_is_paired_so_that_a_local_choice_gains_exactly_nothing(another_concept):
    gain = another_concept.outcomes["elm"].gain["auroc"]
    assert (gain.value, gain.low, gain.high) == pytest.approx((0, 0, 0), abs=1e-9)


def test_the_gain_is_the_chosen_model_s_lead_over_the_local_forest(alike):
    outcome = alike.outcomes["elm"]
    lead = outcome.auroc["chosen"].value - outcome.auroc["local"].value
    assert outcome.gain["auroc"].value == pytest.approx(lead)
    spread = outcome.auroc["chosen"].high - outcome.auroc["local"].low
    assert outcome.gain["auroc"].high - outcome.gain["auroc"].low < spread  # narrower than two unpaired intervals


def test_credit_shares_out_the_whole_weight(alike):
    credit = alike.outcomes["elm"].credit
    assert set(credit) == {*NAMES, "elm"}
    assert sum(given["weight"] for given in credit.values()) == pytest.approx(1)


def test_credit_says_what_the_vote_would_lose_without_a_site(another_concept):
    credit = another_concept.outcomes["elm"].credit
    assert credit["elm"]["gain"] > 0.2  # without its own trees the local forest is nothing
    assert credit["ash"] == {"weight": 0, "gain": 0}


def test_test_figures_are_told_to_the_coordinator_only_if_the_study_says_so():
    told = {}
    for share in (True, False):
        made = federation(study(privacy={"share_metrics": share}))
        told[share] = made.site("elm").answer("finish", made.order("finish", "elm")).figures
    assert set(told[True]) == {"auroc", "auprc", "brier", "mcc", "sensitivity", "specificity"}
    assert told[False] == {}


def test_only_weights_that_follow_the_own_counts_are_weighed_again_for_every_fold(alike):
    site, order = alike.site("elm"), alike.order("finish", "elm")
    pool = site.pool(order.manifest)
    candidates, rules = site.candidates(pool, order)
    weighed = []

    def counting(candidate):
        if not callable(candidate.weigh):
            return candidate
        return replace(candidate, weigh=lambda own: weighed.append(candidate.name) or candidate.weigh(own))

    Chooser(alike.study, site.house.cohort, pool, [counting(one) for one in candidates], rules)
    repeats, folds = pool.counts.shape[:2]
    assert {*weighed} == {"bofrf", "bofrf own trees", "F", "F_n"}
    assert all(weighed.count(name) == repeats * folds for name in weighed)
