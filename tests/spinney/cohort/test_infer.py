"""The first study that tables suggest: what is a feature, of what kind, in which range."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from spinney.cohort.infer import Answers, infer_study
from spinney.errors import StudyInvalid
from spinney.study.cuts import cuts_of


def sites(**columns: list) -> dict[str, pd.DataFrame]:
    """Two sites with the same columns, and an outcome."""
    table = pd.DataFrame(columns)
    table["died"] = [row % 2 for row in range(len(table))]
    return {"north": table.iloc[::2], "south": table.iloc[1::2]}


def feature(tables: dict[str, pd.DataFrame], name: str):
    found = [one for one in infer_study(tables, "died", "test").study.features if one.name == name]
    return found[0] if found else None


SOMETHING = list(range(100, 140))


def test_a_patient_column_is_no_feature():
    inferred = infer_study(sites(patient_id=SOMETHING, age=SOMETHING), "died", "test")
    assert inferred.patient == "patient_id"
    assert [one.name for one in inferred.study.features] == ["age"]


@pytest.mark.parametrize("values", [[0, 1] * 10, [True, False] * 10, [0.0, 1.0, None, 1.0] * 5, ["0", "1"] * 10])
def test_noughts_and_ones_are_binary(values):
    assert feature(sites(x=values), "x").kind == "binary"


def test_text_is_categorical_and_numbers_are_not():
    tables = sites(text=["mild", "severe"] * 10, grade=[1, 2, 3, 4] * 5)
    assert feature(tables, "text").categories == ("mild", "severe")
    assert feature(tables, "grade").kind == "continuous"


def test_text_of_few_rows_is_not_named_in_the_study():
    assert feature(sites(x=["mild", "severe"] * 10 + ["kuru"]), "x").categories == ("mild", "severe")


def test_text_of_one_patient_is_not_named_however_many_rows_the_patient_has():
    words, people = ["mild", "severe"] * 10 + ["kuru"] * 20, [*range(20), *[99] * 20]
    assert feature(sites(x=words, patient=people), "x").categories == ("mild", "severe")


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("Reason", "Reason_2"),  # a column of every cohort
        ("Blood pressure (mmHg)", "Blood_pressure_mmHg"),
        ("größe", "groe"),
        ("30 days", "x_30_days"),
        ("血圧", "x_2"),
        ("x!", "x_2"),
        ("wt.loss", "wt.loss"),
    ],
)
def test_a_column_may_be_called_anything(column, name):
    study = infer_study(sites(**{"x": SOMETHING, column: SOMETHING}), "died", "study").study
    assert [(one.name, one.column) for one in study.features] == [
        ("x", None),
        (name, None if name == column else column),
    ]


def test_a_label_may_be_called_anything():
    table = pd.DataFrame({"x": range(60), "Readmitted (30 d)?": ["No", "<30", ">30"] * 20})
    label = infer_study({"north": table}, "Readmitted (30 d)?", "study").study.label
    assert (label.name, label.column, label.positive) == ("Readmitted_30_d", "Readmitted (30 d)?", ("<30", ">30"))


@pytest.mark.parametrize("column", ["admission_type_id", "admissionTypeId", "payer code", "type"])
def test_few_whole_numbers_in_a_column_that_is_called_a_code_are_categories_and_asked_about(column):
    tables = sites(**{column: [1, 2, 3, 11] * 10, "x": SOMETHING})
    guessed = infer_study(tables, "died", "study")
    assert guessed.study.features[0].categories == ("1", "11", "2", "3")
    assert guessed.asked == (column,)
    assert f"if they are amounts, say --numbers {column}." in guessed.notes[0]


def test_somebody_s_word_on_codes_and_numbers_counts():
    tables = sites(ward_id=[1, 2, 3, 11] * 10, ward=[1, 2, 3, 11] * 10)
    told = infer_study(tables, "died", "study", Answers(frozenset({"ward"}), frozenset({"ward_id"})))
    assert [one.kind for one in told.study.features] == ["continuous", "categorical"]
    assert told.asked == ()
    with pytest.raises(StudyInvalid, match="wart is no column; there are ward_id, ward, died"):
        infer_study(tables, "died", "study", Answers(frozenset({"wart"})))


def test_many_whole_numbers_in_a_column_that_is_called_a_code_are_left_out():
    inferred = infer_study(sites(x=list(range(300)), doctor_id=[*range(60)] * 5), "died", "study")
    assert [one.name for one in inferred.study.features] == ["x"]
    assert "doctor_id is left out: it has 60 different codes; group them, or say --numbers doctor_id." in inferred.notes


@pytest.mark.parametrize("bands", [["[0-10)", "[70-80)", "[90-100)"], ["0-9", "10-99", "100+"], ["(0, 1]", "(1, 100]"]])
def test_ordered_bands_are_numbers(bands):
    found = feature(sites(age=bands * 20), "age")
    assert (found.kind, found.read_as, found.range) == ("continuous", "bands", (0, 100))


@pytest.mark.parametrize("words", [["None", ">7", ">8"], [">7", ">8"], ["none", "[0-10)"], ["80-70", "70-60"]])
def test_words_that_are_no_bands_stay_words(words):
    assert set(feature(sites(x=words * 20), "x").categories) == set(words)


@pytest.mark.parametrize(
    ("codes", "how", "categories"),
    [
        (["428", "250.83", "V57", "4280", "?"], "icd-9-chapters", ("circulatory", "endocrine", "health-status")),
        (["I50.9", "E11", "V57", "x"], "icd-10-chapters", ("circulatory", "endocrine", "external")),
        ([428, 250.83, 8], "icd-9-chapters", ("circulatory", "endocrine", "infectious")),
    ],
)
def test_codes_of_the_icd_are_grouped_by_chapter_on_request(codes, how, categories):
    tables = sites(diag=codes * 20)
    found = infer_study(tables, "died", "study", Answers(chapters=frozenset({"diag"}))).study.features[0]
    assert (found.read_as, found.categories) == (how, categories)


def test_what_is_no_code_of_the_icd_is_not_grouped():
    with pytest.raises(StudyInvalid, match="none of its values is a code of ICD-9 or ICD-10"):
        infer_study(sites(diag=["heart", "lung"] * 10), "died", "study", Answers(chapters=frozenset({"diag"})))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (18, 99, (15, 100)),
        (0.084, 2.42, (0, 2.6)),
        (-3.2, 4.1, (-3.5, 4.5)),
        (0, 846, (0, 850)),
        (1e-6, 3e-6, (1e-6, 3e-6)),
    ],
)
def test_a_range_is_widened_to_round_numbers(low, high, expected):
    values = np.linspace(low, high, 40).tolist()
    assert feature(sites(x=values), "x").range == pytest.approx(expected)


def test_the_range_holds_the_values_of_all_sites():
    tables = {"a": pd.DataFrame({"x": [3, 4], "died": [0, 1]}), "b": pd.DataFrame({"x": [30, 41], "died": [0, 1]})}
    low, high = feature(tables, "x").range
    assert low <= 3
    assert high >= 41


def test_an_even_feature_is_cut_as_by_default():
    found = feature(sites(x=np.linspace(0, 1, 200).tolist()), "x")
    assert (found.resolution, found.cuts, found.most_cuts) == (None, "equal", 64)


@pytest.mark.parametrize(
    ("values", "resolution"), [(range(20, 90), 1), (np.arange(36, 42, 0.5), 0.5), (np.arange(0, 900, 10), 10)]
)
def test_the_steps_in_which_values_are_recorded_are_proposed(values, resolution):
    found = feature(sites(x=[*values] * 3), "x")
    assert found.resolution == resolution
    assert np.diff(cuts_of(found.range, found.resolution, found.cuts, found.most_cuts)).min() >= 2 * resolution


def across_the_middle(found, values):
    low, high = np.quantile(values, [0.25, 0.75])
    return sum(low < cut < high for cut in cuts_of(found.range, found.resolution, found.cuts, found.most_cuts))


def test_a_skewed_feature_is_cut_where_most_patients_are():
    values = np.exp(np.linspace(-3, 6, 400))
    found = feature(sites(x=values.tolist()), "x")
    assert found.cuts == "logarithmic"
    assert across_the_middle(found, values) >= 8


def test_where_logarithms_are_of_no_help_there_are_more_cuts():
    values = np.concatenate([np.linspace(-1, 1, 400), [-300, 300]])
    found = feature(sites(x=values.tolist()), "x")
    assert found.most_cuts > 64
    assert across_the_middle(found, values) >= 8


def test_an_outlier_does_not_make_a_study_invalid():
    found = feature(sites(x=[*np.linspace(-1, 1, 200), 1e9]), "x")
    assert found.most_cuts == 65_534


def test_whole_numbers_are_not_cut_finer_than_at_every_second():
    found = feature(sites(x=[*range(1, 101), 20_000]), "x")
    assert (found.resolution, found.cuts) == (1, "logarithmic")


def test_a_column_that_one_site_lacks_stays_a_feature():
    tables = sites(x=SOMETHING, y=SOMETHING)
    tables["south"] = tables["south"].drop(columns="y")
    inferred = infer_study(tables, "died", "test")
    assert [one.name for one in inferred.study.features] == ["x", "y"]
    assert "y is absent at south; trees take it as missing there." in inferred.notes


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("empty", [None] * 40, "it has no values"),
        ("constant", [7.0] * 40, "it has the same value everywhere"),
        ("remark", [f"text {row}" for row in range(40)], "nearly every row has a value of its own"),
        ("stay_id", list(range(40)), "nearly every row has a value of its own"),
        ("rare", ["a"] * 37 + ["b", "c", "d"], "fewer than two of its texts"),
        ("Unnamed: 0", SOMETHING, "it has no name"),
        ("born", pd.date_range("1950-01-01", periods=40).tolist(), "a date is no feature"),
        ("code", [f"c{row % 60}" for row in range(360)], "it has 60 different texts"),
    ],
)
def test_columns_that_are_no_features_are_left_out_and_reported(name, values, why):
    inferred = infer_study(sites(**{"x": list(range(len(values))), name: values}), "died", "test")
    assert [one.name for one in inferred.study.features] == ["x"]
    assert any(note.startswith(f"{name} is left out: {why}") for note in inferred.notes)


@pytest.mark.parametrize(
    ("values", "positive", "said"),
    [
        ([0, 1], ("1", "1.0", "true", "True", "yes"), ""),
        (["yes", "no"], ("1", "1.0", "true", "True", "yes"), ""),
        ([0, 1, 2, 3, 4], ("1", "2", "3", "4"), "everything but 0"),
        ([0.0, 2.0], ("2",), "everything but 0"),
        ([True, False], ("1", "1.0", "true", "True", "yes"), ""),
        (["No", "<30", ">30"], ("<30", ">30"), "everything but No"),
        ([1, 2], ("2",), "the larger of two numbers; swap it if 1 is the event"),
        (["B", "B", "M"], ("M",), "the rarer of two words; swap it if B is the event"),
    ],
)
def test_what_counts_as_yes_is_guessed_and_said(values, positive, said):
    table = pd.DataFrame({"x": range(60), "outcome": (values * 60)[:60]})
    inferred = infer_study({"north": table}, "outcome", "test")
    assert inferred.study.label.positive == positive
    assert [note for note in inferred.notes if said in note] == list(inferred.notes)
    assert bool(inferred.notes) == bool(said)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1] * 60, "the same value everywhere"),
        (list(range(60)), "60 different values"),
        (["a", "b", "c"] * 20, "none of them is 0 or no"),
    ],
)
def test_a_label_that_cannot_be_one_is_refused(values, words):
    with pytest.raises(StudyInvalid, match=words):
        infer_study({"north": pd.DataFrame({"x": range(60), "outcome": values})}, "outcome", "test")


def test_a_site_without_the_label_is_named():
    tables = sites(x=SOMETHING)
    tables["south"] = tables["south"].drop(columns="died")
    with pytest.raises(StudyInvalid, match="died is no column at south"):
        infer_study(tables, "died", "test")


def test_tables_without_any_feature_are_refused():
    with pytest.raises(StudyInvalid, match="no column but the label"):
        infer_study(sites(constant=[1] * 20), "died", "test")
