"""What each rule leaves out, in index events and in patients, is what the slow reference counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from spinney.cohort.attrition import Attrition
from spinney.cohort.pull import pull
from spinney.cohort.pull_report import PullReport
from spinney.configuration.site import SiteSettings
from spinney.errors import CohortRejected
from tests.oracle.events import NOW
from tests.oracle.group_records import group_case_of
from tests.oracle.records import FhirCase, Records
from tests.oracle.row_records import RowCase, RowRecords
from tests.oracle.rules import case_of
from tests.oracle.steps import Counted, Step, counted

RULES, GROUPS = range(100, 110), range(100, 103)


def made(case: FhirCase | RowCase, folder: Path) -> Attrition | None:
    settings = {"name": "site", "home": folder / "home", "timezone": case.timezone, "validate": "none"}
    site = SiteSettings.model_validate({**settings, "source": case.laid(folder)})
    report = PullReport()
    with suppress(CohortRejected):
        pull(case.study, site.pull_plan(case.study.name), now=NOW, report=report)
    return report.attrition


def as_counted(attrition: Attrition | None) -> Counted | None:
    if attrition is None:
        return None
    steps = [Step(one.reason, one.events, one.touched, one.patients) for one in attrition.losses]
    return Counted(steps, attrition.rows, attrition.patients)


@pytest.mark.parametrize(
    "case", [Records(3).case(), RowRecords(4).row_case(), *map(case_of, RULES), *map(group_case_of, GROUPS)]
)
def test_every_step_leaves_out_what_the_reference_leaves_out(case: FhirCase | RowCase, tmp_path: Path) -> None:
    assert as_counted(made(case, tmp_path)) == counted(case.study, case.read())


def reasons(steps: Sequence[Step]) -> Counter[str]:
    return Counter(one.rule for one in steps if one.events)


def test_the_cohorts_lose_somebody_to_most_rules_and_patients_less_often_than_index_events() -> None:
    found = [one for one in (counted(case.study, case.read()) for case in map(case_of, RULES)) if one]
    steps = [step for one in found for step in one.steps]
    assert len(reasons(steps)) > 10
    assert any(step.events and not step.patients for step in steps)
    assert any(step.events and step.touched > step.patients > 0 for step in steps)
