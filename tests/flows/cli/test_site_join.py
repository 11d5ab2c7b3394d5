"""What people at a hospital decide about a study, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.house.approvals import Approvals
from spinney.house.audit import Audit
from spinney.house.keys import KEY_VARIABLE
from tests.flows.cli.joining import STUDY, done, found_wood, joined, refused, spinney
from tests.places import ROOT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path


@pytest.fixture
def wood(folder: Path) -> Path:
    return found_wood(folder)


@pytest.mark.parametrize("words", [["coordinator"], ["coordinator", "admit"], ["site"], ["site", "approve-roster"]])
def test_help_is_there_before_anything_heavy_is_imported(words: list[str]) -> None:
    heavy = {"numpy", "pandas", "pydantic", "prefect", "sklearn", "cryptography", "spinney.connectors", "yaml"}
    code = (
        "import sys\nfrom spinney.flows.cli import main\n"
        f"main({[*words, '--help']!r}, standalone_mode=False)\nprint('HEAVY', sorted({heavy!r} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.endswith("HEAVY []\n")


def test_no_means_no(wood: Path) -> None:
    done("site join invite-ash.json --site ash/site.yaml")
    assert spinney("site approve wood --site ash/site.yaml", answer="n\n").exit_code == 1
    assert Approvals(wood / "ash/home", "wood").approval is None
    assert spinney("coordinator admit joining.json --coordinator oak/coordinator.yaml", answer="n\n").exit_code == 1
    assert Approvals(wood / "oak/home", "wood").roster.sites == []


def test_without_an_answer_nothing_is_approved(wood: Path) -> None:
    done("site join invite-ash.json --site ash/site.yaml")
    assert spinney("site approve wood --site ash/site.yaml", answer="").exit_code == 1
    assert Approvals(wood / "ash/home", "wood").approval is None


def test_what_is_printed_as_next_can_be_pasted(wood: Path) -> None:
    (wood / "ash/site.yaml").rename(wood / "ash/my site.yaml")
    said = done("site join invite-ash.json --site 'ash/my site.yaml'")
    done(next(line for line in said.splitlines() if line.startswith("Next: ")).removeprefix("Next: spinney "))
    assert Approvals(wood / "ash/home", "wood").approval is not None
    (wood / "elm").mkdir()
    said = done("coordinator init -o elm/coordinator.yaml --name elm --exchange ../exchange --study study.yaml")
    (line,) = (line for line in said.splitlines() if line.startswith("Next: "))
    done(line.removeprefix("Next: spinney ").replace("SITE", "beech"))
    assert (wood / "invite-beech.json").exists()


def test_an_invite_for_another_is_refused(wood: Path) -> None:
    done("coordinator invite elm --coordinator oak/coordinator.yaml")
    assert "the invite is for elm" in refused("site join invite-elm.json --site ash/site.yaml")
    assert not (wood / "ash/home").exists()


@pytest.mark.parametrize(("place", "words"), [("exchange", "changed on the way"), ("text", "changed on the way")])
def test_an_invite_that_was_changed_makes_no_key(wood: Path, place: str, words: str) -> None:
    invite = json.loads((wood / "invite-ash.json").read_text())
    (wood / "invite-ash.json").write_text(json.dumps({**invite, place: invite[place] + "#"}))
    assert words in refused("site join invite-ash.json --site ash/site.yaml")
    assert not (wood / "ash/home").exists()


def test_a_second_coordinator_can_not_take_a_study_over(wood: Path) -> None:
    done("site join invite-ash.json --site ash/site.yaml")
    (wood / "mallory").mkdir()
    (wood / "other").mkdir()
    done("coordinator init -o mallory/coordinator.yaml --name oak --exchange ../other --study study.yaml")
    done("coordinator invite ash --coordinator mallory/coordinator.yaml -o again.json")
    assert "by another key" in refused("site join again.json --site ash/site.yaml")


def test_joining_twice_gives_the_same_answer(wood: Path) -> None:
    done("site join invite-ash.json --site ash/site.yaml -o one.json")
    done("site join invite-ash.json --site ash/site.yaml -o two.json")
    assert (wood / "one.json").read_bytes() == (wood / "two.json").read_bytes()


def test_a_site_without_an_exchange_is_told_what_to_write(wood: Path) -> None:
    (wood / "ash/site.yaml").unlink()
    done("site init --name ash --kind files --path fhir -o ash/site.yaml")
    assert "exchange: {url: " in done("site join invite-ash.json --site ash/site.yaml")
    assert "write where the mailbox is" in refused("site approve-roster --site ash/site.yaml")


def test_a_site_that_is_not_admitted_yet_is_told_so(wood: Path) -> None:  # noqa: ARG001
    done("site join invite-ash.json --site ash/site.yaml")
    assert "no roster on the exchange" in refused("site approve-roster --site ash/site.yaml")


def test_approving_again_says_that_it_is_approved(wood: Path) -> None:
    joined(wood)
    assert "approved here already" in done("site approve wood --site ash/site.yaml")
    assert "nothing newer" in done("site approve-roster --site ash/site.yaml")
    assert "admitted already" in done("coordinator admit joining.json --coordinator oak/coordinator.yaml")


def test_a_changed_study_does_not_run_before_it_is_approved_again(wood: Path) -> None:
    approvals = joined(wood)
    (wood / "study.yaml").write_text(STUDY + "forest: {trees: 7}\n")
    shown = spinney("site approve study.yaml --site ash/site.yaml", answer="n\n").stdout
    assert "forest.trees: 100 -> 7" in shown
    assert approvals.study.forest.trees == 100
    done("site approve study.yaml --site ash/site.yaml")
    assert approvals.study.forest.trees == 7


def test_decisions_are_in_the_audit_log_of_the_house_that_made_them(wood: Path) -> None:
    joined(wood)
    for house, kinds in {"oak": ["StudyApproval", "RosterChange"], "ash": ["StudyApproval", "RosterApproval"]}.items():
        entries = [line.entry for line in Audit(wood / house / "home/audit.jsonl").lines()]
        assert [entry.kind for entry in entries if entry.direction == "decided"] == kinds


def test_a_key_from_the_environment_is_rotated_into_the_home(wood: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done("keys new --home spare")
    pem = (wood / "spare/keys/identity.pem").read_text()
    with monkeypatch.context() as at_ash:
        at_ash.setenv(KEY_VARIABLE, pem)
        done("site join invite-ash.json --site ash/site.yaml")
    done("coordinator admit joining.json --coordinator oak/coordinator.yaml")
    with monkeypatch.context() as at_ash:
        at_ash.setenv(KEY_VARIABLE, pem)
        done("site approve-roster --site ash/site.yaml")
        done("keys rotate --home ash/home")
    done("coordinator rotate rotation.json --coordinator oak/coordinator.yaml")
    done("site approve-roster --site ash/site.yaml")  # without the variable: the new key is in the home
    assert "A rotation" not in done("keys show --home ash/home")
    done("keys rotate --home ash/home -o second.json")
    assert "has a new key" in done("coordinator rotate second.json --coordinator oak/coordinator.yaml")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("coordinator init -o oak/coordinator.yaml --name oak --exchange x --study study.yaml", "is there already"),
        ("coordinator init -o new.yaml --name 'o k' --exchange x --study study.yaml", "new.yaml:2 name"),
        ("coordinator init -o new.yaml --name oak --exchange x --study nowhere.yaml", "cannot be read"),
        ("coordinator invite ash --coordinator nowhere.yaml", "cannot be read"),
        ("coordinator invite '../ash' --coordinator oak/coordinator.yaml", "cannot be part of an address"),
        ("coordinator invite oak --coordinator oak/coordinator.yaml", "the coordinator itself"),
        ("coordinator dismiss elm --coordinator oak/coordinator.yaml", "elm is no site of wood"),
        ("coordinator admit study.yaml --coordinator oak/coordinator.yaml", "is not JSON"),
        ("coordinator admit invite-ash.json --coordinator oak/coordinator.yaml", "no proper joining"),
        ("coordinator roster --study meadow --coordinator oak/coordinator.yaml", "meadow"),
        ("site join study.yaml --site ash/site.yaml", "is not JSON"),
        ("site approve meadow --site ash/site.yaml", "cannot be read"),
        ("site approve-roster --site ash/site.yaml", "spinney site join INVITE"),
    ],
)
def test_every_mistake_has_a_line_that_says_what_is_wrong(wood: Path, line: str, words: str) -> None:  # noqa: ARG001
    message = refused(line)
    assert words in message
    assert "Traceback" not in message
