"""Settings of a random forest, taken over where a study has them and listed where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spinney.connectors.fair4health.documents import read_fair4health
from spinney.connectors.fair4health.models import Sections, settings_of
from spinney.connectors.fair4health.notes import Notes
from spinney.study.settings import ForestSettings
from tests.connectors.fair4health.made import algorithm, data_set, feature_set, line_with, mining_model, written


def settings(folder: Path, *algorithms: Any, **more: Any) -> tuple[Sections, Notes]:
    notes = Notes()
    content = mining_model(data_set(feature_set()), *algorithms, **more)
    return settings_of(read_fair4health(written(folder, content)), notes), notes


def forest(folder: Path, **parameters: object) -> tuple[dict[str, Any], tuple[str, ...]]:
    found, notes = settings(folder, algorithm(**parameters))
    return found["forest"], notes.left_out


def test_number_depth_impurity_and_features_of_a_random_forest_are_taken_over(tmp_path: Path) -> None:
    found, left_out = forest(
        tmp_path, max_depth="7", min_info_gain="0.0", impurity="entropy", num_trees="40", feature_subset_strategy="log2"
    )
    assert found == {"max_depth": 7, "criterion": "entropy", "trees": 40, "max_features": "log2"}
    assert left_out == ()
    assert ForestSettings.model_validate(found).trees == 40


def test_numbers_may_be_numbers(tmp_path: Path) -> None:
    assert forest(tmp_path, num_trees=40, min_instances_per_node=6)[0] == {"trees": 40, "min_samples_leaf": 6}


@pytest.mark.parametrize(("trees", "features"), [("1", "all"), ("2", "sqrt"), (None, "sqrt")])
def test_automatic_features_are_those_of_spark(tmp_path: Path, trees: str | None, features: str) -> None:
    more = {} if trees is None else {"num_trees": trees}
    assert forest(tmp_path, feature_subset_strategy="auto", **more)[0]["max_features"] == features


def test_folds_and_measure_are_those_of_the_local_search_and_of_the_choice(tmp_path: Path) -> None:
    found, notes = settings(tmp_path, algorithm(num_folds="3", metric="areaUnderPR"))
    assert found == {"forest": {"tuning": {"folds": 3}}, "choice": {"metric": "auprc"}}
    assert notes.left_out == ()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("num_trees", "5,10,20", "several values to be tried"),
        ("num_trees", "20000", "forest.trees: input should be less than or equal to 10000"),
        ("num_trees", "many", "forest.trees: input should be a valid integer"),
        ("max_depth", "0", "forest.max_depth: input should be greater than or equal to 1"),
        ("impurity", "variance", "forest.criterion: input should be 'gini' or 'entropy'"),
        ("feature_subset_strategy", "onethird", "forest.max_features: input should be"),
        ("num_folds", "1", "forest.tuning.folds: input should be greater than or equal to 2"),
        ("metric", "f1", "choice.metric: input should be"),
        ("min_info_gain", "0.1", "no counterpart"),
        ("handle_invalid", "keep", "what is missing is left to the forest"),
        ("max_parallelism", "2", "each site uses its own processors"),
        ("color", "blue", "no counterpart"),
    ],
)
def test_what_has_no_counterpart_is_listed_with_its_line_and_nothing_is_taken(
    tmp_path: Path, name: str, value: str, why: str
) -> None:
    found, left_out = forest(tmp_path, **{name: value})
    assert found == {}
    line = line_with(tmp_path, f'"name": "{name}"')
    assert len(left_out) == 1
    assert left_out[0].startswith(f"line {line}: algorithm classification_random_forest: {name} {value}: {why}")


def test_another_algorithm_is_listed_with_its_settings_and_a_second_forest_too(tmp_path: Path) -> None:
    other = algorithm("classification_gbt", max_iter="10", max_depth="4")
    found, notes = settings(tmp_path, other, algorithm(num_trees="9"), algorithm(num_trees="11"))
    assert found == {"forest": {"trees": 9}}
    line = line_with(tmp_path, "classification_gbt")
    assert notes.left_out[0] == (
        f"line {line}: algorithm classification_gbt (max_iter 10, max_depth 4): sites of a study grow random forests"
    )
    assert notes.left_out[1].endswith("algorithm classification_random_forest (num_trees 11): a study has one forest")


def test_trees_that_are_too_many_for_their_depth_get_fewer_leaves_and_the_list_says_so(tmp_path: Path) -> None:
    found, notes = settings(tmp_path, algorithm(num_trees="5000", max_depth="20"))
    assert ForestSettings.model_validate(found["forest"]).trees == 5000
    assert any(f"max_leaves {found['forest']['max_leaves']}" in one for one in notes.assumed)


@pytest.mark.parametrize(
    ("sizes", "test"), [({"training_size": 0.7, "test_size": 0.3}, 0.3), ({"training_size": 0.8}, 0.2)]
)
def test_the_test_part_is_as_large_as_there(tmp_path: Path, sizes: dict[str, float], test: float) -> None:
    found, notes = settings(tmp_path, algorithm("classification_svm"), **sizes)
    assert found == {"split": {"test": test}}
    assert any(one.endswith(f"split.test is test_size {test:g}, of patients and not of rows") for one in notes.assumed)


@pytest.mark.parametrize(
    "sizes",
    [{"training_size": 0.5, "test_size": 0.3}, {"test_size": 0.95}, {"test_size": "a third"}, {"test_size": 1.0}],
)
def test_sizes_that_cannot_be_ours_are_listed(tmp_path: Path, sizes: dict[str, Any]) -> None:
    found, notes = settings(tmp_path, algorithm("classification_svm"), **sizes)
    assert found == {}
    assert notes.left_out[1].startswith(f"line {line_with(tmp_path, next(iter(sizes)))}: {next(iter(sizes))} ")


def test_a_document_without_a_model_says_nothing_about_the_forest(tmp_path: Path) -> None:
    notes = Notes()
    assert settings_of(read_fair4health(written(tmp_path, feature_set())), notes) == {}
    assert notes == Notes()
