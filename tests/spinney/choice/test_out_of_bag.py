"""What a site is told whose test patients are too few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.choice import metrics
from spinney.choice.evidence import evidence_of, headline
from spinney.choice.out_of_bag import cross_fitted, out_of_bag
from spinney.rows.parts import folds
from tests.spinney.choice.choosers import chooser_at
from tests.spinney.in_process import Wood, cohort, cohorts, study

WANTED = {"fewest_test_patients": 40}


@pytest.fixture(scope="module")
def small() -> Wood:
    made = Wood(study(choice=WANTED), cohorts(study(choice=WANTED)))
    made.run()
    return made


def test_every_site_gets_figures_marked_as_out_of_bag(small):
    for outcome in small.outcomes.values():
        assert outcome.figures == {}
        assert {*outcome.out_of_bag.figures} == {"local", "chosen"}
        known = outcome.out_of_bag.figures["chosen"]
        assert {*known} == {"auroc", "auprc", "brier", *metrics.THRESHOLDED}
        assert all(one.low <= one.value <= one.high for one in known.values())
        assert "out_of_bag_auroc" in headline(outcome)
        assert "test_auroc" not in headline(outcome)
        assert evidence_of(outcome)["out_of_bag"]["figures"]["local"]["auroc"]["value"] > 0.5


def test_they_rank_by_the_votes_that_candidates_were_compared_with(small):
    chooser, outcome = chooser_at(small), small.outcomes["elm"]
    for label, name in (("local", "local"), ("chosen", outcome.decision.name)):
        expected = metrics.auroc(chooser.judged_rows.y, chooser.judged[name])
        assert outcome.out_of_bag.figures[label]["auroc"].value == pytest.approx(expected)


def test_a_patient_has_no_say_in_its_own_calibration_and_threshold(small, monkeypatch):
    chooser = chooser_at(small)
    rows = chooser.judged_rows
    fold = folds(rows.y, rows.patients, chooser.study.choice.folds, chooser.study.split.seed)
    monkeypatch.setattr("spinney.choice.out_of_bag.folds", lambda *_: fold)
    before, here = cross_fitted(chooser, "local"), fold == 0
    chooser.judged_rows = replace(rows, y=np.where(here, 1 - rows.y, rows.y).astype(np.int8))
    after = cross_fitted(chooser, "local")
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one[here], other[here])
    assert not np.array_equal(before[0][~here], after[0][~here])


def test_of_a_handful_of_patients_nothing_is_told():
    wood = study(choice=WANTED)
    made = Wood(wood, {**cohorts(wood), "elm": cohort(wood, seed=3, base=-7)})
    made.run()
    chooser = chooser_at(made)
    assert chooser.patients < 5
    assert out_of_bag(chooser, made.outcomes["elm"].decision) is None


def test_a_published_forest_is_not_calibrated():
    wood = study(algorithm={"name": "bofrf", "preset": "published"}, choice=WANTED)
    made = Wood(wood, cohorts(wood))
    made.run()
    assert {outcome.decision.calibration for outcome in made.outcomes.values()} == {None}
    chooser = chooser_at(made)
    assert np.array_equal(cross_fitted(chooser, "bofrf")[0], chooser.judged["bofrf"])
