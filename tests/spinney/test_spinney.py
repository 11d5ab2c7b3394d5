"""`import spinney` is quick, and its names are there when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import spinney


def test_importing_spinney_loads_nothing_that_takes_time():
    words = "import sys, spinney; print(sorted({'numpy', 'pandas', 'pydantic', 'sklearn', 'prefect'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_that_is_offered_is_there():
    for name in spinney.__all__:
        assert getattr(spinney, name) is not None
        assert name in dir(spinney)
    assert spinney.__version__ == version("spinney")


def test_a_name_that_is_not_there_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        spinney.magic  # noqa: B018


def test_a_room_does_not_take_a_name_s_place():
    import spinney.trial.simulate as room

    assert spinney.simulate is not room
    assert callable(spinney.simulate)
