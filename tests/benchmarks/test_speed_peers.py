"""Peers have environments of their own that are made once, and what can't be made says why."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import speed_peers
from benchmarks.speed_peers import NotInstalled, Peer


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Every call that makes an environment; the packages stay away, so that no registry is asked."""
    calls = []

    def commands(peer):
        calls.append(peer.name)
        last = [sys.executable, "-c", "" if peer.name == "good" else "raise SystemExit('no such package')"]
        return [[sys.executable, "-m", "venv", "--without-pip", str(peer.folder)], last]

    monkeypatch.setattr(speed_peers, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(Peer, "_commands", commands)
    return calls


def test_an_environment_is_made_once(made):
    peer = Peer("good", ("wood==1",))
    assert subprocess.run([peer.ready(), "-c", ""]).returncode == 0
    assert peer.ready() == peer.ready(make=False) == peer.python
    assert made == ["good"]


def test_another_version_gets_a_new_environment(made):
    Peer("good", ("wood==1",)).ready()
    Peer("good", ("wood==2",)).ready()
    assert made == ["good", "good"]


def test_an_environment_whose_interpreter_is_gone_is_made_again(made):
    peer = Peer("good", ("wood==1",))
    peer.ready().unlink()
    peer.ready()
    assert made == ["good", "good"]


def test_a_peer_that_does_not_install_says_why_and_is_tried_again(made):
    for _ in range(2):
        with pytest.raises(NotInstalled, match="bad does not install: no such package"):
            Peer("bad", ("wood==1",)).ready()
    assert made == ["bad", "bad"]


def test_a_quick_run_makes_nothing_and_says_who_does(made):
    with pytest.raises(NotInstalled, match=r"python -m benchmarks\.speed_peers"):
        Peer("good", ("wood==1",)).ready(make=False)
    assert made == []


@pytest.mark.usefixtures("made")
def test_a_library_is_imported_from_its_environment_after_our_own(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    peer = Peer("good", ("wood==1",))
    peer.importable()
    assert sys.path[-1].startswith(str(peer.folder))
