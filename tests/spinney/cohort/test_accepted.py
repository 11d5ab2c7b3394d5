"""What a site says it has nothing of."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spinney.cohort.accepted import Accepted


def test_a_name_is_accepted_as_a_whole_or_by_its_beginning_and_for_one_thing_only() -> None:
    said = Accepted(empty=("troponin", "lab_*"))
    assert said.allows("empty", "troponin")
    assert said.allows("empty", "lab_718-7")
    assert not said.allows("empty", "troponin_t")
    assert not said.allows("constant", "troponin")


@pytest.mark.parametrize("word", ["*", "la*b", "", "[a-z]", "a?", "two words"])
def test_everything_at_once_is_not_accepted(word: str) -> None:
    with pytest.raises(ValidationError):
        Accepted(empty=(word,))


def test_what_is_accepted_is_outdated_when_it_is_there_and_not_when_another_study_asks_for_it() -> None:
    said = Accepted(empty=("troponin", "lab_*", "elsewhere"))
    assert said.outdated("empty", ["lab_a"], ["troponin", "lab_a", "lab_b"]) == ["troponin"]
