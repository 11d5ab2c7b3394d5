"""YAML in which every value has its line, and nothing can mean two things."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from spinney.configuration.study_file import read_settings
from tests.spinney.configuration.studies import GOOD, study_from


def test_no_stays_text_and_is_not_read_as_false(tmp_path):
    assert study_from(tmp_path, GOOD).features[2].categories == ("mild", "no", "1")


def test_a_key_that_is_given_twice_is_a_mistake_beside_the_others(mistakes_in):
    assert mistakes_in(GOOD.replace("trees: 50", "trees: 50\n  trees: 60\n  max_depth: deep")) == [
        "study.yaml:13 trees is given twice, first on line 12",
        "study.yaml:14 forest.max_depth: needs a whole number",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("name: [heart", "study.yaml:1 not readable as YAML: expected ',' or ']', but got '<stream end>'"),
        ("name: heart\n\tversion: 1", "study.yaml:2 a tab cannot indent YAML; use spaces"),
        ("name: a\n  b: c", "study.yaml:2 a colon where none can be: check the indentation, or put the text in quotes"),
        ("name: &a heart\nlabel: *a", "study.yaml:2 aliases (*name) are not allowed; write it out"),
        (
            "name: !!python/object/apply:os.system [id]",
            "study.yaml:1 the tag tag:yaml.org,2002:python/object/apply:os.system",
        ),
        ("name: !!int five", "study.yaml:1 the tag tag:yaml.org,2002:int is not allowed"),
        ("a: 1\n---\nb: 2", "study.yaml:2 not readable as YAML: but found another document"),
        ("", "study.yaml:1 the file is empty"),
        ("just words", "study.yaml:1 needs lines of the form `key: value`"),
        ("[" * 5000, "study.yaml:1 the file is nested too deeply"),
        ("name: \x00", "study.yaml:1 the file holds characters that YAML does not allow"),
        ("? [a, b]\n: c", "study.yaml:1 a key must be one word"),
        (b"name: heart\nlabel: \xff", "study.yaml:2 not UTF-8: save the file with that encoding"),
    ],
)
def test_what_is_no_settings_file_is_one_line(mistakes_in, text, mistake):
    assert mistakes_in(text)[0].startswith(mistake)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("12:30", "12:30"),
        ("2024-01-31", "2024-01-31"),
        ("007", "007"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("1_000", "1_000"),
    ],
)
def test_only_plain_decimals_true_false_and_null_are_not_text(tmp_path, written, read):
    class Note(BaseModel):
        text: str

    file = tmp_path / "note.yaml"
    file.write_text(f"text: {written}\n")
    assert read_settings(file, Note).text == read
