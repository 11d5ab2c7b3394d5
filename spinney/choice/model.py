"""The classifier that a site keeps: weighted trees that remember which house they come from.

`fit` grows a forest under the same floors as a site's, alone. A federated model is made by `from_trees`; it reads data
frames by column name. A tree that asks a column which isn't there walks on as if the value were missing, or abstains,
as the study says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from spinney.choice.blend import blended
from spinney.choice.metrics import calibrated
from spinney.errors import CohortRejected
from spinney.forest.export import export_forest, grid_of
from spinney.forest.grow import MAX_SEED, grow
from spinney.forest.score import abstains
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, Forest, depths, join_forests, right_children
from spinney.forest.votes import scores
from spinney.linear.part import LinearPart
from spinney.rows.encode import Matrix, columns_of, encode, filled
from spinney.study.settings import Absent, Feature, ForestSettings, Privacy

Floats = NDArray[np.float64]
ABOVE_HALF = float(np.nextafter(0.5, 1.0))


class FederatedForest(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Weighted vote of trees from one or many houses."""

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int = 12,
        min_samples_leaf: int = 5,
        smallest_leaf: int = 5,
        n_jobs: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.smallest_leaf = smallest_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def from_trees(
        cls,
        forest: Forest,
        owners: Sequence[str],
        weights: Floats,
        features: Sequence[Feature],
        *,
        calibration: tuple[float, float] | None = None,
        threshold: float = ABOVE_HALF,
        fill: Matrix | None = None,
        absent: Absent = "abstain",
        linear: LinearPart | None = None,
    ) -> Self:
        """The model of a federation.

        `fill` is what stands for a missing value of each column, NaN for nothing; `absent` what a tree does that asks a
        column which a table doesn't have; `linear` a logistic regression beside the trees, or in their place.
        """
        model = cls(n_estimators=len(forest))
        model.classes_ = np.array([0, 1])
        model.n_features_in_ = len(features)
        model.feature_names_in_ = np.array([feature.name for feature in features], dtype=object)
        model.by_name_ = True
        model.fill_ = None if fill is None else np.asarray(fill, dtype=np.float32)
        model.absent_ = absent
        model.linear_ = linear
        return model._set(
            forest, tuple(owners), np.asarray(weights, dtype=np.float64), features, calibration, threshold
        )

    def fit(self, X: Any, y: Any) -> Self:
        """Grow alone: one house, one row per patient."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
        features = [_feature_of(f"x{place}", X[:, place]) for place in range(X.shape[1])]
        settings = ForestSettings(
            trees=self.n_estimators, max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf
        )
        columns = columns_of(features)
        rounding = grid_of(columns, Privacy().probability_precision)
        matrix = rounding.snapped(encode(_Table(X, features), columns)[0])
        labels, people = codes.astype(np.int8), np.arange(len(codes))
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        grown = grow(matrix, labels, people, settings, seed, self.n_jobs, rounding=rounding, floor=self.smallest_leaf)
        forest = export_forest(
            grown.trees, grown.drawn, matrix, labels, people, floor=self.smallest_leaf, rounding=rounding
        )
        self.by_name_ = False
        self.fill_: Matrix | None = None
        self.absent_: Absent = "abstain"
        self.linear_: LinearPart | None = None
        return self._set(forest, ("home",) * len(forest), np.ones(len(forest)), features, None, ABOVE_HALF)

    def _set(
        self,
        forest: Forest,
        owners: tuple[str, ...],
        weights: Floats,
        features: Sequence[Feature],
        calibration: tuple[float, float] | None,
        threshold: float,
    ) -> Self:
        self.forest_, self.owners_, self.weights_ = forest, owners, weights
        self.features_, self.calibration_, self.threshold_ = tuple(features), calibration, threshold
        self.columns_ = columns_of(features)
        if self.fill_ is not None and self.fill_.shape != (len(self.columns_),):
            raise ValueError(f"{len(self.fill_)} values to fill {len(self.columns_)} columns")
        if self.linear_ is not None:
            self.linear_.check(len(self.columns_))
        self._walker = Walker(forest, len(self.columns_))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of both classes."""
        check_is_fitted(self, "forest_")
        p = self.votes(*self._matrix(X))
        if self.calibration_ is not None:
            p = calibrated(p, *self.calibration_)
        if len(self.classes_) == 1:
            return np.ones((len(p), 1))
        return np.stack([1 - p, p], axis=1)

    def votes(self, matrix: Matrix, present: NDArray[np.bool_]) -> Floats:
        """The weighted vote on encoded rows, before calibration."""
        matrix, weights = self._ready(matrix, present)
        if not weights.any():
            raise CohortRejected("a tree can vote", advice="every tree asks a column that this table doesn't have")
        return self._beside(scores(self._walker, matrix, weights[:, None])[:, 0], matrix, present)

    def honest_votes(
        self,
        matrix: Matrix,
        present: NDArray[np.bool_],
        own: NDArray[np.int64],
        unseen: NDArray[np.bool_],
    ) -> Floats:
        """The weighted vote on encoded rows, where trees `own` are silent on rows that they have seen.

        NaN where no tree has a say. A linear part speaks on all rows: the few numbers that it is know nobody by heart.
        """
        matrix, weights = self._ready(matrix, present)
        votes = scores(self._walker, matrix, weights[:, None], own=own, unseen=unseen)[:, 0]
        return self._beside(votes, matrix, present)

    def _beside(self, votes: Floats, matrix: Matrix, present: NDArray[np.bool_]) -> Floats:
        """The trees' vote together with the linear part's."""
        if self.linear_ is None:
            return np.asarray(votes)
        return blended(votes, self.linear_, self.linear_.log_odds(matrix, present))

    def _ready(self, matrix: Matrix, present: NDArray[np.bool_]) -> tuple[Matrix, Floats]:
        """What is missing is filled as when the trees were grown; what is absent is not."""
        if self.fill_ is not None:
            matrix = filled(matrix, present, self.fill_)
        asks_absent = abstains(self.forest_, present)
        if self.absent_ == "missing" and present.any():
            asks_absent = np.zeros_like(asks_absent)
        return matrix, np.where(asks_absent, 0.0, self.weights_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class, by the decision threshold that the site chose."""
        p = self.predict_proba(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(p))
        return np.asarray(self.classes_[(p[:, 1] >= self.threshold_).astype(int)])

    def without(self, site: str) -> FederatedForest:
        """The model without one site's trees, the other weights renormalised."""
        kept = np.flatnonzero(np.asarray(self.owners_) != site)
        if not len(kept):
            raise CohortRejected(f"trees remain without {site}", advice="all trees of this model are that site's")
        return self.of_trees(kept)

    def of_trees(self, kept: NDArray[np.int64]) -> FederatedForest:
        """The model of some of its trees, their weights renormalised."""
        total = self.weights_[kept].sum()
        if not total:
            raise CohortRejected("a tree can vote", advice="no tree that is left has a weight")
        weights = self.weights_[kept] * self.weights_.sum() / total
        return FederatedForest.from_trees(
            self.forest_.take(kept),
            [self.owners_[place] for place in kept],
            weights,
            self.features_,
            calibration=self.calibration_,
            threshold=self.threshold_,
            fill=self.fill_,
            absent=self.absent_,
            linear=self.linear_,
        )

    def with_others(self, kept: NDArray[np.int64], others: Forest, owner: str) -> FederatedForest:
        """The model with other trees of one house in place of those that are not kept.

        Each counts as much as those did on average, and all together as much as before.
        """
        gone = np.setdiff1d(np.arange(len(self.forest_)), kept)
        weights = np.append(self.weights_[kept], np.full(len(others), self.weights_[gone].mean()))
        if not weights.any():
            raise CohortRejected("a tree can vote", advice="no tree that is left has a weight")
        return FederatedForest.from_trees(
            join_forests([self.forest_.take(kept), others]),
            [*(self.owners_[place] for place in kept), *[owner] * len(others)],
            weights * self.weights_.sum() / weights.sum(),
            self.features_,
            calibration=self.calibration_,
            threshold=self.threshold_,
            fill=self.fill_,
            absent=self.absent_,
            linear=self.linear_,
        )

    @property
    def feature_importances_(self) -> Floats:
        """Per feature, how much its splits change the vote, if both sides of a split were equally likely.

        Trees carry no counts, so this is variance explained under even splits: (right - left)^2 / 4 at a split of depth
        d, times 2^-d, weighted by the tree and normalised to 1. Of a linear part it is the size of its coefficients;
        where both speak, the mean of both.
        """
        forest = self.forest_
        depth = depths(forest, 127)
        right = right_children(forest.feature)
        mean, split = forest.probability.copy(), forest.feature != LEAF
        change = np.zeros(len(mean))
        for deep in range(int(depth.max()), -1, -1):
            here = np.flatnonzero(split & (depth == deep))
            low, high = mean[here + 1], mean[right[here]]
            mean[here], change[here] = (low + high) / 2, (high - low) ** 2 / 4 * 0.5**deep
        tree_weight = np.repeat(self.weights_, forest.ends - forest.starts)
        by_column = np.bincount(
            forest.feature[split], weights=(change * tree_weight)[split], minlength=len(self.columns_)
        )
        names = [feature.name for feature in self.features_]
        place = [names.index(column.feature.name) for column in self.columns_]
        by_feature = np.bincount(place, weights=by_column, minlength=len(names))
        share = by_feature / (by_feature.sum() or 1.0)
        if self.linear_ is None:
            return np.asarray(share)
        design = self.linear_.design
        sizes = np.abs(self.linear_.coefficients)
        of_terms = np.bincount(np.asarray(place)[design.places % design.columns], sizes, minlength=len(names))
        beside = of_terms / (of_terms.sum() or 1.0)
        return np.asarray((share + beside) / 2 if self.linear_.forest else beside)

    @property
    def digest(self) -> str:
        """Two models with one digest give the same answers."""
        hasher = hashlib.sha256()
        for owner, tree in zip(self.owners_, self.forest_.digests, strict=True):
            hasher.update(f"{owner} {tree}\n".encode())
        hasher.update(
            repr([(one.name, one.kind, one.range, one.categories, one.read_as) for one in self.features_]).encode()
        )
        hasher.update(self.weights_.astype("<f8").tobytes())
        hasher.update(repr((self.calibration_, self.threshold_)).encode())
        if self.fill_ is not None:
            hasher.update(self.fill_.astype("<f4").tobytes())
        if self.absent_ != "abstain":
            hasher.update(self.absent_.encode())
        if self.linear_ is not None:
            hasher.update(self.linear_.words())
        return hasher.hexdigest()

    def _matrix(self, X: Any) -> tuple[Matrix, NDArray[np.bool_]]:
        if self.by_name_ and hasattr(X, "columns"):
            return encode(X, self.columns_)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return encode(_Table(X, self.features_), self.columns_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_walker"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "forest_" in state:
            self._walker = Walker(self.forest_, len(self.columns_))


class _Table:
    """An array that is read by column name."""

    def __init__(self, X: NDArray[np.float64], features: Sequence[Feature]) -> None:
        self.columns = [feature.name for feature in features]
        self._values: dict[str, NDArray[np.float64]] = dict(zip(self.columns, X.T, strict=True))

    def __len__(self) -> int:
        return len(next(iter(self._values.values())))

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._values[name]


def _feature_of(name: str, values: NDArray[np.float64]) -> Feature:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return Feature.model_construct(name=name, kind="continuous", range=(low, high if high > low else low + 1))
