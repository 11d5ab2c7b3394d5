"""A cohort checked: nobody else is told, and no marked patient is in a report, on a page or in an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from spinney.cohort.check_result import CheckResult, check_cohort, division_of, enough_patients
from spinney.cohort.encoded import encode_table
from spinney.cohort.vault import Vault
from spinney.errors import CohortRejected, Declined
from spinney.rows.cohort_ref import CohortRef
from spinney.rows.describe import characteristic_vector
from spinney.rows.parts import Part
from tests.connectors.great_expectations.contract import CANARY, CANARY_WORD, GOOD, ROWS, STUDY, Counts, table
from tests.places import ROOT

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")


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
from spinney.cohort.check_result import check_cohort
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study

class Counts:
    read, usable, quarantined = Counter(Observation=1), {"Observation": 1}, Counter()

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


def known_vault(home: Path) -> Vault:
    """With a key, so that the same patients train whenever this is run."""
    (Vault(home).folder / "key").write_bytes(b"k" * 32)
    return Vault(home)


@pytest.mark.parametrize("people", range(30, 61, 5))
def test_a_check_and_a_round_mean_the_same_patients_by_the_smallest_cohort(people: int, tmp_path: Path) -> None:
    patients = [f"p{row % people}" for row in range(ROWS)]
    home, words = tmp_path / "home", table(patient=patients)
    ref = known_vault(home).write(words, STUDY, None)
    division = division_of(Vault(home).read(ref), STUDY, Vault(home))
    assert division is not None
    (rule,) = enough_patients(division, STUDY)
    training = encode_table(Vault(home), ref, STUDY).rows(Part.TRAINING)
    try:
        characteristic_vector(training, STUDY.privacy)
    except Declined:
        assert (rule.rule, rule.passed, rule.failed) == ("at least 30 training patients", False, rule.checked)
    else:
        assert (rule.passed, rule.failed) == (True, 0)
    assert division.training == training.patient_count < people
    assert rule.checked == division.patients == people


def test_too_few_training_patients_keep_a_site_out(tmp_path: Path) -> None:
    few = table(**{name: values[:34] for name, values in GOOD.items()})
    ref = known_vault(tmp_path).write(few, STUDY, None)
    with pytest.raises(CohortRejected, match="at least 30 training patients"):
        check_cohort(tmp_path, STUDY, ref, Counts()).quality.require()
