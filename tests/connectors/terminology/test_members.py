"""What a set of codes means, checked word by word against plain comparisons."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from spinney.connectors.terminology.members import CodeWords, Members, Unsayable

ALPHABET = [a + b + c for a, b, c in product("xy", ("", "x", "y"), ("", "x", "y"))]


def meant(words: CodeWords) -> set[str]:
    """Of all words of up to five letters, those that it means."""
    every = {"".join(letters) for size in range(6) for letters in product("xy", repeat=size)}
    return {word for word in every if word in words.single or any(word.startswith(one) for one in words.begin)}


SETS = [
    CodeWords(frozenset(single), frozenset(begin))
    for single in ({"x"}, {"xy", "yx"}, ())
    for begin in ((), {"x"}, {"xy", "y"}, {"xyx"})
]


@pytest.mark.parametrize(("one", "other"), list(combinations(SETS, 2)))
def test_sets_add_up_and_overlap_as_their_words_do(one: CodeWords, other: CodeWords) -> None:
    assert meant(one | other) == meant(one) | meant(other)
    assert meant(one & other) == meant(one) & meant(other)


@pytest.mark.parametrize(("one", "other"), list(combinations(SETS, 2)))
def test_what_is_taken_away_is_gone_or_can_not_be_said(one: CodeWords, other: CodeWords) -> None:
    try:
        left = one.minus(other)
    except Unsayable:
        assert any(meant(CodeWords(begin=frozenset([begin]))) - meant(other) for begin in one.begin)
        assert meant(one) & meant(other)
    else:
        assert meant(left) == meant(one) - meant(other)


def test_a_set_is_written_by_system_with_stars_and_without_what_a_beginning_means_anyway() -> None:
    members = Members.of("b", ["1"]) | Members.of("a", ["I50.1", "J44"], ["I50"]) | Members.of("a", begin=["I509"])
    assert members.written() == {"a": ("I50*", "J44"), "b": ("1",)}
    assert len(members) == 3


def test_systems_do_not_mix() -> None:
    both = Members.of("a", ["1", "2"]) & Members.of("b", ["1"])
    assert both == Members()
    assert (Members.of("a", ["1"]) - Members.of("b", begin=[""])).written() == {"a": ("1",)}
