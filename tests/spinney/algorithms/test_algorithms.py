"""Algorithms are found by their files, and a study names them by what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from spinney import algorithms
from spinney.plugins import ALGORITHMS
from spinney.study.study import AnyAlgorithm


def test_every_file_is_an_algorithm():
    files = {path.stem for path in Path(algorithms.__file__).parent.glob("*.py")} - {"__init__"}
    assert {found.settings.__module__.rpartition(".")[2] for found in ALGORITHMS.values()} == files


def test_an_algorithm_is_called_as_its_settings_say():
    for name, found in ALGORITHMS.items():
        assert found.settings().name == name


def test_every_step_that_a_coordinator_may_ask_is_a_method_of_the_site():
    for found in ALGORITHMS.values():
        part = found.site_part
        assert part.last_step in part.steps
        assert all(callable(getattr(part, step)) for step in part.steps | part.first_steps)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_settings_are_read_by_the_name_of_the_algorithm(name: str):
    assert type(TypeAdapter(AnyAlgorithm).validate_python({"name": name})) is ALGORITHMS[name].settings


def test_an_algorithm_that_nobody_offers_is_refused():
    with pytest.raises(ValidationError):
        TypeAdapter(AnyAlgorithm).validate_python({"name": "oracle"})
