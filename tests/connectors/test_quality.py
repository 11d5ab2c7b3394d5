"""The study's contract: every rule catches what it is for, says how often, and never which value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spinney.cohort.check_result import CheckResult, check_cohort
from spinney.cohort.vault import Vault
from spinney.connectors.great_expectations.quality import QualityReport, RuleResult, check_table
from spinney.errors import CohortRejected
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

ROOT = Path(__file__).parents[2]
ROWS = 60
CANARY = 77777.125
CANARY_WORD = "canary-sees-everything"
RULES = [
    {"name": "diastolic below systolic", "column": "diastolic", "comparison": "<", "than": "systolic"},
    {"name": "pulse is not 80", "column": "pulse", "comparison": "!=", "than": 80, "mostly": 0.5},
    {"name": "adults", "column": "age", "comparison": ">=", "than": 18, "severity": "critical"},
]


def number(name: str, low: float, high: float, **more: Any) -> dict[str, Any]:
    source = {"kind": "Observation", "codes": [f"s|{name}"], "statistic": "last"}
    return {"name": name, "kind": "continuous", "range": [low, high], "source": source, **more}


STUDY = Study.model_validate(
    {
        "name": "contract",
        "features": [
            number("age", 0, 120) | {"source": {"patient": "age"}},
            {"name": "sex", "kind": "categorical", "categories": ["female", "male"], "source": {"patient": "sex"}},
            number("systolic", 50, 250, unit="mm[Hg]"),
            number("diastolic", 30, 150),
            number("pulse", 30, 220),
            {
                "name": "smoker",
                "kind": "binary",
                "source": {"kind": "Condition", "codes": ["s|smoker"], "statistic": "exists"},
            },
        ],
        "label": {"name": "died", "source": {"outcome": "death", "horizon": "8h"}},
        "cohort": {
            "index": {"kind": "Encounter"},
            "quality": {"largest_missing": {"pulse": 0.1}, "largest_quarantine": 0.02, "rules": RULES},
        },
        "privacy": {"smallest_cohort": 30},
    }
)


def good() -> dict[str, list[Any]]:
    """A table that keeps every rule."""
    return {
        "patient": [f"p{row}" for row in range(ROWS)],
        "index_time": [1_600_000_000_000_000 + row for row in range(ROWS)],
        "age": [20.0 + row for row in range(ROWS)],
        "sex": ["female", "male"] * (ROWS // 2),
        "systolic": [120.0 + row for row in range(ROWS)],
        "diastolic": [70.0 + row / 2 for row in range(ROWS)],
        "pulse": [60.0 + row for row in range(ROWS)],
        "smoker": [0.0, 1.0] * (ROWS // 2),
        "died": [0, 0, 1] * (ROWS // 3),
    }


def table(**changed: list[Any]) -> pa.Table:
    columns = {**good(), **changed}
    times = pa.array(columns.pop("index_time"), pa.timestamp("us"))
    return pa.table({"patient": columns.pop("patient"), "index_time": times, **columns})


def first(values: list[Any], *instead: Any) -> list[Any]:
    """A column whose first rows are others."""
    return [*instead, *values[len(instead) :]]


@dataclass
class Counts:
    read: Counter[str] = field(default_factory=lambda: Counter(Observation=1000))
    quarantined: Counter[tuple[str, str]] = field(default_factory=Counter)


def failures(report: QualityReport) -> set[tuple[str, str, int, int]]:
    return {(one.severity, one.rule, one.failed, one.checked) for one in report.results if not one.passed}


def test_a_good_table_keeps_every_rule_and_may_take_part() -> None:
    report = check_table(table(), STUDY, Counts())
    assert failures(report) == set()
    report.require()
    assert {"diastolic below systolic", "at least 30 patients"} <= {one.rule for one in report.results}


GOOD = good()
PRESSURE = "systolic is between 50 and 250 mm[Hg]"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"systolic": first(GOOD["systolic"], 999.0, 251.0)}, {("warning", PRESSURE, 2, 60)}),
        (
            {"systolic": [one / 7.5 for one in GOOD["systolic"]], "diastolic": [None] * ROWS},  # kPa
            {("warning", PRESSURE, 60, 60), ("critical", f"at least half of {PRESSURE}", 60, 60)},
        ),
        ({"sex": first(GOOD["sex"], "unknown")}, {("warning", "sex is one of female, male", 1, 60)}),
        ({"smoker": first(GOOD["smoker"], 0.5)}, {("warning", "smoker is one of 0, 1", 1, 60)}),
        (
            {"pulse": first(GOOD["pulse"], *[None] * 7)},
            {("warning", "pulse is missing in at most 10% of the rows", 7, 60)},
        ),
        ({"diastolic": first(GOOD["diastolic"], 149.0)}, {("warning", "diastolic below systolic", 1, 60)}),
        ({"diastolic": first(GOOD["diastolic"], None)}, set()),
        ({"pulse": [80.0] * ROWS}, {("warning", "pulse is not 80", 60, 60)}),
        ({"age": first(GOOD["age"], 17.0)}, {("critical", "adults", 1, 60)}),
        ({"died": [0] * ROWS}, {("critical", "died is yes in some rows and no in others", 60, 60)}),
        ({"died": first(GOOD["died"], None)}, {("critical", "died is known", 1, 60)}),
        ({"patient": ["p1", "p2"] * (ROWS // 2)}, {("critical", "at least 30 patients", 2, 2)}),
        (
            {"patient": first(GOOD["patient"], "p1"), "index_time": first(GOOD["index_time"], GOOD["index_time"][1])},
            {("critical", "no index event of a patient twice", 2, 60)},
        ),
        ({"index_time": [None] * ROWS}, set()),
    ],
)
def test_a_broken_rule_is_reported_with_how_many_rows_break_it(
    changed: dict[str, list[Any]], expected: set[tuple[str, str, int, int]]
) -> None:
    assert failures(check_table(table(**changed), STUDY)) == expected


def test_a_column_of_words_where_the_study_says_numbers_is_critical() -> None:
    report = check_table(table(pulse=["fast"] * ROWS), STUDY)
    assert ("critical", "pulse is a number", 60, 60) in failures(report)


def test_a_feature_that_the_site_does_not_have_is_a_warning_and_a_label_is_critical() -> None:
    assert failures(check_table(table().drop_columns(["pulse"]), STUDY)) == {
        ("warning", "every feature is a column", 1, 6)
    }
    assert failures(check_table(table().drop_columns(["died"]), STUDY)) == {
        ("critical", "patient, index_time, died are columns", 1, 3)
    }


def test_too_much_in_quarantine_keeps_a_site_out() -> None:
    aside = Counter({("Observation", "broken date"): 15, ("Observation", "unknown unit"): 6})
    assert failures(check_table(table(), STUDY, Counts(quarantined=aside))) == {
        ("critical", "at most 2% of what was read is in quarantine", 21, 1000),
        ("warning", "values have units that can be converted", 6, 1000),
    }


def test_a_critical_failure_is_an_error_with_rule_and_count_and_a_warning_is_none() -> None:
    QualityReport((RuleResult("odd", "warning", 10, 9, False),)).require()
    report = QualityReport(
        (RuleResult("adults", "critical", 60, 3, False), RuleResult("labels", "critical", 60, 2, False))
    )
    with pytest.raises(CohortRejected, match=r"adults \(3 failed\): also labels \(2 failed\)") as caught:
        report.require()
    assert (caught.value.rule, caught.value.failed) == ("adults", 3)


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CohortRef, CheckResult]:
    """A site whose cohort has marked values that break rules, and its check."""
    home = tmp_path_factory.mktemp("site")
    values = {
        "systolic": first(GOOD["systolic"], CANARY),
        "sex": first(GOOD["sex"], CANARY_WORD),
        "patient": first(GOOD["patient"], CANARY_WORD),
        "diastolic": first(GOOD["diastolic"], CANARY),
        "pulse": first(GOOD["pulse"], CANARY, *[None] * 9),
        "age": first(GOOD["age"], -CANARY),
    }
    ref = Vault(home).write(table(**values), STUDY, None)
    return home, ref, check_cohort(home, STUDY, ref, Counts())


WATCHED = """
import os
import sys
from collections import Counter
from pathlib import Path

