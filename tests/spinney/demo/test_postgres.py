"""A PostgreSQL server for as long as somebody needs it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from spinney.demo.postgres import PREFIX, NoPostgres, postgres_server


def test_it_answers_on_a_socket_and_leaves_nothing_behind():
    with postgres_server() as url:
        assert url.host is None
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(text("SHOW listen_addresses")).scalar() == ""
        engine.dispose()
        socket = Path(str(url.query["host"]))
        (folder,) = (one for one in (socket, *socket.parents) if one.name.startswith(PREFIX))
        assert folder.exists()
    assert not folder.exists()


def test_nobody_s_environment_is_changed():
    before = dict(os.environ)
    with postgres_server():
        assert os.environ.get("XDG_RUNTIME_DIR") == before.get("XDG_RUNTIME_DIR")
    assert dict(os.environ) == before


def test_without_the_package_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("pgserver", "pgserver.postgres_server"):  # a test before this one may have imported it
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NoPostgres, match=r"pip install 'spinney\[demo\]'"), postgres_server():
        pytest.fail("a server without the package")
    assert list(tmp_path.iterdir()) == []
