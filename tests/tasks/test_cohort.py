"""The cohort's tasks in a flow: a checked, encoded cohort or a clear reason, and no patient in Prefect's hands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prefect import flow

from spinney.cohort.encoded import encode_table, read_encoded
from spinney.cohort.pull_report import PullResult
from spinney.configuration.site import SiteSettings, read_site
from spinney.configuration.study_file import read_study
from spinney.errors import CohortRejected, SourceFailed
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study
from spinney.tasks.cohort import check_cohort, encode_cohort, pull_cohort
from tests.made_up import encounter, observation, patient, write
from tests.servers.fhir_traps import FhirTraps, Stumble

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

CANARY = "77777.125"
STUDY = """
name: stays
cohort:
  index: {kind: Encounter, classes: [IMP], statuses: [finished], at: end}
features:
  - name: weight
    kind: continuous
    range: [20, 300]
    unit: kg
    source: {kind: Observation, codes: ["http://loinc.org|29463-7"], statistic: last}
label: {name: readmitted, source: {outcome: index-event, horizon: 30d}}
privacy: {smallest_cohort: 10}
"""


@dataclass(frozen=True)
class Files:
    """What a site and its study are read from, just before a task."""

    site: Path
    study: Path

    def read(self) -> tuple[SiteSettings, Study]:
        return read_site(self.site), read_study(self.study)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "site.yaml").write_text("name: north\nhome: home\nsource: {kind: files, path: fhir}\n")
    resources: list[dict[str, Any]] = [encounter("2023-12-01", "2023-12-02", who="p0", kind="AMB")]
    for number in range(40):
        who = f"p{number}"
        resources += [patient(who), encounter("2023-03-01", "2023-03-05T10:00:00Z", who=who)]
        resources += [observation("2023-03-02", float(CANARY) if number == 7 else 40.0 + number, who=who)]
        resources += [encounter("2023-03-20", who=who)] if number % 2 else []
    write(tmp_path / "fhir", resources)
    return Files(tmp_path / "site.yaml", tmp_path / "study.yaml")


@flow(name="site-cohort")
def cohort_of(site: SiteSettings, study: Study) -> CohortRef:
    pulled = pull_cohort(site, study)
    check_cohort(site, study, pulled).quality.require()
    return encode_cohort(site, study, pulled.cohort)


def test_a_flow_pulls_checks_and_encodes_a_cohort(prefect: Path, files: Files) -> None:  # noqa: ARG001
    site, study = files.read()
    ref = cohort_of(site, study)
    kept, again = read_encoded(ref, study), encode_table(site.vault, ref, study)
    assert ref.rows == 40
    for name in ("X", "y", "patients", "part", "present"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(again, name))


def test_a_cohort_that_breaks_the_contract_is_rejected_without_another_try(
    prefect: Path,  # noqa: ARG001
    files: Files,
) -> None:
    files.study.write_text(STUDY.replace("smallest_cohort: 10", "smallest_cohort: 41"))
    with pytest.raises(CohortRejected, match="at least 41 training patients"):
        cohort_of(*files.read())


def test_a_cohort_that_comes_to_nothing_shows_which_rule_left_whom_out(prefect: Path, files: Files) -> None:  # noqa: ARG001
    files.study.write_text(STUDY.replace("features:", "  eligible: {age: [90, 110]}\nfeatures:"))
    with pytest.raises(CohortRejected, match=r"of 40 index events: age \(40\)"):
        cohort_of(*files.read())
    rows = {row["step"]: row for row in newest_artifact("north-stays-attrition")}
    assert (rows["age"]["left out"], rows["age"]["patients left"]) == ("40 index events", "0")
    assert rows["died before prediction time"]["left out"] == "0 index events"


def newest_artifact(key: str) -> Any:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])))
    return json.loads(max(found, key=lambda one: one.created).data)


def test_prefect_stores_no_value_of_a_patient(prefect: Path, files: Files) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter
    from prefect.logging.handlers import APILogHandler

    files.study.write_text(STUDY.replace("[20, 300]", "[20, 100]"))
    cohort_of(*files.read())
    APILogHandler().flush()  # logs are sent in the background
    with get_client(sync_client=True) as client:
        everything = [
            *(run.model_dump_json() for run in client.read_flow_runs()),
            *(run.model_dump_json() for run in client.read_task_runs()),
            *(log.message for log in client.read_logs(LogFilter())),
        ]
    assert any("weight is between 20 and 100 kg: 1 of 40 fail" in one for one in everything)
    assert not any(CANARY in one or "/p7" in one for one in everything)
    stored = [file.read_bytes() for file in prefect.rglob("*") if file.is_file()]
    assert not any(CANARY.encode() in one or b"/p7" in one for one in stored)


def test_only_what_can_heal_is_tried_again(prefect: Path, files: Files) -> None:  # noqa: ARG001
    @flow(name="site-pull")
    def pulled() -> PullResult:
        return pull_cohort.with_options(retry_delay_seconds=0)(*files.read())

    with FhirTraps() as server:
        files.site.write_text(
            f"name: north\nhome: home\nsource: {{kind: fhir-rest, base_url: '{server.base_url}', attempts: 1}}\n"
        )
        server.stumbles.append(Stumble("/metadata", 503, times=99))
        with pytest.raises(SourceFailed, match="503"):
            pulled()
        busy = len(server.requests)
        server.stumbles[:] = [Stumble("/metadata", 401, times=99)]
        with pytest.raises(SourceFailed, match="401"):
            pulled()
    assert (busy, len(server.requests) - busy) == (5, 1)
