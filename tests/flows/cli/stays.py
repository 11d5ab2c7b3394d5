"""A study of stays, and made-up patients who had some."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from spinney.flows.cli import main
from tests.made_up import encounter, observation, patient

PEOPLE = 40
STUDY = """
name: stays
cohort:
  index: {kind: Encounter, classes: [IMP], statuses: [finished], at: end}
features:
  - {name: age, kind: continuous, range: [0, 120], unit: a, source: {patient: age}}
  - {name: sex, kind: categorical, categories: [female, male], source: {patient: sex}}
  - name: weight
    kind: continuous
    range: [20, 300]
    unit: kg
    source: {kind: Observation, codes: ["http://loinc.org|29463-7"], statistic: last, window: 365d}
label: {name: readmitted, source: {outcome: index-event, horizon: 30d}}
privacy: {smallest_cohort: 10}
split: {test: 0.2}
"""


def resources(unit: str = "kg") -> list[dict[str, Any]]:
    """Stays in March, every other one with a readmission in April, and much later a visit that makes all ripe."""
    made: list[dict[str, Any]] = [encounter("2023-12-01", "2023-12-02", who="p0", kind="AMB")]
    for number in range(PEOPLE):
        who = f"p{number}"
        made += [patient(who, f"19{40 + number}-01-01", "female" if number % 3 else "male")]
        made += [encounter("2023-03-01", "2023-03-05T10:00:00Z", who=who)]
        made += [observation("2023-03-02", 60.0 + number, unit, who=who)] if number % 5 else []
        made += [encounter("2023-03-20", "2023-03-22T10:00:00Z", who=who)] if number % 2 else []
    return made


def spinney(*words: object, answers: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], input=answers)
