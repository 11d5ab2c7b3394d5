"""Small made-up federations in one process, honest and otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spinney.choice.personalise import Outcome
from spinney.federation.messages import Manifest
from spinney.federation.seam import Message, SitePart
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort
from spinney.rows.encode import columns_of
from spinney.rows.parts import parts_by_hash, parts_by_seed
from spinney.study.study import Study
from spinney.trial.simulate import InProcess, LocalMail, houses_of

SITES = ("ash", "beech", "cedar", "elm")
FEATURES = [{"name": f"x{place}", "kind": "continuous", "range": [0, 1]} for place in range(4)]
CONCEPT = (4.0, 2.0, 0.0, 0.0)
SMALL: dict[str, Any] = {
    "forest": {"trees": 6, "max_depth": 4},
    "choice": {"bootstrap": 100, "folds": 3},
    "privacy": {"lent_leaf": 5},  # as at home, so that the trees that are lent are those that vote
}

Tamper = Callable[[str, str, Message], Message]  # step, site, order -> order


def study(**sections: Any) -> Study:
    """Four features, six small trees per site, and whatever a test wants otherwise."""
    small = {name: {**values, **sections.get(name, {})} for name, values in SMALL.items()}
    return Study.model_validate({"name": "wood", "features": FEATURES, "label": {"name": "y"}, **sections, **small})


def cohort(
    wood: Study,
    rows: int = 160,
    seed: int = 0,
    *,
    concept: Sequence[float] = CONCEPT,
    shift: float = 0.0,
    base: float = 0.0,
    absent: Sequence[int] = (),
    rows_per_patient: int = 1,
) -> Cohort:
    """Rows whose log-odds are the features times the concept, plus a base rate."""
    rng = np.random.default_rng([seed, 77])
    X = np.clip(rng.random((rows, len(wood.features))) + shift, 0, 1).astype(np.float32)
    odds = 2 * (X - 0.5 - shift) @ np.asarray(concept) + base
    y = (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(np.int8)
    present = ~np.isin(np.arange(X.shape[1]), absent)
    X[:, ~present] = np.nan
    patients = np.arange(rows) // rows_per_patient
    part = parts_by_seed(y, wood.split)
    if rows_per_patient > 1:
        part = parts_by_hash([str(patient) for patient in patients], b"key", wood.split)
    return Cohort(columns_of(wood.features), present, X, y, patients, part)


def cohorts(wood: Study, names: Sequence[str] = SITES, rows: int = 160, **kwargs: Any) -> dict[str, Cohort]:
    """One cohort per site, all of one concept."""
    return {name: cohort(wood, rows, seed, **kwargs) for seed, name in enumerate(names)}


class Wood(InProcess):
    """A federation in which a test may replace a site's part, change orders on their way, or shuffle the replies."""

    def __init__(
        self,
        wood: Study,
        people: Mapping[str, Cohort],
        *,
        parts: Mapping[str, type[SitePart]] | None = None,
        tamper: Tamper | None = None,
        shuffle: int | None = None,
        round: int = 1,
        **kwargs: Any,
    ) -> None:
        self.study, self.post = wood, LocalMail()
        self.houses = houses_of(wood, people, self.post, round)
        super().__init__(wood, self.houses, round=round, **kwargs)
        self._parts |= {name: part(self.houses[name]) for name, part in (parts or {}).items()}
        self._tamper, self._shuffle = tamper, shuffle
        self.asked: list[tuple[str, int, dict[str, Message]]] = []

    def ask(self, step: str, orders: Mapping[str, Message], attempt: int = 1) -> dict[str, Message]:
        if self._tamper is not None:
            orders = {site: self._tamper(step, site, order) for site, order in orders.items()}
        self.asked.append((step, attempt, dict(orders)))
        replies = list(super().ask(step, orders, attempt).items())
        if self._shuffle is not None:
            np.random.default_rng(self._shuffle).shuffle(replies)  # type: ignore[arg-type]
        return dict(replies)

    def run(self) -> str:
        """The whole round; the digest of the common model."""
        return ALGORITHMS[self.study.algorithm.name].coordinate(self, self.study)

    def site(self, name: str) -> Any:
        return self._parts[name]

    def order(self, step: str, site: str = "ash") -> Any:
        """What a site was asked last in a step."""
        return next(orders[site] for name, _, orders in reversed(self.asked) if name == step and site in orders)

    def steps(self) -> list[str]:
        return [f"{step} {attempt}" for step, attempt, _ in self.asked]

    @property
    def outcomes(self) -> dict[str, Outcome]:
        return {name: house.outcome for name, house in self.houses.items() if house.outcome is not None}

    def trees(self, manifest: Manifest) -> list[str]:
        """The digests of a manifest's trees, as their owners know them."""
        return [
            str(digest)
            for parcel, taken in zip(manifest.forests, manifest.taken, strict=True)
            for digest in np.asarray(self.site(parcel.sender).own_forest().digests)[taken]
        ]

    def owners(self, site: str = "ash") -> set[str]:
        """Whose trees were published to a site."""
        return set(self.order("finish", site).manifest.owners)
