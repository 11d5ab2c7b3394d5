"""study.yaml: what people get to read when they made mistakes, and what is written for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from spinney.configuration.study_file import LARGEST_FILE, read_settings, read_study, write_study
from spinney.errors import StudyInvalid
from spinney.study.settings import Feature, ForestSettings, Label, Privacy
from spinney.study.study import Study

GOOD = """\
name: heart
features:
  - {name: age, kind: continuous, range: [18, 100]}
  - name: smoker
    kind: binary
  - name: nyha
    kind: categorical
    categories: [mild, no, "1"]
label:
  name: died
forest:
  trees: 50
"""

CLINICAL = """\
name: readmission
features:
  - {name: age, kind: continuous, unit: a, range: [18, 110], source: {patient: age}}
  - name: hba1c
    kind: continuous
    unit: "%"
    range: [3, 20]
    source: {kind: Observation, codes: [http://loinc.org|4548-4], statistic: last, window: 365d}
label: {name: readmitted, source: {outcome: index-event, horizon: 30d}}
cohort:
  index: {kind: Encounter, classes: [IMP], at: end}
  since: 2020-01-01
  quality:
    largest_missing: {hba1c: 0.8}
    rules: [{name: old enough, column: age, comparison: ">", than: 17}]
"""


@pytest.fixture
def mistakes_in(tmp_path: Path):
    def mistakes(text: str | bytes) -> list[str]:
        file = tmp_path / "study.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(StudyInvalid) as caught:
            read_study(file)
        return [mistake.removeprefix(f"{tmp_path}/") for mistake in caught.value.mistakes]

    return mistakes


def study_from(tmp_path: Path, text: str) -> Study:
    file = tmp_path / "study.yaml"
    file.write_text(text)
    return read_study(file)


def test_a_good_study_is_read(tmp_path):
    study = study_from(tmp_path, GOOD)
    assert study.features[0].range == (18.0, 100.0)
    assert study.forest.trees == 50


def test_no_stays_text_and_is_not_read_as_false(tmp_path):
    assert study_from(tmp_path, GOOD).features[2].categories == ("mild", "no", "1")


def test_all_mistakes_are_listed_at_once_in_the_order_of_their_lines(mistakes_in):
    text = (
        GOOD.replace("trees: 50", "trees: many").replace("[18, 100]", "[18, old]").replace("kind: binary", "kind: yes")
    )
    assert mistakes_in(text) == [
        "study.yaml:3 features[0].range[1]: needs a number",
        "study.yaml:5 features[1].kind: must be 'continuous', 'binary' or 'categorical'",
        "study.yaml:12 forest.trees: needs a whole number",
    ]


def test_a_mistake_in_the_only_feature_is_not_also_a_lack_of_features(mistakes_in):
    text = "name: heart\nlabel: {name: died}\nfeatures:\n  - {name: age, kind: binary, zzz: 1}\n"
    assert [mistake.partition(":")[2].split()[:2] for mistake in mistakes_in(text)] == [["4", "features[0].zzz:"]]


def test_a_misspelt_key_is_answered_with_the_one_that_was_meant(mistakes_in):
    assert mistakes_in(GOOD.replace("trees:", "tres:")) == [
        "study.yaml:12 forest.tres: unknown key; did you mean trees?"
    ]


def test_a_misspelt_key_in_a_list_knows_the_keys_of_that_list(mistakes_in):
    assert "study.yaml:8 features[2].categorys: unknown key; did you mean categories?" in mistakes_in(
        GOOD.replace("categories:", "categorys:")
    )


def test_a_key_that_is_like_no_other_is_answered_with_what_is_known(mistakes_in):
    (mistake,) = mistakes_in(GOOD + "split: {zzz: 1}\n")
    assert mistake == "study.yaml:13 split.zzz: unknown key; known here: newest, seed, test, validation"


def test_a_misspelt_word_is_answered_with_the_one_that_was_meant(mistakes_in):
    (mistake,) = mistakes_in(GOOD.replace("kind: binary", "kind: binaery"))
    assert mistake.endswith("; did you mean binary?")


def test_a_missing_key_points_to_the_line_of_its_parent(mistakes_in):
    assert mistakes_in(GOOD.replace("    kind: binary\n", "")) == ["study.yaml:4 features[1].kind: is missing"]


def test_a_rule_over_several_fields_points_to_what_they_belong_to(mistakes_in):
    (mistake,) = mistakes_in(GOOD.replace(", range: [18, 100]", ""))
    assert mistake == "study.yaml:3 features[0]: a continuous feature needs a range, for example [0, 300]"


def test_a_rule_over_the_whole_study_points_to_its_first_line(mistakes_in):
    (mistake,) = mistakes_in(GOOD.replace("name: died", "name: age"))
    assert mistake == "study.yaml:1 used more than once as a feature or label: age"


def test_a_unit_that_nobody_knows_is_refused_where_it_stands(mistakes_in):
    (mistake,) = mistakes_in(GOOD.replace("kind: continuous,", "kind: continuous, unit: mmHg,"))
    assert mistake == "study.yaml:3 features[0].unit: mmHg is no UCUM unit; write mg/dL or mm[Hg]"
    (other,) = mistakes_in(CLINICAL.replace("statistic: last,", "statistic: last, unit: lbs,"))
    assert "features[1].source.unit: lbs is no UCUM unit" in other


def test_a_number_beyond_its_limits_is_told_the_limit(mistakes_in):
    assert mistakes_in(GOOD.replace("trees: 50", "trees: 0")) == ["study.yaml:12 forest.trees: must be at least 1"]


def test_a_name_with_a_space_is_told_what_a_name_is(mistakes_in):
    (mistake,) = mistakes_in(GOOD.replace("name: heart", "name: my heart"))
    assert mistake.startswith("study.yaml:1 name: needs a name: a letter first")


def test_a_number_where_text_belongs_is_told_to_use_quotes(mistakes_in):
    assert mistakes_in(GOOD.replace('"1"', "1")) == [
        "study.yaml:8 features[2].categories[2]: needs text; put it in quotes"
    ]


def test_an_unknown_algorithm_is_told_which_there_are(mistakes_in):
    (mistake,) = mistakes_in(GOOD + "algorithm: {name: bofrff}\n")
    assert mistake.startswith("study.yaml:13 algorithm.name: must be one of ")
    assert mistake.endswith("; did you mean bofrf?")


def test_a_misspelt_key_of_an_algorithm_is_found_without_naming_the_union(mistakes_in):
    (mistake,) = mistakes_in(GOOD + "algorithm:\n  name: bofrf\n  nonsense: 1\n")
    assert mistake.startswith("study.yaml:15 algorithm.nonsense: unknown key; known here: ")


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


def test_a_file_that_is_too_large_is_not_parsed(mistakes_in):
    assert mistakes_in("#" * (LARGEST_FILE + 1)) == ["study.yaml: larger than 5 MB, so this is no settings file"]


def test_a_file_that_is_not_there_is_said_to_be_unreadable(tmp_path):
    with pytest.raises(StudyInvalid, match=r"none\.yaml: cannot be read \(No such file"):
        read_study(tmp_path / "none.yaml")


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
