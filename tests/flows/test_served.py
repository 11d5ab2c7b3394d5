"""A run names a house that this machine serves, and can name nothing else."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spinney.flows.served import NotServed, coordinator_named, serve_houses, serving, site_named
from spinney.house.audit import Audit


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    """Two sites and a coordinator."""
    for name in ("ash", "beech"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "site.yaml").write_text(f"name: {name}\nsource: {{kind: files, path: fhir}}\n")
    (tmp_path / "coordinator.yaml").write_text("name: host\nexchange: {url: mail}\n")
    return tmp_path


def sites(houses: Path) -> tuple[Path, ...]:
    return houses / "ash/site.yaml", houses / "beech/site.yaml"


def test_a_house_is_found_by_its_name(houses: Path) -> None:
    with serving(sites=sites(houses), coordinators=(houses / "coordinator.yaml",)):
        assert site_named("beech").home == houses / "beech" / "home"
        assert coordinator_named("host").name == "host"


def test_the_only_house_needs_no_name(houses: Path) -> None:
    with serving(sites=sites(houses)[:1]):
        assert site_named("").name == "ash"
    with serving(sites=sites(houses)), pytest.raises(NotServed, match="name one site that is served here: ash, beech"):
        site_named("")


@pytest.mark.parametrize("wish", ["elm", "../beech/site.yaml", "https://example.org/site.yaml", "ash\nbeech"])
def test_what_is_not_served_is_refused_and_every_house_here_notes_it(houses: Path, wish: str) -> None:
    with serving(sites=sites(houses)), pytest.raises(NotServed, match="ash, beech"):
        site_named(wish)
    for name in ("ash", "beech"):
        (line,) = Audit(houses / name / "home" / "audit.jsonl").lines()
        assert (line.entry.direction, line.entry.kind) == ("refused", "Run")
        assert "which is not served here" in line.entry.words
        assert "\n" not in line.entry.words


def test_a_foreign_settings_file_is_not_even_read(houses: Path) -> None:
    foreign = houses / "foreign.yaml"
    foreign.write_text("no settings at all: [")
    with serving(sites=sites(houses)), pytest.raises(NotServed):
        site_named(str(foreign))


def test_a_process_that_serves_nobody_says_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPINNEY_SERVED", raising=False)
    with pytest.raises(NotServed, match="start it with: spinney coordinator serve"):
        coordinator_named("host")


def test_the_names_are_those_of_the_process_that_serves_also_in_what_it_starts(
    houses: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINNEY_SERVED", raising=False)
    monkeypatch.chdir(houses)
    serve_houses(sites=(Path("ash/site.yaml"),))
    monkeypatch.chdir("/")
    assert site_named("ash").name == "ash"


def test_for_a_while_only_these_are_found_and_only_in_this_thread(
    houses: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_SERVED", json.dumps({"site": [str(sites(houses)[0])]}))
    with serving(sites=sites(houses)[1:]), ThreadPoolExecutor(1) as elsewhere:
        assert site_named("").name == "beech"
        assert elsewhere.submit(site_named, "").result().name == "ash"
    assert site_named("").name == "ash"
