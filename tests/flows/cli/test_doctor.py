"""spinney doctor, on houses where something is really broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spinney.demo.fhir_server import DemoFhirServer
from spinney.doctor.findings import LOCK, check_versions
from spinney.flows.cli import main
from spinney.house.keys import KEY_VARIABLE, KeyRing

NOBODY = 65534
DEAD = "http://127.0.0.1:1"  # no program may listen there without being root, and none does
STUDY = """\
name: wood
features:
  - {name: age, kind: continuous, range: [0, 120]}
label: {name: died}
"""


class Well(BaseHTTPRequestHandler):
    """Says under every path that it is well, at a time that the test chooses."""

    clock = timedelta(0)

    def do_GET(self) -> None:
        self.send_response_only(200)
        self.send_header("Date", format_datetime(datetime.now(UTC) + self.clock, usegmt=True))
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Callable[[timedelta], str]]:
    """Starts a server whose clock is wrong by so much, and says where it is."""
    started: list[ThreadingHTTPServer] = []

    def start(clock: timedelta = timedelta(0)) -> str:
        handler = type("Well", (Well,), {"clock": clock})
        started.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=started[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{started[-1].server_port}"

    yield start
    for one in started:
        one.shutdown()
        one.server_close()


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with a key, an approved study, an exchange and files to read; everybody may pass through its parents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("PREFECT_API_URL", "")
    for folder in ("exchange", "fhir"):
        (tmp_path / folder).mkdir()
    write_site(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    KeyRing(tmp_path / "home").create()
    assert spinney("site", "approve", "study.yaml", "--yes").exit_code == 0
    return tmp_path


def write_site(folder: Path, source: str = "{kind: files, path: fhir}", **more: str) -> None:
    lines = [f"{key}: {value}" for key, value in more.items()]
    site = ["name: ash", "home: home", f"source: {source}", "exchange: {url: exchange}", *lines]
    (folder / "site.yaml").write_text("\n".join(site))


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def findings(*words: object) -> dict[str, tuple[str, str]]:
    """By check: its state and words."""
    told = json.loads(spinney("doctor", "--json", *words).stdout)
    return {one["check"]: (one["state"], one["words"]) for one in told["findings"]}


def test_a_healthy_site_has_one_line_per_check_and_exit_code_0(house: Path, server: Any, monkeypatch: Any) -> None:
    write_site(house, registry=f"{{tracking: '{server()}'}}")
    monkeypatch.setenv("PREFECT_API_URL", f"{server()}/api")
    answer = spinney("doctor", "--least-gib", "0")
    assert answer.exit_code == 0, answer.output
    checks = "python versions settings home keys disk prefect exchange rights source registry clock"
    assert [line.split()[0] for line in answer.stdout.splitlines()] == ["ok"] * 12
    assert " ".join(line.split()[1] for line in answer.stdout.splitlines()) == checks


def test_the_trial_message_is_gone_afterwards(house: Path) -> None:
    assert findings()["exchange"][0] == "ok"
    assert [path for path in (house / "exchange").rglob("*") if path.is_file()] == []


def test_a_coordinator_is_looked_at_without_source_and_registry(house: Path) -> None:
    (house / "coordinator.yaml").write_text("name: oak\nhome: oak\nexchange: {url: exchange}")
    told = findings("--coordinator", "coordinator.yaml")
    assert told["settings"] == ("ok", "coordinator.yaml, oak")
    assert {"source", "registry"}.isdisjoint(told)
    assert told["keys"][0] == "warning"


def test_without_a_house_only_the_machine_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = spinney("doctor")
    assert answer.exit_code == 0
    assert "make one: spinney site init" in answer.stdout


def test_a_mistake_in_the_settings_is_a_finding_with_its_line(house: Path) -> None:
    (house / "site.yaml").write_text("name: ash\nsauce: {kind: files}")
    assert spinney("doctor").exit_code == 2
    state, words = findings()["settings"]
    assert state == "wrong"
    assert "site.yaml:2 sauce" in words


# ---------------------------------------------------------------------------------------------------------------
# The house's folder


def test_a_key_that_others_can_read_is_wrong_and_the_line_says_chmod(house: Path) -> None:
    key = house / "home/keys/identity.pem"
    key.chmod(0o644)
    assert findings()["keys"] == ("wrong", f"{key} is open to others (mode 0644); run: chmod 600 {key}")
    assert spinney("doctor").exit_code == 2


def test_a_home_that_others_can_enter_is_wrong(house: Path) -> None:
    (house / "home").chmod(0o755)
    state, words = findings()["home"]
    assert (state, words.endswith(f"run: chmod 700 {house / 'home'}")) == ("wrong", True)


def test_a_damaged_key_is_wrong(house: Path) -> None:
    (house / "home/keys/identity.pem").write_text("no key")
    assert findings()["keys"][0] == "wrong"


def test_a_small_disk_is_wrong(house: Path) -> None:
    mount = shutil.which("mount") or "mount"
    disk = house / "disk"
    disk.mkdir()
    command = [mount, "-t", "tmpfs", "-o", "size=400k,mode=700", "tmpfs", str(disk)]
    mounted = os.getuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not mounted:
        pytest.skip("only root can mount a small disk")
    try:
        (house / "site.yaml").write_text("name: ash\nhome: disk\nsource: {kind: files, path: fhir}")
        state, words = findings()["disk"]
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
    assert (state, "make room" in words) == ("wrong", True)


@pytest.mark.usefixtures("house")
def test_more_room_can_be_asked_for() -> None:
    assert findings("--least-gib", 1e9)["disk"][0] == "wrong"
    assert findings("--least-gib", 0)["disk"][0] == "ok"


# ---------------------------------------------------------------------------------------------------------------
# The exchange


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users of this machine can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_an_exchange_that_may_only_be_read_is_wrong(house: Path, shared: Path) -> None:
    findings()  # imports everything while the files can be read
    (house / "site.yaml").write_text(f"name: ash\nsource: {{kind: files, path: fhir}}\nexchange: {{url: {shared}}}")
    shared.chmod(0o555)
    user = os.geteuid()
    house.chmod(0o755)
    from spinney.configuration.site import read_site
    from spinney.doctor.reach import Clocks, check_exchange

    site = read_site("site.yaml")
    try:
        if user == 0:  # root may write everywhere
            os.seteuid(NOBODY)
        told = list(check_exchange(site.model_copy(update={"home": shared}), Clocks()))
    finally:
        os.seteuid(user)
    assert [one.state for one in told] == ["wrong"]
    assert "give this house the right" in told[0].words


def test_an_exchange_that_is_not_there_is_wrong(house: Path) -> None:
    (house / "exchange").rmdir()
    state, words = findings()["exchange"]
    assert (state, "does not exist" in words) == ("wrong", True)


def test_a_secret_that_is_not_set_is_named(house: Path) -> None:
    site = (house / "site.yaml").read_text().replace("{url: exchange}", "{url: exchange, secrets: {key: WOOD_KEY}}")
    (house / "site.yaml").write_text(site)
    assert "WOOD_KEY" in findings()["exchange"][1]


def test_a_house_that_can_write_under_anothers_name_is_warned(house: Path) -> None:
    (house / "exchange/wood/beech/1").mkdir(parents=True)
    state, words = findings()["rights"]
    assert (state, "write as beech" in words) == ("warning", True)
    assert [path for path in (house / "exchange").rglob("*") if path.is_file()] == []


def test_a_house_that_can_write_under_its_own_name_only_is_fine(house: Path) -> None:
    (house / "exchange/wood/beech").mkdir(parents=True)
    (house / "exchange/wood/beech/0").write_text("in the way, as a right that is not given would be")
    assert findings()["rights"] == ("ok", "can't write as beech")


# ---------------------------------------------------------------------------------------------------------------
# What has to answer


def test_servers_that_are_dead_are_named_with_what_to_look_at(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_site(house, f"{{kind: fhir-rest, base_url: '{DEAD}/fhir'}}", registry=f"{{tracking: '{DEAD}'}}")
    monkeypatch.setenv("PREFECT_API_URL", f"{DEAD}/api")
    told = findings()
    assert {check: told[check][0] for check in ("prefect", "source", "registry")} == dict.fromkeys(
        ("prefect", "source", "registry"), "wrong"
    )
    assert "PREFECT_API_URL" in told["prefect"][1]
    assert "registry.tracking" in told["registry"][1]


def test_a_fhir_server_that_answers_is_fine(house: Path) -> None:
    with DemoFhirServer(house / "fhir") as server:
        write_site(house, f"{{kind: fhir-rest, base_url: '{server.base_url}'}}")
        assert findings()["source"][0] == "ok"


def test_a_database_that_is_not_there_is_wrong(house: Path) -> None:
    write_site(house, "{kind: sql, url: 'sqlite:///gone.sqlite', table: 'SELECT 1'}")
    state, words = findings()["source"]
    assert (state, "is not there" in words) == ("wrong", True)


def test_a_registry_that_is_no_database_is_wrong(house: Path) -> None:
    (house / "home/registry").mkdir()
    (house / "home/registry/mlflow.db").write_text("no database")
    assert findings()["registry"][0] == "wrong"


def test_a_clock_that_is_an_hour_off_is_wrong(house: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (house / "site.yaml").write_text("name: ash\nhome: home\nsource: {kind: files, path: fhir}")
    monkeypatch.setenv("PREFECT_API_URL", f"{server(timedelta(hours=1))}/api")
    state, words = findings()["clock"]
    assert (state, "behind Prefect; set this machine's clock" in words) == ("wrong", True)


def test_nobody_who_tells_the_time_is_a_warning(house: Path) -> None:
    (house / "site.yaml").write_text("name: ash\nhome: home\nsource: {kind: files, path: fhir}")
    assert findings()["clock"][0] == "warning"


# ---------------------------------------------------------------------------------------------------------------
# Packages


def test_the_versions_here_are_those_of_the_lock_file() -> None:
    assert LOCK.exists()
    assert check_versions().state == "ok", check_versions().words


def test_a_package_that_is_not_as_locked_is_a_warning(tmp_path: Path) -> None:
    lock = tmp_path / "uv.lock"
    lock.write_text('[[package]]\nname = "click"\nversion = "0.1"\n[[package]]\nname = "spinney"\n')
    finding = check_versions(lock=lock)
    assert (finding.state, "and not 0.1; to have what was tested" in finding.words) == ("warning", True)


def test_a_package_that_is_too_old_or_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "needy-1.0.dist-info/METADATA"
    metadata.parent.mkdir()
    needs = ["numpy>=99", "no-such-package", "no-such-extra; extra == 'more'"]
    metadata.write_text(
        "Metadata-Version: 2.1\nName: needy\nVersion: 1.0\n" + "".join(f"Requires-Dist: {one}\n" for one in needs)
    )
    monkeypatch.syspath_prepend(tmp_path)
    finding = check_versions("needy")
    assert finding.state == "wrong"
    assert "needy needs >=99" in finding.words
    assert "no-such-package is missing" in finding.words
    assert "no-such-extra" not in finding.words
