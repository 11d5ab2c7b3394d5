"""Processes of the demo: they end with whoever started them, and know nobody's Prefect settings."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from spinney.flows.demo.prefect_server import (
    PrefectServer,
    ServerFailed,
    clean_environment,
    free_port,
    quiet_settings,
    start_process,
    stop_process,
    template_file,
    wait_until,
)

FOREVER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {FOREVER}"


def test_a_free_port_can_be_listened_on_here():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))
        listener.listen()


def test_nobody_s_prefect_settings_reach_a_demo_and_all_else_does(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PREFECT_API_URL", "https://hospital.example/api")
    monkeypatch.setenv("WOOD", "here")
    environment = clean_environment()
    assert environment["WOOD"] == "here"
    assert not [name for name in environment if name.startswith("PREFECT_")]


def test_everything_of_a_server_is_in_its_own_folder_and_nobody_is_told(tmp_path: Path):
    settings = quiet_settings(tmp_path)
    paths = [value for name, value in settings.items() if name.endswith(("_HOME", "_PATH"))]
    assert len(paths) == 3
    assert all(Path(value).is_relative_to(tmp_path) for value in paths)
    assert settings["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"


@pytest.mark.parametrize("code", [FOREVER, STUBBORN], ids=["polite", "stubborn"])
def test_a_process_is_stopped_also_when_it_does_not_want_to(tmp_path: Path, code: str):
    log = tmp_path / "it.log"
    process = start_process([sys.executable, "-c", code], dict(os.environ), log)
    assert wait_until(lambda: "up" in log.read_text(), 30)
    stop_process(process, patience=0.2)
    assert process.poll() is not None
    stop_process(process, patience=0.2)


def test_what_a_process_says_is_added_to_its_log(tmp_path: Path):
    log = tmp_path / "it.log"
    for _ in range(2):
        start_process([sys.executable, "-c", "print('said')"], dict(os.environ), log, outlives=True).wait(30)
    assert log.read_text() == "said\nsaid\n"
    assert not (tmp_path / "it.pid").exists()


def test_a_server_that_dies_at_once_says_where_its_last_words_are(tmp_path: Path):
    (tmp_path / "template.db").write_bytes(b"no database")
    server = PrefectServer(tmp_path / "prefect", tmp_path / "template.db", {"PREFECT_SERVER_API_PORT": "no port"})
    with pytest.raises(ServerFailed, match=r"its last words are in .*server\.log"):
        server.start()
    assert "no port" in server.log


def test_the_database_is_kept_for_this_version_of_prefect_only(tmp_path: Path):
    import prefect

    assert template_file(tmp_path).name == f"prefect-{prefect.__version__}.db"


def test_waiting_ends_with_what_was_found_or_when_the_time_is_over():
    found = iter([0, 0, "it"])
    assert wait_until(lambda: next(found), 30) == "it"
    assert wait_until(lambda: "", 0) == ""
