"""Files of code sets: bounded, and refused with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.connectors.terminology import set_files
from spinney.connectors.terminology.set_files import resource_in, set_file
from spinney.errors import StudyInvalid


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "neither JSON nor a table"),
        ("[" * 200_000, "neither JSON nor a table"),
        ("[]", "no ValueSet and no CodeSystem"),
        ('{"resourceType": "Patient"}', "no ValueSet and no CodeSystem"),
    ],
)
def test_what_is_no_value_set_and_no_code_system_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(StudyInvalid, match=said):
        resource_in(tmp_path / "x.json")


def test_a_resource_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_files, "LARGEST_RESOURCE", 1 << 20)
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate((1 << 20) + 1)
    with pytest.raises(StudyInvalid, match="larger than 1 MiB"):
        resource_in(tmp_path / "x.json")


def test_a_file_that_is_not_there_or_is_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("folder", "nothing.json"):
        with pytest.raises(StudyInvalid, match=f"{name}: no such file"):
            set_file(tmp_path, name)
