"""A code set becomes codes and digests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from spinney.connectors.terminology import resolve as module
from spinney.connectors.terminology.resolve import resolve
from spinney.errors import StudyInvalid
from spinney.study.codes import CodeSet
from tests.connectors.terminology.sets import ICD, OWN, SCT, code_system, codes, concept, meaning, value_set


def test_every_file_is_pinned_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    content = json.dumps(value_set("http://a", codes(SCT, "1"))).encode()
    (tmp_path / "sets" / "a.json").write_bytes(content)
    found = resolve("it", CodeSet(files=("sets/a.json",)), tmp_path)
    assert found.files == {"sets/a.json": hashlib.sha256(content).hexdigest()}


def test_descendants_of_icd_and_atc_need_no_file(tmp_path: Path) -> None:
    below = (f"{ICD}|I50", "http://www.whocc.no/atc|B01A", f"{ICD}|I50.1")
    assert meaning(tmp_path, below=below) == {ICD: ("I50*",), "http://www.whocc.no/atc": ("B01A*",)}


def test_a_file_counts_before_the_beginning(tmp_path: Path) -> None:
    own = code_system(concept("I50", concept("I50.1")), url=ICD)
    assert meaning(tmp_path, own, below=(f"{ICD}|I50",)) == {ICD: ("I50", "I50.1")}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (f"{SCT}|84114007", "code set it: no file says what is below .*; add its CodeSystem to files"),
        (f"{ICD}|I30-I52", "no file says what is below .* by its beginning; name a category"),
    ],
)
def test_what_nobody_says_is_refused(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(StudyInvalid, match=said):
        meaning(tmp_path, below=(code,))


def test_a_set_of_too_many_codes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CODES", 2)
    with pytest.raises(StudyInvalid, match="3 codes, and a study carries 2"):
        meaning(tmp_path, code_system(concept("a"), concept("b"), concept("c")))
    assert meaning(tmp_path, code_system(concept("a"), concept("b"))) == {OWN: ("a", "b")}
