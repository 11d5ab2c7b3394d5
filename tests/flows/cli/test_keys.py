"""spinney keys and spinney audit: what people see."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.flows.cli import main
from spinney.house.audit import Audit, AuditEntry
from spinney.house.keys import KEY_VARIABLE, Identity, KeyRing, fingerprint
from spinney.house.roster import Rotation, read_document

NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPINNEY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path / "home"


@pytest.fixture
def log(home: Path) -> Audit:
    audit = Audit(home / "audit.jsonl")
    for number in range(3):
        sent = AuditEntry(direction="sent", kind="Description", peer="oak", study="wood", round=number + 1, bytes=800)
        audit.append(sent, NIGHT)
    return audit


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize("words", [["keys"], ["keys", "rotate"], ["audit"], ["audit", "verify"]])
def test_help_is_there_before_anything_heavy_is_imported(words: list[str]) -> None:
    heavy = {"numpy", "pandas", "pydantic", "prefect", "sklearn", "cryptography", "msgpack", "connectors"}
    code = (
        "import sys\nfrom spinney.flows.cli import main\n"
        f"main({[*words, '--help']!r}, standalone_mode=False)\nprint('HEAVY', sorted({heavy!r} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("Usage:")
    assert answer.stdout.endswith("HEAVY []\n")


# ---------------------------------------------------------------------------------------------------------------
# keys


def test_a_new_key_is_made_and_its_fingerprint_shown(home: Path) -> None:
    answer = spinney("keys", "new")
    assert answer.exit_code == 0
    assert fingerprint(KeyRing(home).identity().public) in answer.output


def test_a_second_new_key_is_refused_with_advice(home: Path) -> None:
    spinney("keys", "new")
    before = KeyRing(home).identity().public
    answer = spinney("keys", "new")
    assert answer.exit_code == 2
    assert "spinney keys rotate" in answer.stderr
    assert KeyRing(home).identity().public == before


@pytest.mark.usefixtures("home")
def test_the_house_s_folder_can_be_named(tmp_path: Path) -> None:
    assert spinney("keys", "new", "--home", tmp_path / "other").exit_code == 0
    assert (tmp_path / "other/keys/identity.pem").exists()


def test_without_any_name_the_house_is_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPINNEY_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert spinney("keys", "new").exit_code == 0
    assert (tmp_path / "spinney-home/keys/identity.pem").exists()


@pytest.mark.parametrize("file", ["site.yaml", "coordinator.yaml"])
def test_without_any_name_the_settings_file_that_is_here_counts(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINNEY_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    source = "source: {kind: files, path: fhir}\n" if file == "site.yaml" else ""
    (tmp_path / file).write_text(f"name: ash\nhome: mine\nexchange: {{url: mail}}\n{source}")
    assert "mine/keys/identity.pem" in spinney("keys", "new").stdout


def test_show_tells_the_public_key_and_never_the_private_one(home: Path) -> None:
    spinney("keys", "new")
    identity = KeyRing(home).identity()
    for words in (["keys", "show"], ["keys", "show", "--json"]):
        answer = spinney(*words).output
        assert identity.public.hex() in answer
        assert fingerprint(identity.public) in answer
        assert identity.private.private_bytes_raw().hex() not in answer
        assert "PRIVATE" not in answer


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", ["show", "rotate"])
def test_a_house_without_a_key_is_told_what_to_do(command: str) -> None:
    answer = spinney("keys", command)
    assert answer.exit_code == 2
    assert "spinney keys new" in answer.stderr


def test_a_key_that_others_can_read_is_refused_with_the_command_to_run(home: Path) -> None:
    spinney("keys", "new")
    (home / "keys/identity.pem").chmod(0o644)
    answer = spinney("keys", "show")
    assert answer.exit_code == 2
    assert answer.stderr.endswith(f"run: chmod 600 {home}/keys/identity.pem\n")


def test_a_key_from_the_environment_is_shown_by_its_variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, Identity.new().pem().decode())
    assert spinney("keys", "show").output.startswith(KEY_VARIABLE)
    assert not home.exists()


def test_a_rotation_is_a_document_that_the_old_key_signed(home: Path, tmp_path: Path) -> None:
    spinney("keys", "new")
    old = KeyRing(home).identity()
    answer = spinney("keys", "rotate", "-o", tmp_path / "rotation.json")
    assert answer.exit_code == 0
    document = read_document(tmp_path / "rotation.json", Rotation)
    assert document.old == old.public.hex()
    assert document.is_signed_by(old.public.hex())
    assert fingerprint(bytes.fromhex(document.new)) in answer.output
    assert KeyRing(home).identity().public == old.public
    assert "A rotation is under way" in spinney("keys", "show").output


@pytest.mark.usefixtures("home")
def test_a_second_rotation_before_the_first_is_over_is_the_same_document(tmp_path: Path) -> None:
    spinney("keys", "new")
    spinney("keys", "rotate", "-o", tmp_path / "one.json")
    spinney("keys", "rotate", "-o", tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


# ---------------------------------------------------------------------------------------------------------------
# audit


@pytest.mark.usefixtures("log")
def test_the_newest_entries_are_shown_one_per_line() -> None:
    lines = spinney("audit", "show", "--last", 2).output.splitlines()
    assert len(lines) == 2
    assert lines[1] == (
        "     3  2026-03-01 02:00:00  Sent to oak: averages and shares per variable, the number of rows (rounded), "
        "and a public key. [wood, round 3, 800 bytes]"
    )


def test_an_intact_log_is_said_to_be_intact(log: Audit) -> None:
    answer = spinney("audit", "verify")
    assert answer.exit_code == 0
    assert answer.output == f"3 lines, nothing changed or removed; the last has the hash {log.verify().chain[:16]}\n"
    assert json.loads(spinney("audit", "verify", "--json").output)["intact"] is True


def test_what_a_killed_writer_left_is_a_note(log: Audit) -> None:
    with log.path.open("ab") as file:
        file.write(b"{")
    answer = spinney("audit", "verify")
    assert answer.exit_code == 0
    assert "Note: half a line (1 bytes)" in answer.output


def test_a_changed_log_is_exit_code_2_and_the_line(log: Audit) -> None:
    log.path.write_bytes(log.path.read_bytes().replace(b'"round": 2', b'"round": 9'))
    answer = spinney("audit", "verify")
    assert (answer.exit_code, answer.stderr) == (2, "line 2 was changed\n")
    answer = spinney("audit", "verify", "--json")
    assert answer.exit_code == 2
    assert json.loads(answer.output) == {"intact": False, "problems": ["line 2 was changed"]}
    assert spinney("audit", "export").exit_code == 2


def test_a_log_is_compared_with_an_export_that_was_kept_elsewhere(log: Audit, tmp_path: Path) -> None:
    kept = tmp_path / "kept.csv"
    spinney("audit", "export", "-o", kept)
    assert spinney("audit", "verify", "--against", kept).exit_code == 0
    log.path.unlink()
    log.head_path.unlink()
    log.append(AuditEntry(direction="noted", kind="x", words="Nothing ever left."), NIGHT)
    assert spinney("audit", "verify").exit_code == 0
    answer = spinney("audit", "verify", "--against", kept)
    assert (answer.exit_code, answer.stderr) == (2, "line 1 is not what it was\nline 2 is missing\nline 3 is missing\n")


@pytest.mark.usefixtures("log")
def test_the_log_is_exported_to_a_file_or_to_stdout(tmp_path: Path) -> None:
    assert spinney("audit", "export").output.count("\n") == 4
    assert spinney("audit", "export", "--format", "json", "-o", tmp_path / "log.json").exit_code == 0
    assert len(json.loads((tmp_path / "log.json").read_text())) == 3


@pytest.mark.usefixtures("home")
def test_a_house_that_has_sent_nothing_says_so() -> None:
    assert "no entries" in spinney("audit", "show").stderr
    mistyped = spinney("audit", "verify")
    assert mistyped.exit_code == 2  # a wrong folder must not look like an intact log
    assert "there is no audit log" in mistyped.stderr


def test_the_newest_entries_are_there_for_scripts(log: Audit) -> None:
    shown = json.loads(spinney("audit", "show", "--last", 2, "--json").stdout)
    assert len(shown) == 2
    assert len(list(log.lines())) == 3
