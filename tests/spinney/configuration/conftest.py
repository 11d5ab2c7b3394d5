"""What people get to read about a study file."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.study_file import read_study
from spinney.errors import StudyInvalid


@pytest.fixture
def mistakes_in(tmp_path: Path):
    def mistakes(text: str | bytes) -> list[str]:
        file = tmp_path / "study.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(StudyInvalid) as caught:
            read_study(file)
        return [mistake.removeprefix(f"{tmp_path}/") for mistake in caught.value.mistakes]

    return mistakes
