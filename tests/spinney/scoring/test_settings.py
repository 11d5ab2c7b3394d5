"""The scores section of site.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.site import read_site
from spinney.errors import StudyInvalid


def written(folder: Path, scores: str) -> Path:
    path = folder / "site.yaml"
    path.write_text(f"name: ash\nhome: home\nsource: {{kind: files, table: his.csv}}\nscores: {scores}\n")
    return path


def test_paths_of_a_database_file_are_relative_to_the_site_s_file(tmp_path):
    site = read_site(written(tmp_path, "{table: {url: 'sqlite:///scores.db'}}"))
    assert site.scores.table.url == f"sqlite:///{tmp_path / 'scores.db'}"


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ("{}", "scores needs table, fhir or both"),
        ("{table: {url: 'postgresql://me:secret@db/his'}}", "url must hold no password"),
        ("{fhir: {base_url: 'ftp://x'}}", "base_url must look like"),
    ],
)
def test_wrong_settings_say_what_to_do(tmp_path, scores, words):
    with pytest.raises(StudyInvalid, match=words):
        read_site(written(tmp_path, scores))
