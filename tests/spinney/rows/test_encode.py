"""A table becomes a matrix: by the study's ranges and categories, whatever the kind of its columns."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from spinney.errors import CohortRejected
from spinney.rows.encode import columns_of, encode, encode_label, texts
from spinney.study.settings import Feature, Label

AGE = Feature(name="age", kind="continuous", range=(20, 70))
SMOKER = Feature(name="smoker", kind="binary")
STAGE = Feature(name="stage", kind="categorical", categories=("1", "2", "late"))
DIED = Label(name="died", positive=("1", "yes"))
NAN = float("nan")


def encoded(feature, values):
    """Each column of one feature, as a list."""
    matrix, present = encode(pd.DataFrame({feature.name: values}), columns_of([feature]))
    assert present.all()
    assert matrix.dtype == np.float32
    return matrix.T.tolist()


def same(found, wanted):
    return np.array_equal(np.array(found, dtype=np.float32), np.array(wanted, dtype=np.float32), equal_nan=True)


def test_a_number_is_scaled_by_the_study_s_range_and_not_by_the_site_s():
    assert same(encoded(AGE, [20.0, 45.0, 70.0]), [[0, 0.5, 1]])
    assert same(encoded(AGE, [45.0, 46.0]), [[0.5, 0.52]])


def test_values_beyond_the_range_are_clipped_to_it():
    assert same(encoded(AGE, [-1e308, 19, 71, 1e308]), [[0, 0, 1, 1]])


def test_clipping_a_huge_value_overflows_nothing():
    narrow = Feature(name="age", kind="continuous", range=(0, 1e-6))
    assert same(encoded(narrow, [1.7e308, -1.7e308]), [[1, 0]])


def test_infinite_values_are_missing():
    assert same(encoded(AGE, [np.inf, -np.inf, 45]), [[NAN, NAN, 0.5]])


def test_a_binary_feature_is_zero_or_one_or_missing():
    assert same(encoded(SMOKER, [0, 1, 2, 0.5, None]), [[0, 1, NAN, NAN, NAN]])
    assert same(encoded(SMOKER, [True, False]), [[1, 0]])


def test_each_category_is_a_column_of_its_own():
    columns = columns_of([AGE, STAGE])
    assert [column.name for column in columns] == ["age", "stage=1", "stage=2", "stage=late"]
    assert same(encoded(STAGE, ["1", "late", "2"]), [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_an_unknown_category_is_missing_in_all_columns():
    assert same(encoded(STAGE, ["3", None, "", "LATE", "1"]), [[NAN] * 4 + [1], [NAN] * 4 + [0], [NAN] * 4 + [0]])


def test_a_missing_value_is_not_the_category_of_empty_text():
    empty = Feature(name="stage", kind="categorical", categories=("", "1"))
    assert same(encoded(empty, [None, "1"]), [[NAN, 0], [NAN, 1]])


ONES_AND_TWOS = {
    "int64": pd.Series([1, 2, 1]),
    "float32": pd.Series([1, np.nan, 2], dtype="float32"),
    "nullable integer": pd.Series([1, None, 2], dtype="Int64"),
    "nullable float": pd.Series([1, None, 2], dtype="Float32"),
    "text": pd.Series(["1", None, "2"]),
    "nullable text": pd.Series(["1", None, "2"], dtype="string"),
    "text with blanks": pd.Series([" 1", None, "2\t"]),
    "objects": pd.Series([1, pd.NA, "2", 2.0, np.float32(1), Decimal("2.0"), pd.NaT, np.int8(1)], dtype=object),
    "categories of text": pd.Series(["1", None, "2"], dtype="category"),
    "categories of numbers": pd.Series([1, None, 2], dtype="category"),
    "categories of nullable integers": pd.Series(pd.Categorical(pd.array([1, None, 2], dtype="Int64"))),
    "arrow integers": pd.Series([1, None, 2], dtype="int64[pyarrow]"),
    "arrow text": pd.Series(["1", None, "2"], dtype="string[pyarrow]"),
}


@pytest.mark.parametrize("values", ONES_AND_TWOS.values(), ids=ONES_AND_TWOS)
def test_a_category_is_found_in_a_column_of_any_kind(values):
    words = [None if pd.isna(value) else str(int(value)) for value in values]
    wanted = [[NAN if word is None else float(word == category) for word in words] for category in ("1", "2", "late")]
    assert same(encoded(STAGE, values), wanted)


@pytest.mark.parametrize("values", ONES_AND_TWOS.values(), ids=ONES_AND_TWOS)
def test_a_number_is_found_in_a_column_of_any_kind(values):
    ten = Feature(name="score", kind="continuous", range=(0, 10))
    assert same(encoded(ten, values), [[NAN if pd.isna(value) else int(value) / 10 for value in values]])


@pytest.mark.parametrize("kind", ["bool", "boolean", "bool[pyarrow]", "category", "object"])
def test_yes_and_no_are_one_and_zero_in_a_column_of_any_kind(kind):
    values = pd.Series([True, False, True], dtype=kind)
    assert same(encoded(SMOKER, values), [[1, 0, 1]])
    assert same(encoded(STAGE, values)[0], [1, NAN, 1])


def test_one_has_one_word_however_it_is_written():
    ones = [1, 1.0, True, "1", " 1 ", np.float32(1), np.int8(1), np.True_]
    for order in (ones, ones[::-1], [Decimal("1.00"), 1], [1, Decimal("1.00")]):
        assert set(texts(np.array(order, dtype=object))) == {"1"}


def test_zero_has_one_word_whatever_its_sign():
    assert texts(np.array([-0.0, 0, 0.0, False], dtype=object)) == ["0"] * 4


def test_words_of_other_values_are_as_written():
    values = [0.5, "1.0", "true", 10**400, float("inf"), "", None, NAN, pd.NA]
    assert texts(np.array(values, dtype=object)) == ["0.5", "1.0", "true", str(10**400), "inf", None, None, None, None]


def test_a_feature_that_the_site_does_not_have_is_not_present():
    matrix, present = encode(pd.DataFrame({"stage": ["1", "2"], "other": [1, 2]}), columns_of([AGE, STAGE, SMOKER]))
    assert present.tolist() == [False, True, True, True, False]
    assert np.isnan(matrix[:, ~present]).all()


def test_a_feature_of_which_nothing_is_known_is_present_all_the_same():
    _, present = encode(pd.DataFrame({"age": [None, None]}), columns_of([AGE]))
    assert present.tolist() == [True]


def test_the_order_of_the_table_s_columns_does_not_matter():
    table = pd.DataFrame({"age": [30, 60], "smoker": [0, 1], "stage": ["1", "late"]})
    columns = columns_of([AGE, SMOKER, STAGE])
    assert np.array_equal(encode(table, columns)[0], encode(table[["stage", "age", "smoker"]], columns)[0])


def test_a_table_without_rows_is_encoded():
    matrix, present = encode(pd.DataFrame({"age": [], "stage": []}), columns_of([AGE, STAGE]))
    assert matrix.shape == (0, 4)
    assert present.all()


NO_NUMBERS = {
    "words": pd.Series(["Mustermann", "40"]),
    "times": pd.Series(pd.to_datetime(["1961-04-12", None])),
    "times with a zone": pd.Series(pd.to_datetime(["1961-04-12", None], utc=True)),
    "spans": pd.Series(pd.to_timedelta([40, None])),
    "lists": pd.Series([[40], [41]]),
    "too large": pd.Series([10**400, 40], dtype=object),
}


@pytest.mark.parametrize("values", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number_is_rejected_by_its_column_and_never_quoted(values):
    with pytest.raises(CohortRejected) as caught:
        encoded(AGE, values)
    assert str(caught.value) == "age is a number: the study says continuous"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_two_columns_of_one_name_are_rejected():
    table = pd.DataFrame([[1, 2], [3, 4]], columns=["age", "age"])
    with pytest.raises(CohortRejected, match="age is one column"):
        encode(table, columns_of([AGE]))


def test_every_column_has_the_cuts_that_the_study_says_and_the_end_of_its_range():
    listed = Feature(name="age", kind="continuous", range=(20, 70), cuts=(45,))
    cuts = [column.cuts for column in columns_of([AGE, listed, SMOKER, STAGE])]
    assert len(cuts[0]) == 65
    assert cuts[1:] == [(0.5, 1.0)] * 5


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, 0, 1]),
        pd.Series([1.0, 0.0, 1.0]),
        pd.Series([True, False, True]),
        pd.Series(["1", "0", "1"]),
        pd.Series(["yes", "no", " yes"]),
        pd.Series(["yes", "unheard of", "1"], dtype="category"),
        pd.Series([True, False, True], dtype="boolean"),
        pd.Series([1, 0, 1], dtype="Int64"),
        pd.Series(["1", "0", "1"], dtype="string"),
    ],
)
def test_the_label_is_yes_where_the_study_says_so_and_no_elsewhere(values):
    assert encode_label(pd.DataFrame({"died": values}), DIED).tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", ["object", "string", "category", "string[pyarrow]"])
def test_an_unknown_outcome_is_an_error_and_not_a_no(kind):
    table = pd.DataFrame({"died": pd.Series(["yes", None, "Mustermann", None], dtype=kind)})
    with pytest.raises(CohortRejected) as caught:
        encode_label(table, DIED)
    assert caught.value.failed == 2
    assert "Mustermann" not in str(caught.value)


@pytest.mark.parametrize("blank", [None, NAN, "", "  ", pd.NA, pd.NaT])
def test_a_blank_outcome_is_unknown(blank):
    table = pd.DataFrame({"died": pd.Series(["yes", blank], dtype=object)})
    with pytest.raises(CohortRejected, match="label died is known"):
        encode_label(table, DIED)


def test_a_table_without_the_label_is_rejected():
    with pytest.raises(CohortRejected, match="label died is a column"):
        encode_label(pd.DataFrame({"age": [1]}), DIED)


def test_a_label_with_other_values_than_yes_and_no_needs_to_be_told_what_means_yes():
    frame = pd.DataFrame({"num": [0, 1, 2, 4]})
    with pytest.raises(CohortRejected, match="which of the 4 values mean yes"):
        encode_label(frame, Label(name="num"))
    assert encode_label(frame, Label(name="num", positive=("1", "2", "4"))).tolist() == [0, 1, 1, 1]
