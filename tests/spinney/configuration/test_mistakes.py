"""A mistake in a settings file is said where it is, with what to write instead."""

from __future__ import annotations

from tests.spinney.configuration.studies import CLINICAL, GOOD


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
