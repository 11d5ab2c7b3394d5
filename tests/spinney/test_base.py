"""What every settings model is made from: names that may be files, and keys that are spelt right."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from spinney.base import FileName, Name, Settings, Share


class Tree(Settings):
    height: float = 1.0


def test_a_misspelt_key_is_an_error():
    with pytest.raises(ValidationError, match="hieght"):
        Tree.model_validate({"hieght": 2.0})


def test_settings_do_not_change_once_they_are_made():
    with pytest.raises(ValidationError, match="frozen"):
        Tree().height = 2.0


@pytest.mark.parametrize("name", ["con", "ash."])
def test_a_file_has_fewer_names_than_a_column(name: str):
    assert TypeAdapter(Name).validate_python(name) == name
    with pytest.raises(ValidationError, match="no dot at the end, and no device of Windows"):
        TypeAdapter(FileName).validate_python(name)


@pytest.mark.parametrize("name", ["", "7", "_x", "a b", "a/b", "a" * 65, "a\n"])
def test_what_no_column_can_be_called_no_file_can(name: str):
    for kind in (Name, FileName):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(name)


@pytest.mark.parametrize(("share", "fits"), [(0, True), (0.999, True), (1, False), (-0.1, False)])
def test_a_share_is_never_everything(share: float, fits: bool):
    try:
        TypeAdapter(Share).validate_python(share)
    except ValidationError:
        assert not fits
    else:
        assert fits
