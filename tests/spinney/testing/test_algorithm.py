"""Every algorithm of ours holds the contract that an algorithm of somebody else's is held to."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.plugins import ALGORITHMS
from spinney.study.study import Study
from spinney.testing.algorithm import AlgorithmContract


def study_of(algorithm: str, **more: Any) -> Study:
    features = [{"name": f"x{place}", "kind": "continuous", "range": [0, 1]} for place in range(5)]
    return Study.model_validate(
        {
            "name": "wood",
            "features": [*features, {"name": "male", "kind": "binary"}],
            "label": {"name": "died"},
            "forest": {"trees": 4},
            "choice": {"bootstrap": 100},
            "algorithm": {"name": algorithm},
            **more,
        }
    )


class TestAlgorithms(AlgorithmContract):
    @pytest.fixture(params=sorted({*ALGORITHMS} - {"dp-forest"}))  # its noise is never the same
    def study(self, request: pytest.FixtureRequest) -> Study:
        return study_of(request.param)


class TestSecureSums(AlgorithmContract):
    @pytest.fixture(params=["ring", "trusted-third-party"])
    def study(self, request: pytest.FixtureRequest) -> Study:
        return study_of("bofrf", privacy={"secure_sum": request.param}, imputation="federated-means")
