"""The pack for an inspector: what it says is counted another way, and its digests are those of its files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.demo.federation import COORDINATOR, Village
from spinney.flows.cli import main
from spinney.house.approvals import Approvals
from spinney.house.audit import Audit, exported
from spinney.reports.evidence import packed
from tests.federations import breast_study, breast_village
from tests.nights import others

PERMIT = {"reference": "EK 17/2031", "granted_by": "the ethics committee", "expires": "2131-03-31"}


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    folder = tmp_path_factory.mktemp("village")
    village = breast_village(folder, ("ash", "birch", "cedar"), permit=PERMIT, purpose="Spare <b>biopsies</b>.")
    with others(village) as running:
        for house in running.values():
            house.result()
    return village


def asked(home: Path, *more: object) -> Result:
    return CliRunner().invoke(main, ["audit", "evidence", "--home", str(home), *map(str, more)])


def opened(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.fixture(scope="module")
def pack(village: Village, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    path = tmp_path_factory.mktemp("pack") / "pack.zip"
    answer = asked(village.home("ash"), "-o", path)
    assert answer.exit_code == 0, answer.output
    assert "breast at ash" in answer.output
    return opened(path)


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL).split())


def test_every_file_has_its_digest(pack: dict[str, str]) -> None:
    listed = dict(reversed(line.split("  ")) for line in pack["SHA256SUMS"].splitlines())
    assert {*listed} == {*pack} - {"SHA256SUMS"}
    assert all(hashlib.sha256(pack[name].encode()).hexdigest() == digest for name, digest in listed.items())


def test_what_left_is_what_the_log_says_counted_another_way(village: Village, pack: dict[str, str]) -> None:
    lines = [json.loads(raw) for raw in (village.home("ash") / "audit.jsonl").read_text().splitlines()]
    sent = [line for line in lines if line["direction"] == "sent" and line["study"] == "breast"]
    kilobytes = sum(line["bytes"] for line in sent) / 1000
    told = text_of(pack["3-what-left.html"])
    assert f"{len(sent)} messages, {kilobytes:.{0 if kilobytes >= 100 else 1}f} kB in all" in told
    parcels = [line for line in sent if line["kind"] == "Parcel"]
    assert f"no patient {len(parcels)} " in told
    assert "birch, cedar" in told


def test_the_log_in_it_is_the_log(village: Village, pack: dict[str, str]) -> None:
    log = Audit(village.home("ash") / "audit.jsonl")
    assert pack["audit.csv"] == exported(log.lines(), "csv")
    assert f"Verified: {log.verify().lines} lines" in pack["5-log.html"]
    assert len([*csv.DictReader(io.StringIO(pack["audit.csv"]))]) == log.verify().lines


def test_study_approvals_roster_and_floors_are_in_it(village: Village, pack: dict[str, str]) -> None:
    approvals = Approvals(village.home("ash"), "breast")
    assert pack["study.yaml"].encode() == (approvals.folder / "study.yaml").read_bytes()
    assert approvals.study.digest in pack["1-study.html"]
    assert "EK 17/2031 of the ethics committee, until 2131-03-31" in text_of(pack["1-study.html"])
    for name, prints in approvals.roster.fingerprints.items():
        assert f"{name} {'coordinator' if name == COORDINATOR else 'site'} {prints}" in text_of(
            pack["2-approvals.html"]
        )
    assert "smallest leaf 5 " in text_of(pack["4-floors-and-objections.html"])


def test_the_impact_assessment_is_filled_from_the_study(pack: dict[str, str]) -> None:
    told = text_of(pack["6-impact-assessment.html"])
    assert "purpose Spare &lt;b&gt;biopsies&lt;/b&gt;." in told  # escaped: no study writes into a page
    assert "legal basis To be filled in by this house: the legal basis" in told
    assert "until the permit ends on 2131-03-31" in told
    assert f"at least {breast_study().lent_leaf} distinct patients in every leaf that is lent" in told
    assert "To be filled in by this house: the opinion of the data-protection officer." in told
    assert "figures of attacks: python -m benchmarks.privacy" in told


def test_figures_of_attacks_are_those_of_the_file(village: Village, tmp_path: Path) -> None:
    figures = [
        {"name": "heart/5 patients/tree by tree/AUC", "unit": "", "runs": [0.5, 0.625, 0.75], "better": "less"},
        {"name": "heart/seconds", "unit": "s", "runs": [9.0], "better": "less"},
    ]
    (tmp_path / "attacks.json").write_text(json.dumps({"part": "privacy", "machine": "a machine", "figures": figures}))
    asked(village.home("ash"), "-o", tmp_path / "pack.zip", "--attacks", tmp_path / "attacks.json")
    told = text_of(opened(tmp_path / "pack.zip")["6-impact-assessment.html"])
    assert "heart/5 patients/tree by tree/AUC 0.625" in told
    assert "seconds" not in told
    (tmp_path / "attacks.json").write_text("{}")
    answer = asked(village.home("ash"), "-o", tmp_path / "other.zip", "--attacks", tmp_path / "attacks.json")
    assert answer.exit_code == 2
    assert "no figures of attacks" in answer.output
    assert not (tmp_path / "other.zip").exists()


def test_no_page_loads_anything_or_holds_a_script(pack: dict[str, str]) -> None:
    for name, content in pack.items():
        if name.endswith(".html"):
            assert "default-src 'none'" in content
            assert not re.search(r"<script|https?://|src=", content)


def test_the_coordinator_has_a_pack_too(village: Village, tmp_path: Path) -> None:
    assert asked(village.home(COORDINATOR), "-o", tmp_path / "pack.zip").exit_code == 0


def test_a_log_that_was_changed_is_said_to_be_and_is_exit_code_2(village: Village, tmp_path: Path) -> None:
    log = village.home("birch") / "audit.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"kind": "Description"', b'"kind": "Descriptiom"'))
    answer = asked(village.home("birch"), "-o", tmp_path / "pack.zip")
    assert answer.exit_code == 2
    assert "NOT what was written" in answer.output
    assert re.search(
        r"NOT what was written: line \d+ was changed", text_of(opened(tmp_path / "pack.zip")["5-log.html"])
    )


def test_the_same_files_are_the_same_bytes() -> None:
    assert packed({"a": b"1"}) == packed({"a": b"1"}) != packed({"a": b"2"})
