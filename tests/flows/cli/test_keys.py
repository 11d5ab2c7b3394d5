"""spinney keys: what people see of the key that a house signs with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.flows.cli import main
from spinney.house.keys import KEY_VARIABLE, Identity, KeyRing, fingerprint
from spinney.house.roster import Rotation, read_document


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPINNEY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path / "home"


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize("words", [["keys"], ["keys", "rotate"], ["audit"], ["audit", "verify"]])
def test_help_is_there_before_anything_heavy_is_imported(words: list[str]) -> None:
    heavy = {"numpy", "pandas", "pydantic", "prefect", "sklearn", "cryptography", "msgpack", "spinney.connectors"}
    code = (
        "import sys\nfrom spinney.flows.cli import main\n"
        f"main({[*words, '--help']!r}, standalone_mode=False)\nprint('HEAVY', sorted({heavy!r} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("Usage:")
    assert answer.stdout.endswith("HEAVY []\n")


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
