"""Joining, as docs/joining.md tells it: the page's commands give the page's output. And what is refused."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.flows.cli import main
from spinney.house.approvals import Approvals
from spinney.house.audit import Audit
from spinney.house.keys import KEY_VARIABLE
from tests.places import ROOT

PAGE = (ROOT / "docs" / "joining.md").read_text(encoding="utf-8")
OF_THIS_RUN = re.compile(r"\d{5}(?: \d{5}){5}|\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?")
STUDY = """\
name: wood
features:
  - {name: age, kind: continuous, range: [0, 120]}
label: {name: died}
"""


def spinney(line: str, answer: str = "y\n") -> Result:
    return CliRunner().invoke(main, shlex.split(line), input=answer)


def done(line: str) -> str:
    result = spinney(line)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.stdout


def refused(line: str) -> str:
    result = spinney(line)
    assert result.exit_code == 2, f"{line}\n{result.output}"
    return result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path


# ---------------------------------------------------------------------------------------------------------------
# The page


def steps_of_the_page() -> Iterator[tuple[str, list[str]]]:
    """Every command in the page's console blocks, and what it shows below."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = step.rstrip("\n").split("\n")
            yield command, output


def test_the_page_on_joining_shows_what_happens(folder: Path) -> None:
    shutil.copy(ROOT / "docs/examples/synthea/study.yaml", folder)
    same: dict[str, str] = {}
    for command, shown in steps_of_the_page():
        if command.startswith("spinney "):
            real = done(command.removeprefix("spinney ")).splitlines()
        else:
            real = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout.splitlines()
        mask = [OF_THIS_RUN.sub("*", line) for line in shown]
        assert [OF_THIS_RUN.sub("*", line) for line in real] == mask, command
        for on_page, here in zip(found(shown), found(real), strict=True):
            assert same.setdefault(on_page, here) == here, f"{on_page} stands for two things: {command}"
    assert Approvals(folder / "ash/home", "acute-care").roster.sites == ["ash", "elm"]
    assert {Audit(folder / house / "home/audit.jsonl").verify().notes for house in ("oak", "ash", "beech", "elm")} == {
        ()
    }


def found(lines: list[str]) -> list[str]:
    """Keys and digests, which have to be the same wherever the page shows the same; times may differ."""
    return [one for line in lines for one in OF_THIS_RUN.findall(line) if "-" not in one]


# ---------------------------------------------------------------------------------------------------------------
# What people see when something is wrong


@pytest.fixture
def wood(folder: Path) -> Path:
    """A coordinator, and a site that is invited."""
    for house in ("exchange", "oak", "ash"):
        (folder / house).mkdir()
    (folder / "study.yaml").write_text(STUDY)
    done("coordinator init -o oak/coordinator.yaml --name oak --exchange ../exchange --study study.yaml")
    done("coordinator invite ash --coordinator oak/coordinator.yaml")
    done("site init --name ash --kind files --path fhir --exchange ../exchange -o ash/site.yaml")
    return folder


def joined(wood: Path) -> Approvals:
    done("site join invite-ash.json --site ash/site.yaml")
    done("site approve wood --site ash/site.yaml --by officer")
    done("coordinator admit joining.json --coordinator oak/coordinator.yaml")
    done("site approve-roster --site ash/site.yaml")
    return Approvals(wood / "ash/home", "wood")


@pytest.mark.parametrize("words", [["coordinator"], ["coordinator", "admit"], ["site"], ["site", "approve-roster"]])
def test_help_is_there_before_anything_heavy_is_imported(words: list[str]) -> None:
    heavy = {"numpy", "pandas", "pydantic", "prefect", "sklearn", "cryptography", "connectors", "yaml"}
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


def test_nobody_is_admitted_without_an_invite(wood: Path) -> None:
    done("site join invite-ash.json --site ash/site.yaml")
    (Approvals(wood / "oak/home", "wood").folder / "invites/ash.json").unlink()
    assert "was not invited" in refused("coordinator admit joining.json --coordinator oak/coordinator.yaml")


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


def test_scripts_read_roster_and_studies_as_json(wood: Path) -> None:
    joined(wood)
    roster = json.loads(done("coordinator roster --json --coordinator oak/coordinator.yaml"))
    assert (roster["version"], roster["in_force"], roster["approved"]) == (2, 2, {"2": ["ash"]})
    (study,) = json.loads(done("site studies --json --site ash/site.yaml"))
    assert (study["study"], study["by"], study["roster"], study["problem"]) == ("wood", "officer", 2, "")


def test_decisions_are_in_the_audit_log_of_the_house_that_made_them(wood: Path) -> None:
    joined(wood)
    for house, kinds in {"oak": ["StudyApproval", "RosterChange"], "ash": ["StudyApproval", "RosterApproval"]}.items():
        entries = [line.entry for line in Audit(wood / house / "home/audit.jsonl").lines()]
        assert [entry.kind for entry in entries if entry.direction == "decided"] == kinds


def test_a_rotation_that_nobody_knows_is_refused(wood: Path) -> None:
    joined(wood)
    done("keys new --home elsewhere")
    done("keys rotate --home elsewhere")
    assert "nobody's" in refused("coordinator rotate rotation.json --coordinator oak/coordinator.yaml")


def test_a_rotation_is_put_on_the_roster_once(wood: Path) -> None:
    joined(wood)
    done("keys rotate --home ash/home")
    done("coordinator rotate rotation.json --coordinator oak/coordinator.yaml")
    assert "nobody's" in refused("coordinator rotate rotation.json --coordinator oak/coordinator.yaml")


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


def test_a_coordinator_whose_exchange_is_missing_goes_on_when_it_is_there(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY)
    message = refused("coordinator init --name oak --exchange exchange --study study.yaml")
    assert len(message.splitlines()) == 1
    (folder / "exchange").mkdir()
    done("coordinator approve study.yaml")
    assert "version 1" in done("coordinator roster")
