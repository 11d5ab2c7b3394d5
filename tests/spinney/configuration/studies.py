"""Two study files without a mistake."""

from __future__ import annotations

from pathlib import Path

from spinney.configuration.study_file import read_study
from spinney.study.study import Study

GOOD = """\
name: heart
features:
  - {name: age, kind: continuous, range: [18, 100]}
  - name: smoker
    kind: binary
  - name: nyha
    kind: categorical
    categories: [mild, no, "1"]
label:
  name: died
forest:
  trees: 50
"""


CLINICAL = """\
name: readmission
features:
  - {name: age, kind: continuous, unit: a, range: [18, 110], source: {patient: age}}
  - name: hba1c
    kind: continuous
    unit: "%"
    range: [3, 20]
    source: {kind: Observation, codes: [http://loinc.org|4548-4], statistic: last, window: 365d}
label: {name: readmitted, source: {outcome: index-event, horizon: 30d}}
cohort:
  index: {kind: Encounter, classes: [IMP], at: end}
  since: 2020-01-01
  quality:
    largest_missing: {hba1c: 0.8}
    rules: [{name: old enough, column: age, comparison: ">", than: 17}]
"""


def study_from(tmp_path: Path, text: str) -> Study:
    file = tmp_path / "study.yaml"
    file.write_text(text)
    return read_study(file)
