"""What all sites sign has one name, and another name as soon as a word changes."""

from __future__ import annotations

from spinney.study import Study

WORDS = {"name": "s", "features": [{"name": "a", "kind": "binary"}], "label": {"name": "y"}}


def test_the_same_words_have_the_same_digest() -> None:
    assert Study.model_validate(WORDS).digest == Study.model_validate(WORDS).digest


def test_a_copy_with_another_setting_has_another_digest() -> None:
    study = Study.model_validate(WORDS)
    before = study.digest
    assert study.model_copy(update={"version": 2}).digest != before
    assert study.with_settings(split={"seed": 7}).digest != before
