"""What Prefect is told of a house; without a server, what is missing is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spinney.demo.federation import Village
from spinney.flows.running.plan import PrefectAway, ServedHouse, planned, server
from spinney.house.approvals import NotApproved
from tests.federations import breast_village
from tests.servers.prefect_server import environment_used_here


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    return breast_village(tmp_path_factory.mktemp("village"), ("ash", "birch", "cedar"))


def test_a_house_is_read_from_its_own_file(village: Village):
    site = ServedHouse.read("site", village.site_file("ash"))
    host = ServedHouse.read("coordinator", village.coordinator_file)
    assert (site.tag, host.tag) == ("site:ash", "coordinator:coordinator")
    assert (site.file, site.home) == (village.site_file("ash").resolve(), village.home("ash"))
    assert [study.name for study in site.studies] == ["breast"]


def test_only_sections_that_are_filled_in_have_deployments_of_their_own(village: Village, tmp_path: Path):
    words = yaml.safe_load(village.site_file("ash").read_text())
    file = tmp_path / "site.yaml"
    for scores in ({}, {"scores": {"table": {"url": "sqlite:///scores.db"}}}):
        file.write_text(yaml.safe_dump({**words, **scores}))
        assert ("scores" in ServedHouse.read("site", file).sections) is bool(scores)


def test_a_house_that_has_approved_nothing_has_nothing_to_serve(tmp_path: Path):
    (tmp_path / "site.yaml").write_text("name: ash\nhome: home\nsource: {kind: files, path: fhir}\n")
    with pytest.raises(NotApproved):
        _ = ServedHouse.read("site", tmp_path / "site.yaml").studies


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "PREFECT_API_URL is not set"),
        ("http://127.0.0.1:1/api", r"no Prefect server answers at http://127\.0\.0\.1:1"),
    ],
)
def test_without_a_server_one_line_says_what_to_look_at(monkeypatch: pytest.MonkeyPatch, url: str, words: str):
    monkeypatch.setenv("PREFECT_API_URL", url)
    monkeypatch.setenv("PREFECT_SERVER_ALLOW_EPHEMERAL_MODE", "false")
    with environment_used_here(), pytest.raises(PrefectAway, match=words):
        server()


@pytest.mark.usefixtures("prefect_server")
def test_the_plan_has_the_study_s_schedule_and_the_house_s_tag_on_every_deployment(village: Village):
    deployments = planned(ServedHouse.read("site", village.site_file("ash")))
    assert all("site:ash" in one.tags for one in deployments)
    (round_,) = (one for one in deployments if one.flow_name == "site-round")
    assert [schedule.schedule.cron for schedule in round_.schedules] == ["0 2 * * *"]
    assert round_.parameters == {"run": {"site": "ash", "study": "breast"}}, "a name that is served, never a file"


@pytest.mark.usefixtures("prefect_server")
def test_where_somebody_else_starts_the_rounds_nothing_is_scheduled(village: Village, tmp_path: Path):
    words = yaml.safe_load(village.site_file("ash").read_text()) | {"prefect": {"schedule": "none"}}
    words["home"] = str(village.home("ash"))
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(words))
    assert not any(one.schedules for one in planned(ServedHouse.read("site", tmp_path / "site.yaml")))
