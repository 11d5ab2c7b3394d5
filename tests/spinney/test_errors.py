"""Errors carry a message for people, numbers, and no more than one line of somebody else's words."""

from __future__ import annotations

import pytest

from spinney import errors
from spinney.errors import LONGEST_REASON, CohortRejected, SourceFailed, SpinneyError, StudyInvalid, in_short


def test_every_error_is_one_that_a_command_can_tell():
    made = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert all(issubclass(one, SpinneyError) for one in made)
    drawn = {line.split()[-1] if line.endswith("Error") else line.split()[1] for line in _tree()}
    assert drawn == {one.__name__ for one in made} - {"SpinneyError"}


def _tree() -> list[str]:
    """The lines of the tree in the module's docstring, without its root and its strokes."""
    return [line.replace("│", " ") for line in (errors.__doc__ or "").splitlines() if "──" in line]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (CohortRejected("age between 0 and 120", 14), "age between 0 and 120 (14 failed)"),
        (CohortRejected("adults", 0, "look at the source"), "adults (0 failed): look at the source"),
        (CohortRejected("label is known"), "label is known"),
        (StudyInvalid(["study.yaml:3 a", "study.yaml:9 b"]), "study.yaml:3 a\nstudy.yaml:9 b"),
    ],
)
def test_a_rule_and_how_often_it_failed_is_all_that_is_told(error: SpinneyError, words: str):
    assert str(error) == words


def test_a_source_that_failed_is_not_asked_again_unless_it_says_so():
    assert not SourceFailed("the folder is not there").transient


def test_somebody_else_s_words_become_one_line_that_can_be_shown():
    assert in_short("gone\n\x1b[31mforever\x1b[0m\t now\r\n") == "gone [31mforever [0m now"


def test_a_long_story_is_cut_off():
    assert len(in_short("because " * 10_000)) <= LONGEST_REASON


def test_what_is_short_already_stays_as_it_is():
    said = in_short("no answer\n to  grow")
    assert said == in_short(said) == "no answer to grow"
