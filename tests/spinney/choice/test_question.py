"""When a person is asked about the label, and when it may be chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.choice.question import Correlation, correlation
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, join_forests
from tests.spinney.in_process import Wood, cohort, cohorts, study

CUTS = (0.2, 0.5, 0.8, 0.5)


@pytest.fixture(scope="module")
def walker() -> Walker:
    """A stump per feature: yes above the cut."""
    return Walker(
        join_forests(
            [
                Forest(
                    np.array([place, LEAF, LEAF], np.int16),
                    np.array([cut, 0, 0]),
                    np.zeros(3, bool),
                    np.array([0, 0, 1.0]),
                )
                for place, cut in enumerate(CUTS)
            ]
        ),
        4,
    )


@pytest.fixture(scope="module")
def rows():
    return cohort(study(), 400, concept=(-1, 0, 0.5, 0))


def plainly(rows) -> float:
    said = np.array(CUTS) < rows.X
    return float(np.mean([np.corrcoef(said[:, place], rows.y)[0, 1] for place in range(4)]))


def test_the_mean_is_that_of_plain_correlations(walker, rows):
    assert correlation(walker, rows, np.arange(4), 0.5).mean == pytest.approx(plainly(rows))


def test_the_error_is_what_leaving_out_one_patient_after_the_other_gives(walker, rows):
    left = [plainly(rows.where(rows.patients != patient)) for patient in rows.patients]
    jackknife = np.sqrt((len(left) - 1) / len(left) * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert correlation(walker, rows, np.arange(4), 0.5).error == pytest.approx(jackknife, rel=0.02)


def test_rows_of_one_patient_are_no_more_than_one_patient(walker, rows):
    twice = rows.at(np.repeat(np.arange(len(rows)), 2))
    once, again = (correlation(walker, one, np.arange(4), 0.5) for one in (rows, twice))
    assert (again.mean, again.error) == (pytest.approx(once.mean), pytest.approx(once.error))


def test_a_tree_that_says_the_same_to_everybody_tells_nothing(rows):
    leaf = Forest(np.array([LEAF], np.int16), np.zeros(1), np.zeros(1, bool), np.array([0.9]))
    told = correlation(Walker(leaf, 4), rows, np.arange(1), 0.5)
    assert (told.mean, told.error, told.question(4)) == (0.0, 0.0, None)


@pytest.mark.parametrize(("mean", "asked"), [(-0.10, False), (-0.14, False), (-0.16, True), (0.3, False)])
def test_beyond_noise_is_about_three_standard_errors(mean, asked):
    # Student's t with 199 degrees of freedom falls below -3.06 once in 800 draws: 0.005 / 4 sites
    assert (Correlation(mean, 0.05, 200).question(4) is not None) == asked


def test_the_more_sites_are_looked_at_the_clearer_it_must_be():
    told = Correlation(-0.16, 0.05, 200)
    assert told.question(4) is not None
    assert told.question(40) is None


def test_the_question_names_its_figures():
    assert "(mean correlation -0.16, standard error 0.05)" in str(Correlation(-0.16, 0.05, 200).question(4))


@pytest.mark.parametrize("preset", ["spinney", "published"])
def test_reversed_labels_raise_the_question_unless_the_study_runs_as_published(preset):
    wood = study(algorithm={"name": "bofrf", "preset": preset})
    people = cohorts(wood, rows=300)
    people["elm"] = replace(people["elm"], y=(1 - people["elm"].y).astype(np.int8))
    made = Wood(wood, people)
    made.run()
    asked = {name for name, outcome in made.outcomes.items() if outcome.decision.question}
    assert asked == ({"elm"} if preset == "spinney" else set())
