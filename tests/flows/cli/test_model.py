"""spinney model: the versions in a site's registry, and which one is in use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.flows.cli import main
from spinney.house.audit import Audit
from spinney.house.withdrawal import Withdrawal
from tests.servers.migrated import registry_in

SITES = ("ash", "birch", "cedar")
pytestmark = pytest.mark.usefixtures("two_models")


def spinney(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def aliases() -> dict[str, int]:
    rows = json.loads(spinney("model", "list", "--json").stdout)
    return {alias: row["version"] for row in rows for alias in row["aliases"]}


def test_list_shows_the_newest_first_with_aliases_and_houses():
    lines = spinney("model", "list").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["2", "candidate"], ["1", "champion"]]
    assert "round 2, " in lines[0]
    assert "trees of 3 houses" in lines[0]


def test_show_prints_the_card_of_the_champion():
    card = spinney("model", "show").stdout
    assert card.startswith("# breast, version 1\n")
    for heading in ("## Why this model", "## On test rows", "## Whose trees", "## What it asks", "## Limits"):
        assert heading in card
    told = json.loads(spinney("model", "show", "candidate", "--json").stdout)
    assert told["lineage"]["round"] == 2
    assert "auroc" in told["evidence"]["test"]


def test_compare_puts_two_versions_side_by_side():
    lines = spinney("model", "compare").stdout.splitlines()
    assert lines[0].startswith("champion (1): round 1, ")
    assert lines[2].startswith("candidate (2): round 2, ")
    assert "auroc 0." in lines[1] or "auroc 1." in lines[1]
    assert set(json.loads(spinney("model", "compare", "1", "2", "--json").stdout)) == {"1", "2"}


def test_promote_and_rollback_change_what_is_in_use_and_say_who_did_it(two_models):
    spinney("model", "promote", "2", "--by", "jo")
    assert aliases() == {"champion": 2, "previous": 1}
    spinney("model", "rollback", "--by", "jo")
    assert aliases() == {"champion": 1, "previous": 2}
    words = [line.entry.words for line in Audit(two_models.home("ash") / "audit.jsonl").lines()][-2:]
    assert words == ["Decided by jo: breast/2 is in use from now on.", "Decided by jo: back to breast/1."]


def test_a_version_that_is_not_there_is_a_clear_line():
    assert spinney("model", "show", "9", code=2).stderr == (
        "there is no breast 9 in the registry; see: spinney model list\n"
    )


def test_where_a_steward_decides_nobody_promotes_past_them():
    site = Path("site.yaml")
    site.write_text(site.read_text(encoding="utf-8") + "admission: manual\n", encoding="utf-8")
    assert "breast/2 has no steward's approval" in spinney("model", "promote", "2", code=2).stderr
    assert aliases() == {"champion": 1, "candidate": 2}


def test_withdraw_takes_a_site_s_trees_out_of_every_model():
    lines = spinney("model", "withdraw", "birch", "--yes").stdout.splitlines()
    assert len(lines) == 2
    rows = json.loads(spinney("model", "list", "--json").stdout)
    assert [row["without"] for row in rows] == [["birch"], ["birch"]]
    assert all("birch" not in row["trees"] for row in rows)
    assert "remains until the next round" in spinney("model", "show").stdout


def test_withdraw_with_the_own_name_tells_all_others(two_models):
    assert "leave the others' models" in spinney("model", "withdraw", "ash", "--yes").stdout
    raw = (two_models.folder / "exchange" / "breast" / "ash" / "0" / "withdrawal.1").read_bytes()
    assert Withdrawal.model_validate_json(raw).site == "ash"
    assert aliases() == {"champion": 1, "candidate": 2}


def test_withdraw_asks_first():
    result = CliRunner().invoke(main, ["model", "withdraw", "birch"], input="n\n")
    assert result.exit_code == 1
    assert aliases() == {"champion": 1, "candidate": 2}


def test_export_writes_onnx_and_the_card_twice(two_models):
    said = spinney("model", "export", "--output", "out").stdout
    assert "differs from our probabilities by at most" in said
    assert {path.name for path in Path("out").iterdir()} == {"model.onnx", "card.md", "card.jsonld"}
    fair = json.loads(Path("out/card.jsonld").read_text(encoding="utf-8"))
    model = registry_in(two_models.home("ash")).champion("breast")[1]
    assert fair["@id"] == f"urn:sha256:{model.digest}"
    assert {house["name"] for house in fair["prov:wasAttributedTo"]} == set(SITES)


def test_export_with_records_writes_what_can_be_filled():
    site = Path("site.yaml")
    site.write_text(site.read_text(encoding="utf-8") + "\nabout: {organisation: Wood Hospital}\n", encoding="utf-8")
    assert spinney("model", "export", "--output", "out", "--no-onnx", "--fair").exit_code == 0
    records = {"research-study.json", "library.json", "provenance.json", "tripod-ai.md"}
    assert {path.name for path in Path("out").iterdir()} == {"card.md", "card.jsonld", *records}
    assert json.loads(Path("out/library.json").read_text(encoding="utf-8"))["publisher"] == "Wood Hospital"
    fair = json.loads(Path("out/card.jsonld").read_text(encoding="utf-8"))
    assert fair["fair4ml:sharedBy"]["name"] == "Wood Hospital"


def test_a_card_is_drawn_on_a_terminal_and_markdown_elsewhere():
    piped = spinney("model", "show").stdout
    assert "| auroc |" in piped
    output, terminal = os.openpty()
    command = [str(Path(sys.executable).with_name("spinney")), "model", "show"]
    with subprocess.Popen(command, stdout=terminal, env={**os.environ, "COLUMNS": "100"}) as process:
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(output, 65536):
                shown += part
        except OSError:  # the terminal is gone with the process
            process.wait()
    os.close(output)
    assert b"auroc" in shown
    assert b"| auroc |" not in shown
