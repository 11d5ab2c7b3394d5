"""The classifier that a site keeps."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from spinney.choice.metrics import auroc
from spinney.choice.model import FederatedForest
from spinney.errors import CohortRejected
from spinney.forest.tree import LEAF, Forest, join_forests
from spinney.study.settings import Feature
from tests.spinney.in_process import Wood, cohorts, study


@parametrize_with_checks([FederatedForest(n_estimators=6)])
def test_the_model_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


# Two made-up sites with a stump each: age above 50, and ward is "surgery"
FEATURES = (
    Feature(name="age", kind="continuous", range=(0, 100)),
    Feature(name="ward", kind="categorical", categories=("medicine", "surgery")),
    Feature(name="smoker", kind="binary"),
)


def stump(column: int, low: float, high: float) -> Forest:
    return Forest(
        np.array([column, LEAF, LEAF], np.int16), np.array([0.5, 0, 0]), np.zeros(3, bool), np.array([0, low, high])
    )


@pytest.fixture
def model() -> FederatedForest:
    """Columns of the matrix are age, ward=medicine, ward=surgery, smoker."""
    return FederatedForest.from_trees(
        join_forests([stump(0, 0.2, 0.8), stump(2, 0.1, 0.5)]), ["ash", "beech"], np.array([3.0, 1.0]), FEATURES
    )


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame({"age": [30, 70], "ward": ["surgery", "medicine"], "smoker": [0, 1]})


def test_a_vote_is_the_weighted_mean_of_the_trees(model, table):
    # young in surgery: (3 * 0.2 + 1 * 0.5) / 4; old in medicine: (3 * 0.8 + 1 * 0.1) / 4
    assert model.predict_proba(table)[:, 1] == pytest.approx([1.1 / 4, 2.5 / 4])
    assert model.predict(table).tolist() == [0, 1]


def test_columns_are_found_by_name_in_any_order_among_others(model, table):
    shuffled = table.assign(something="else")[["smoker", "something", "ward", "age"]]
    assert model.predict_proba(shuffled) == pytest.approx(model.predict_proba(table))


def test_a_tree_that_asks_an_absent_column_abstains(model, table):
    assert model.predict_proba(table.drop(columns="ward"))[:, 1] == pytest.approx([0.2, 0.8])


def test_or_walks_on_as_if_every_value_were_missing(model, table):
    walking = FederatedForest.from_trees(
        model.forest_, model.owners_, model.weights_, FEATURES, absent="missing", threshold=model.threshold_
    )
    assert walking.digest != model.digest
    blank = table.assign(ward=np.array([None] * len(table), dtype=object))
    assert walking.predict_proba(table.drop(columns="ward")) == pytest.approx(model.predict_proba(blank))
    with pytest.raises(CohortRejected, match="a tree can vote"):
        walking.predict_proba(table[[]])


def test_an_absent_column_that_no_tree_asks_does_not_matter(model, table):
    assert model.predict_proba(table.drop(columns="smoker")) == pytest.approx(model.predict_proba(table))


def test_if_every_tree_abstains_the_error_says_so(model, table):
    with pytest.raises(CohortRejected, match="a tree can vote: every tree asks a column that this table doesn't have"):
        model.predict_proba(table[["smoker"]])


def test_a_missing_value_is_no_abstention(model):
    table = pd.DataFrame({"age": [np.nan], "ward": ["surgery"]})
    assert model.predict_proba(table)[:, 1] == pytest.approx([(3 * 0.8 + 0.5) / 4])  # missing goes right here


def test_a_model_knows_whose_tree_is_whose(model):
    assert model.owners_ == ("ash", "beech")


def test_without_a_site_its_trees_are_gone_and_the_total_weight_stays(model, table):
    rest = model.without("ash")
    assert (rest.owners_, rest.weights_.tolist()) == (("beech",), [4.0])
    assert rest.predict_proba(table)[:, 1] == pytest.approx([0.5, 0.1])
    assert model.owners_ == ("ash", "beech")


def test_the_others_keep_their_proportions():
    trees = join_forests([stump(0, 0.2, 0.8), stump(2, 0.1, 0.5), stump(3, 0.0, 1.0)])
    model = FederatedForest.from_trees(trees, ["ash", "beech", "cedar"], np.array([1.0, 2.0, 1.0]), FEATURES)
    assert model.without("ash").weights_ == pytest.approx([8 / 3, 4 / 3])


def test_without_keeps_calibration_and_threshold(model):
    calibrated = FederatedForest.from_trees(
        model.forest_, model.owners_, model.weights_, FEATURES, calibration=(2.0, 0.1), threshold=0.3
    )
    rest = calibrated.without("ash")
    assert (rest.calibration_, rest.threshold_) == ((2.0, 0.1), 0.3)


def test_a_site_that_gave_nothing_is_withdrawn_without_a_change(model, table):
    assert model.without("elm").predict_proba(table) == pytest.approx(model.predict_proba(table))


def test_the_last_site_cannot_be_withdrawn(model):
    with pytest.raises(CohortRejected, match="trees remain without beech"):
        model.without("ash").without("beech")


def test_calibration_changes_probabilities_and_not_their_order(model, table):
    steep = FederatedForest.from_trees(
        model.forest_, model.owners_, model.weights_, FEATURES, calibration=(3.0, 0.0), threshold=0.5
    )
    plain, sharper = model.predict_proba(table)[:, 1], steep.predict_proba(table)[:, 1]
    assert sharper[0] < plain[0] < 0.5 < plain[1] < sharper[1]


def test_the_threshold_of_the_site_decides(model, table):
    eager = FederatedForest.from_trees(model.forest_, model.owners_, model.weights_, FEATURES, threshold=0.2)
    assert eager.predict(table).tolist() == [1, 1]


def test_importances_sum_to_one_and_a_category_counts_for_its_feature(model):
    # age: 3 * (0.6^2 / 4) = 0.27; ward: 1 * (0.4^2 / 4) = 0.04
    assert model.feature_importances_ == pytest.approx([27 / 31, 4 / 31, 0])


def test_importances_find_the_informative_feature():
    rng = np.random.default_rng(0)
    X = rng.random((400, 5))
    y = (X[:, 3] + 0.2 * rng.random(400) > 0.6).astype(int)
    forest = FederatedForest(20, random_state=0).fit(X, y)
    assert forest.feature_importances_.sum() == pytest.approx(1)
    assert forest.feature_importances_.argmax() == 3


def test_importances_of_trees_without_a_split_are_zero():
    leaf = Forest(np.array([LEAF], np.int16), np.zeros(1), np.zeros(1, bool), np.array([0.3]))
    model = FederatedForest.from_trees(leaf, ["ash"], np.ones(1), FEATURES)
    assert model.feature_importances_.tolist() == [0, 0, 0]


def test_a_pickled_model_says_the_same(model, table):
    again = pickle.loads(pickle.dumps(model))
    assert again.digest == model.digest
    assert again.predict_proba(table).tolist() == model.predict_proba(table).tolist()


def test_a_clone_is_unfitted_and_has_the_same_parameters():
    forest = FederatedForest(7, max_depth=3, random_state=1).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    assert clone(forest).get_params() == forest.get_params()
    assert not hasattr(clone(forest), "forest_")


def test_the_digest_follows_everything_that_changes_an_answer(model):
    parts = {"owners": model.owners_, "weights": model.weights_, "features": FEATURES}
    wider = (Feature(name="age", kind="continuous", range=(0, 120)), *FEATURES[1:])
    others = [
        FederatedForest.from_trees(model.forest_, **parts, threshold=0.3),
        FederatedForest.from_trees(model.forest_, **parts, calibration=(1.0, 0.0)),
        FederatedForest.from_trees(model.forest_, **{**parts, "weights": np.array([1.0, 1.0])}),
        FederatedForest.from_trees(model.forest_, **{**parts, "owners": ("ash", "cedar")}),
        FederatedForest.from_trees(model.forest_, **{**parts, "features": wider}),
        FederatedForest.from_trees(model.forest_.take([1, 0]), **parts),
    ]
    assert len({model.digest, *(other.digest for other in others)}) == 7
    assert FederatedForest.from_trees(model.forest_, **parts).digest == model.digest


def test_a_forest_grown_alone_is_about_as_good_as_scikit_learn_s():
    X, y = load_breast_cancer(return_X_y=True)
    train = np.arange(len(y)) % 3 > 0
    ours = FederatedForest(30, random_state=0).fit(X[train], y[train])
    theirs = RandomForestClassifier(30, min_samples_leaf=5, random_state=0).fit(X[train], y[train])
    reached, known = (auroc(y[~train], one.predict_proba(X[~train])[:, 1]) for one in (ours, theirs))
    assert reached > known - 0.01


def test_a_federated_model_votes_on_the_tables_of_its_study():
    wood = study()
    federation = Wood(wood, cohorts(wood, rows=120))
    federation.run()
    people, model = federation.houses["ash"].cohort, federation.outcomes["ash"].model
    table = pd.DataFrame(people.X, columns=["x0", "x1", "x2", "x3"])
    assert auroc(people.y, model.predict_proba(table)[:, 1]) > 0.8
    assert set(model.owners_) == {"ash", "beech", "cedar", "elm"}
