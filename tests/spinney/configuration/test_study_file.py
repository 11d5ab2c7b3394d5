"""study.yaml: what people get to read when they made mistakes, and what is written for them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.configuration.study_file import LARGEST_FILE, read_study, write_study
from spinney.errors import StudyInvalid
from spinney.study.settings import Feature, ForestSettings, Label, Privacy
from spinney.study.study import Study
from tests.spinney.configuration.studies import CLINICAL, GOOD, study_from


def test_a_good_study_is_read(tmp_path):
    study = study_from(tmp_path, GOOD)
    assert study.features[0].range == (18.0, 100.0)
    assert study.forest.trees == 50


def test_all_mistakes_are_listed_at_once_in_the_order_of_their_lines(mistakes_in):
    text = (
        GOOD.replace("trees: 50", "trees: many").replace("[18, 100]", "[18, old]").replace("kind: binary", "kind: yes")
    )
    assert mistakes_in(text) == [
        "study.yaml:3 features[0].range[1]: needs a number",
        "study.yaml:5 features[1].kind: must be 'continuous', 'binary' or 'categorical'",
        "study.yaml:12 forest.trees: needs a whole number",
    ]


def test_a_file_that_is_too_large_is_not_parsed(mistakes_in):
    assert mistakes_in("#" * (LARGEST_FILE + 1)) == ["study.yaml: larger than 5 MB, so this is no settings file"]


def test_a_file_that_is_not_there_is_said_to_be_unreadable(tmp_path):
    with pytest.raises(StudyInvalid, match=r"none\.yaml: cannot be read \(No such file"):
        read_study(tmp_path / "none.yaml")


def test_a_written_study_names_only_what_differs_and_one_feature_per_line(tmp_path):
    study = Study(
        name="heart",
        features=(
            Feature(name="age", kind="continuous", unit="a", range=(18, 100)),
            Feature(name="nyha", kind="categorical", categories=("I", "no")),
        ),
        label=Label(name="died"),
        forest=ForestSettings(trees=50),
    )
    file = tmp_path / "study.yaml"
    write_study(study, file, ["bmi is left out."])
    assert file.read_text().splitlines() == [
        "# What all sites sign.",
        "# Check it with: spinney study check study.yaml",
        "# bmi is left out.",
        "",
        "# Short name of the study; part of every message's address.",
        "name: heart",
        "",
        "# The variables that trees may ask.",
        "features:",
        "  - {name: age, kind: continuous, unit: a, range: [18, 100]}",
        "  - {name: nyha, kind: categorical, categories: [I, 'no']}",
        "",
        "# The outcome to predict.",
        "label:",
        "  name: died",
        "",
        "# How every site grows its trees.",
        "forest:",
        "  trees: 50",
    ]


def test_a_written_algorithm_keeps_its_name_even_if_all_else_is_default(tmp_path):
    other = next(name for name in algorithm_names() if name != "bofrf")
    study = study_from(tmp_path, GOOD + f"algorithm: {{name: {other}}}\n")
    write_study(study, tmp_path / "again.yaml")
    assert read_study(tmp_path / "again.yaml") == study


def test_a_written_cohort_definition_is_read_again(tmp_path):
    study = study_from(tmp_path, CLINICAL)
    write_study(study, tmp_path / "again.yaml")
    assert read_study(tmp_path / "again.yaml") == study


def algorithm_names() -> list[str]:
    return list(Study.model_json_schema()["properties"]["algorithm"]["discriminator"]["mapping"])


odd_words = st.one_of(
    st.sampled_from(
        ["no", "1", "1e5", "1.0e+3", "null", "~", "12:30", "a: b", "- x", "#", "'", '"', "{x}", "007", "True"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
)


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(odd_words, min_size=1, max_size=5, unique=True),
    low=st.floats(-1e9, 1e9),
    width=st.floats(1e-3, 1e9),
    floor=st.integers(10, 10_000),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
)
def test_what_is_written_is_read_again_as_the_same_study(tmp_path_factory, words, low, width, floor, text):
    study = Study(
        name="heart",
        description=text,
        features=(
            Feature(name="x", kind="continuous", range=(low, low + width), unit="mm[Hg]"),
            Feature(name="y", kind="categorical", categories=tuple(words)),
        ),
        label=Label(name="died", positive=tuple(words)),
        privacy=Privacy(smallest_cohort=floor),
    )
    file = tmp_path_factory.mktemp("study") / "study.yaml"
    write_study(study, file)
    assert read_study(file) == study
    assert read_study(file).digest == study.digest


def test_a_study_that_cannot_be_written_is_an_error_in_a_line(tmp_path):
    with pytest.raises(StudyInvalid, match=r"study\.yaml: cannot be written \(No such file or directory\)"):
        write_study(study_from(tmp_path, GOOD), tmp_path / "nowhere" / "study.yaml")
