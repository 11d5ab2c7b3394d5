"""A catalogue tells nobody more than the other houses know: rounded counts, once per epoch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.configuration.house import AboutSettings
from spinney.demo.federation import Village
from spinney.flows.cli import main
from spinney.reports.catalogue import ToldCount, catalogue, told_counts
from spinney.study.study import Study
from tests.federations import breast_study, breast_village
from tests.nights import others

PLAIN = {"name": "wood", "features": [{"name": "age", "kind": "binary"}], "label": {"name": "fell"}}


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    """Two nights of one epoch."""
    village = breast_village(tmp_path_factory.mktemp("village"), ("ash", "birch", "cedar"))
    for _ in range(2):
        with others(village) as running:
            for house in running.values():
                house.result()
    return village


def test_counts_are_those_that_were_told_once(village: Village) -> None:
    (one,) = told_counts(village.home("ash"), breast_study())
    assert one.epoch == 1
    assert one.rows % breast_study().privacy.rows_precision == 0
    assert told_counts(village.home("ash"), breast_study(description="another")) == []


def test_the_command_writes_what_site_yaml_and_studies_say(village: Village, tmp_path: Path) -> None:
    file = village.site_file("ash")
    file.write_text(file.read_text() + "\nabout: {organisation: Wood Hospital, contact: data@example.org}\n")
    out = tmp_path / "catalogue.jsonld"
    answer = CliRunner().invoke(main, ["site", "catalogue", "--site", str(file), "-o", str(out)])
    assert answer.exit_code == 0, answer.output
    told = json.loads(out.read_text())
    assert told["dcterms:publisher"]["foaf:name"] == "Wood Hospital"
    (cohort,) = told["dcat:dataset"]
    assert cohort["dcat:contactPoint"]["vcard:hasEmail"] == {"@id": "mailto:data@example.org"}
    counted = told_counts(village.home("ash"), breast_study())[0].rows
    assert [one["spinney:about"] for one in cohort["spinney:trainingRows"]] == [counted]


def test_what_nobody_has_said_is_left_out() -> None:
    study = Study.model_validate(PLAIN)
    plain = catalogue("ash", AboutSettings(), [(study, [])])
    assert plain["dcterms:publisher"]["foaf:name"] == "ash"
    assert "foaf:homepage" not in plain
    assert {"dcterms:modified", "dcat:contactPoint"}.isdisjoint(plain["dcat:dataset"][0])
    full = AboutSettings(url="https://example.org", contact="a@example.org", applies="https://example.org/law")
    told = catalogue("ash", full, [(study, [ToldCount(3, "2031-03-01", 450)])])["dcat:dataset"][0]
    assert told["dcterms:modified"] == "2031-03-01"
    assert told["dcatap:applicableLegislation"] == {"@id": "https://example.org/law"}


def test_every_word_belongs_to_a_vocabulary_of_its_context() -> None:
    told = catalogue("ash", AboutSettings(), [(Study.model_validate(PLAIN), [ToldCount(1, "2031-03-01", 10)])])
    words: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            words.update(key for key in value if not key.startswith("@"))
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect({name: value for name, value in told.items() if name != "@context"})
    assert {word.split(":")[0] for word in words} <= told["@context"].keys()
