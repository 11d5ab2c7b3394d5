"""A draft of an impact assessment says what the study says, and marks what only people know."""

from __future__ import annotations

import re

import pytest

from spinney.reports.dpia import OPEN, NoFigures, dpia_page, read_figures
from spinney.study.study import Study

PLAIN = {"name": "wood", "features": [{"name": "age", "kind": "continuous", "range": [0, 120], "unit": "a"}]}


def told(**more: object) -> str:
    study = Study.model_validate({**PLAIN, "label": {"name": "fell"}, **more})
    return " ".join(re.sub(r"<[^>]+>", " ", dpia_page(study, "ash", None, ["some averages"])).split())


def test_what_the_study_does_not_say_is_left_to_people() -> None:
    said = told()
    for what in ("what the model is for", "the legal basis", "the permit", "the houses of the study", "date, name and"):
        assert f"{OPEN}{what}" in said
    assert "age continuous 0 to 120 a finished tables" in said
    assert "some averages" in said


def test_what_it_says_is_not() -> None:
    said = told(purpose="Fewer falls.", legal_basis="Art. 9(2)(j)")
    assert "purpose Fewer falls." in said
    assert f"{OPEN}the legal basis" not in said


@pytest.mark.parametrize(
    ("mode", "words"),
    [("masked", "once, if all have signed it"), ("ring", "from site to site"), ("trusted-third-party", "every site")],
)
def test_the_measure_for_counts_is_the_study_s(mode: str, words: str) -> None:
    assert words in told(privacy={"secure_sum": mode})


def test_consent_is_told() -> None:
    assert "only patients who agree" in told(consent="required")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"part": "x", "machine": "y", "figures": [{"name": "a", "runs": []}]}']
)
def test_a_file_without_figures_is_refused(content: bytes) -> None:
    with pytest.raises(NoFigures):
        read_figures(content)
