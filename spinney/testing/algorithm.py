"""What every algorithm promises. A test class inherits it, and gives a study that names the algorithm.

Between houses an algorithm's two halves see nothing but bytes, sites answer in any order, every process may be killed
after any step and started again, and a coordinator may ask what makes no sense. The model is the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from spinney.errors import Refused, RoundVoid
from spinney.federation.messages import Invitation
from spinney.federation.seam import Algorithm, Message
from spinney.house import encoding
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort
from spinney.rows.encode import columns_of
from spinney.rows.parts import parts_by_seed
from spinney.study.study import Study
from spinney.trial.simulate import InProcess, LocalMail, Simulation, houses_of, simulate

SITES = ("ash", "beech", "cedar", "elm")
Progress = Callable[[str, int, int], None]


def made_up_cohorts(study: Study, rows: int = 150, sites: Sequence[str] = SITES) -> dict[str, Cohort]:
    """Patients of some sites whose outcome depends on the study's first columns. Nobody of them lives."""
    columns = columns_of(study.features)
    cohorts = {}
    for number, site in enumerate(sites):
        rng = np.random.default_rng([number, 0xC0DE])
        X = rng.random((rows, len(columns)))
        X = np.round(X) if all(column.feature.range is None for column in columns) else X
        risk = X[:, : min(3, len(columns))].sum(axis=1) + 0.3 * rng.standard_normal(rows)
        y = (risk > np.median(risk)).astype(np.int8)
        present = np.ones(len(columns), dtype=bool)
        part = parts_by_seed(y, study.split)
        cohorts[site] = Cohort(columns, present, X.astype(np.float32), y, np.arange(rows), part)
    return cohorts


class OverBytes(InProcess):
    """Houses that see bytes only, and are killed and started again before every answer; what is remembered stays."""

    def _answer(self, site: str, step: str, order: Message) -> Message | None:
        self._parts[site] = self._algorithm.site_part(self._houses[site])
        reply = super()._answer(site, step, encoding.decode_message(encoding.encode_message(order)))
        return None if reply is None else encoding.decode_message(encoding.encode_message(reply))


class AlgorithmContract:
    """The tests."""

    @pytest.fixture
    def cohorts(self, study: Study) -> Mapping[str, Cohort]:
        """The patients to run it on; made up, unless a test class has others."""
        return made_up_cohorts(study)

    @pytest.fixture
    def algorithm(self, study: Study) -> Algorithm:
        """The one that the study names."""
        found: Algorithm = ALGORITHMS[study.algorithm.name]
        return found

    def test_it_is_found_by_the_name_that_it_has(self, study: Study) -> None:
        assert study.algorithm.name in ALGORITHMS
        assert Study.model_validate(study.model_dump(mode="json")).digest == study.digest

    def test_its_settings_tell_what_they_mean(self, algorithm: Algorithm) -> None:
        assert algorithm.settings.__doc__
        assert [name for name, field in algorithm.settings.model_fields.items() if not field.description] == []

    def test_every_site_has_a_model_that_votes(self, study: Study, cohorts: Mapping[str, Cohort]) -> None:
        result = simulate(study, cohorts)
        assert set(result.outcomes) == set(cohorts)
        for site, outcome in result.outcomes.items():
            votes = outcome.model.votes(cohorts[site].X, cohorts[site].present)
            assert np.isfinite(votes).all()

    def test_the_order_of_answers_and_the_number_of_workers_change_nothing(
        self, study: Study, cohorts: Mapping[str, Cohort]
    ) -> None:
        assert models(simulate(study, cohorts, workers=4)) == models(simulate(study, cohorts))

    def test_it_depends_on_the_round_and_the_patients_only(self, study: Study, cohorts: Mapping[str, Cohort]) -> None:
        again = {site: cohorts[site] for site in reversed([*cohorts])}
        assert models(simulate(study, again)) == models(simulate(study, cohorts))

    def test_as_bytes_between_houses_that_are_killed_after_every_step_it_gives_the_same_model(
        self, study: Study, cohorts: Mapping[str, Cohort], algorithm: Algorithm
    ) -> None:
        houses = houses_of(study, cohorts, LocalMail())
        federation = OverBytes(study, houses, algorithm=algorithm)
        digest = algorithm.coordinate(federation, study)
        here = simulate(study, cohorts)
        assert federation.left_out == {}
        assert digest == here.model_digest
        assert {site: house.outcome.model.digest for site, house in houses.items() if house.outcome} == {
            site: outcome.model.digest for site, outcome in here.outcomes.items()
        }

    def test_whenever_a_site_is_lost_the_others_end_or_go_on(self, study: Study, cohorts: Mapping[str, Cohort]) -> None:
        for step in steps_of(study, cohorts):
            try:
                result = simulate(study, cohorts, lost={"beech": step})
            except RoundVoid:
                continue
            assert "beech" in result.left_out, step

    def test_a_step_that_comes_too_early_is_refused(
        self, study: Study, cohorts: Mapping[str, Cohort], algorithm: Algorithm
    ) -> None:
        asked: dict[str, Message] = {}
        simulate(study, cohorts, algorithm=noting(algorithm, asked))
        for step, order in asked.items():
            if isinstance(order, Invitation) or step in algorithm.site_part.first_steps:
                continue
            fresh = houses_of(study, cohorts, LocalMail())["ash"]
            with pytest.raises(Refused):
                algorithm.site_part(fresh).answer(step, order)

    def test_an_order_of_another_kind_is_refused(
        self, study: Study, cohorts: Mapping[str, Cohort], algorithm: Algorithm
    ) -> None:
        part = algorithm.site_part(houses_of(study, cohorts, LocalMail())["ash"])
        for step in part.steps:
            with pytest.raises(Refused):
                part.answer(step, Message())

    def test_a_site_below_the_smallest_cohort_stays_out(self, study: Study, cohorts: Mapping[str, Cohort]) -> None:
        few = cohorts["ash"].at(np.arange(study.privacy.smallest_cohort - 1))
        result = simulate(study, {**cohorts, "ash": few})
        assert "ash" in result.left_out
        assert "ash" not in result.outcomes


def models(result: Simulation) -> tuple[str, dict[str, str]]:
    """What came out: the common model and every site's."""
    return result.model_digest, {site: outcome.model.digest for site, outcome in result.outcomes.items()}


def steps_of(study: Study, cohorts: Mapping[str, Cohort]) -> list[str]:
    """What the coordinator asks, in this order."""
    steps: dict[str, None] = {}
    simulate(study, cohorts, progress=lambda step, _done, _asked: steps.setdefault(step))
    return [*steps]


def noting(algorithm: Algorithm, asked: dict[str, Message]) -> Algorithm:
    """The same algorithm, whose site `ash` notes what it is asked."""

    class Noting(algorithm.site_part):  # type: ignore[name-defined,misc]
        def answer(self, step: str, order: Message) -> Any:
            if self.house.name == "ash":
                asked.setdefault(step, order)
            return super().answer(step, order)

    return Algorithm(algorithm.settings, Noting, algorithm.coordinate, algorithm.messages)