home, seen, WRITING = Path(sys.argv[1]), [], os.O_WRONLY | os.O_RDWR | os.O_CREAT

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        seen.append(f"{event} {arguments[1:]}")
    writes = event in ("os.mkdir", "os.rename") or (event == "open" and arguments[2] & WRITING)
    if writes and not isinstance(arguments[0], int) and not Path(arguments[0]).resolve().is_relative_to(home):
        seen.append(f"{event} {arguments[0]}")

sys.addaudithook(watch)
from spinney.cohort.check_result import Checked, check_cohort
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study

class Counts:
    read, quarantined = Counter(Observation=1), Counter()

study, ref = (Path(file).read_text() for file in sys.argv[2:])
check_cohort(home, Study.model_validate_json(study), CohortRef.model_validate_json(ref), Counts())
print("SEEN", seen)
"""


def test_great_expectations_calls_nobody_and_writes_nothing_outside_the_sites_folder(
    marked: tuple[Path, CohortRef, CheckResult], tmp_path: Path
) -> None:
    home, ref, _ = marked
    files = [tmp_path / "study.json", tmp_path / "ref.json"]
    for file, model in zip(files, (STUDY, ref), strict=True):
        file.write_text(model.model_dump_json())
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", WATCHED, str(home.resolve()), *map(str, files)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert (answer.stdout, answer.returncode) == ("SEEN []\n", 0), answer.stderr


def test_a_marked_patient_is_in_no_report_and_on_no_page(marked: tuple[Path, CohortRef, CheckResult]) -> None:
    home, _, checked = marked
    pages = [file.read_text() for file in (home / "data-docs").iterdir()]
    everything = json.dumps(asdict(checked.quality)) + "".join(pages)
    assert checked.quality.failures("critical")
    assert pages
    assert CANARY_WORD not in everything
    assert str(int(CANARY)) not in everything.replace(",", "")


def test_an_error_about_a_marked_patient_does_not_quote_them(marked: tuple[Path, CohortRef, CheckResult]) -> None:
    with pytest.raises(CohortRejected) as caught:
        marked[2].quality.require()
    assert str(int(CANARY)) not in str(caught.value)
    assert CANARY_WORD not in str(caught.value)


def test_the_page_shows_failures_first_and_loads_nothing(marked: tuple[Path, CohortRef, CheckResult]) -> None:
    home, _, checked = marked
    page = checked.docs.read_text()
    assert checked.docs == home / "data-docs" / "contract.html"
    assert page.index("<td>failed</td><td>adults</td>") < page.index("<td>kept</td>")
    assert "default-src 'none'" in page
    assert not any(word in page for word in ("http://", "https://", "<script", "src="))
    assert checked.docs.stat().st_mode & 0o777 == 0o600
