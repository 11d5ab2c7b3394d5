"""What people see of a night in the Prefect UI: read back from a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from spinney.connectors.great_expectations.quality import QualityReport, RuleResult
from spinney.reports.facts import NightFacts
from spinney.tasks.artifacts import artifact_key, show_attrition, show_night, show_quality, show_round
from tests.spinney.reports.reported import AT, SITES, night_facts, round_facts, wood


def in_a_run(work: Callable[[], None]) -> None:
    """Artifacts belong to runs."""

    @flow(name="showing")
    def showing() -> None:
        work()

    showing()


def shown(key: str) -> Any:
    """The newest artifact of this key: Markdown as it is, a table as its rows."""
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])))
    newest = max(found, key=lambda one: one.created)
    return json.loads(newest.data) if newest.type == "table" else newest.data


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("Ash", "heart", "choice"), "ash-heart-choice"),
        (("St.Marys_2", "hf 30", "quality"), "st-marys-2-hf-30-quality"),
        (("-ash-", "x"), "ash-x"),
    ],
)
def test_a_key_is_one_that_prefect_takes(words: tuple[str, ...], key: str):
    assert artifact_key(*words) == key


@pytest.mark.usefixtures("prefect")
def test_every_rule_is_a_row_with_how_often_it_was_not_kept():
    results = (RuleResult("adults", "critical", 60, 3, False), RuleResult("age is known", "warning", 60, 0, True))
    in_a_run(lambda: show_quality(QualityReport(results), "stays"))
    assert shown("stays-quality") == [
        {"rule": "adults", "severity": "critical", "kept": "no", "failed": "fewer than 5"},
        {"rule": "age is known", "severity": "warning", "kept": "yes", "failed": "0"},
    ]


@pytest.mark.usefixtures("prefect")
def test_every_step_from_the_source_to_the_rows_is_a_row_with_nothing_about_too_few():
    facts = night_facts(wood())
    in_a_run(lambda: show_attrition("ash", facts.study, facts.pulled, facts.division))
    rows = shown("ash-wood-attrition")
    assert [row["step"] for row in rows][:3] == ["found in the source", "no index event of the study", "age"]
    assert rows[2] == {
        "step": "age",
        "left out": "122 index events",
        "patients left out": "100",
        "left": "476 or more index events",
        "patients left": "423 to 432",
    }
    assert rows[4]["left out"] == "fewer than 5 index events"
    assert rows[-1] == {
        "step": "in test",
        "left out": "",
        "patients left out": "",
        "left": "101 rows",
        "patients left": "101",
    }


@pytest.mark.usefixtures("prefect")
def test_a_night_is_its_decision_its_candidates_and_whose_trees_help():
    facts = night_facts(wood())
    in_a_run(lambda: show_night(facts))
    assert shown("ash-wood-choice").startswith("# wood, round 7 at ash\n")
    assert "chosen model" in [row["model"] for row in shown("ash-wood-candidates")]
    assert {row["site"] for row in shown("ash-wood-credit")} == {*SITES}


@pytest.mark.usefixtures("prefect")
def test_a_night_without_a_model_has_only_its_reason():
    missed = NightFacts(wood(), "elm", 7, AT, missed="the round was void")
    in_a_run(lambda: show_night(missed))
    assert "the round was void" in shown("elm-wood-choice")
    with get_client(sync_client=True) as client:
        assert not [one for one in client.read_artifacts() if one.key == "elm-wood-candidates"]


@pytest.mark.usefixtures("prefect")
def test_a_round_names_everybody_once_with_what_they_did():
    facts = round_facts(wood())
    in_a_run(lambda: show_round(facts))
    sites = {row["site"]: row["what"] for row in shown("wood-sites")}
    assert sites["ash"] == "took part"
    assert {site: what for site, what in sites.items() if what != "took part"} == dict(facts.absent)
    assert [row["step"] for row in shown("wood-steps")] == ["join", "grow", "check", "score", "finish"]
