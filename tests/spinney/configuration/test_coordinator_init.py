"""A first coordinator.yaml: it can be read, it is never written over, and a mistake leaves none behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.coordinator_init import write_coordinator
from spinney.configuration.house import read_coordinator
from spinney.errors import SourceFailed, StudyInvalid


@pytest.mark.parametrize(
    "exchange", ["../exchange", "s3://bucket/heart", "sftp://oak@host:22/x", 'a "quoted": #folder']
)
def test_what_was_answered_is_read_again(tmp_path: Path, exchange: str):
    written = write_coordinator(tmp_path / "coordinator.yaml", "oak", "home", exchange)
    assert written == read_coordinator(tmp_path / "coordinator.yaml")
    assert written.name == "oak"
    assert written.home == tmp_path / "home"
    assert written.exchange.url.endswith(exchange)


def test_comments_say_where_secrets_go_and_none_is_set(tmp_path: Path):
    write_coordinator(tmp_path / "coordinator.yaml", "oak", "home", "../exchange")
    lines = (tmp_path / "coordinator.yaml").read_text().splitlines()
    assert any("secrets" in line for line in lines)
    assert not any("secret" in line for line in lines if not line.strip().startswith("#"))


def test_a_file_that_is_there_is_left_alone(tmp_path: Path):
    file = tmp_path / "coordinator.yaml"
    file.write_text("somebody's work")
    with pytest.raises(SourceFailed, match="is there already; edit it, or give another name with --output"):
        write_coordinator(file, "oak", "home", "x")
    assert file.read_text() == "somebody's work"


def test_a_mistake_in_an_answer_leaves_no_file_behind(tmp_path: Path):
    with pytest.raises(StudyInvalid, match="name"):
        write_coordinator(tmp_path / "coordinator.yaml", "o k", "home", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path):
    with pytest.raises(SourceFailed, match="cannot be written"):
        write_coordinator(tmp_path / "nowhere" / "coordinator.yaml", "oak", "home", "x")
