"""site.yaml: paths are relative to it, and a mistake is a line that says what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.configuration.site import read_site
from spinney.errors import SourceFailed, StudyInvalid
from tests.made_up import NOW, WEIGHED, pull_at, study, write

SITE = "name: north\nsource: {kind: files, path: fhir}\n"


def test_paths_in_a_site_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    write(tmp_path / "fhir", WEIGHED)
    own = read_site(tmp_path / "site.yaml")
    assert own.vault.folder == tmp_path / "home" / "vault"
    assert pull_at(study(), own, now=NOW).cohort.rows == 1


def test_a_database_file_in_a_site_file_is_relative_to_it(tmp_path: Path) -> None:
    text = "name: north\nsource: {kind: sql, url: 'sqlite:///his.db', table: SELECT 1}\n"
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(SourceFailed) as failed:
        pull_at(study(), read_site(tmp_path / "site.yaml"), now=NOW)
    assert str(tmp_path / "his.db") in str(failed.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: north\n", "source: is missing"),
        ("name: north\nsource: {kind: file, path: x}\n", "did you mean files?"),
        (SITE + "unit: {a: b}\n", "unit: unknown key; did you mean units?"),
        (SITE + "validate: some\n", "validate: must be"),
        ("name: n\nsource: {kind: sql, url: 'postgresql://u:p@h/d', table: x}\n", "password_env"),
        ("name: n\nsource: {kind: sql, url: 'postgresql://u@h/d'}\n", "either events"),
        ("name: n\nsource: {kind: sql, url: 'sqlite:///x', events: {Observations: x}}\n", "did you mean Observation?"),
    ],
)
def test_a_mistake_in_a_site_file_is_one_line_that_says_what_to_write(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(StudyInvalid) as invalid:
        read_site(tmp_path / "site.yaml")
    assert any(says in mistake for mistake in invalid.value.mistakes), invalid.value.mistakes
