"""Every message of some simulated rounds, as it went through the wire."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import msgpack
import numpy as np
import pandas as pd

from spinney.federation.messages import Description, Weights
from spinney.federation.seam import Message
from spinney.house import encoding as wire
from spinney.rows.cohort import Cohort, cohort_from_frame
from spinney.study.study import Study
from spinney.trial.simulate import InProcess, simulate

FEATURES = [{"name": f"x{place}", "kind": "continuous", "range": [0, 1]} for place in range(4)]
ROUNDS = (
    ("bofrf", "masked"),
    ("bofrf", "ring"),
    ("bofrf", "trusted-third-party"),
    ("fedrf", "masked"),
    ("boppid", "masked"),
    ("local", "masked"),
    ("local-adaboost", "masked"),
    ("dp-forest", "masked"),
    ("linear", "masked"),
    ("linear", "ring"),
    ("linear", "trusted-third-party"),
    ("fedrf", "masked", "federated-means"),
    ("fedrf", "ring", "federated-means"),
    ("fedrf", "trusted-third-party", "federated-means"),
)


def wood(algorithm: str, secure_sum: str, imputation: str = "none") -> Study:
    """A small study."""
    return Study.model_validate(
        {
            "name": "wood",
            "features": FEATURES,
            "label": {"name": "y"},
            "forest": {"trees": 6, "max_depth": 4},
            "algorithm": {"name": algorithm},
            "imputation": imputation,
            "privacy": {"secure_sum": secure_sum},
            "choice": {"bootstrap": 100, "folds": 3},
            "split": {"validation": 0, "newest": 0},
        }
    )


def cohorts(study: Study) -> dict[str, Cohort]:
    """Four sites that take part, and one that is too small and declines."""
    made = {}
    for seed, (site, rows) in enumerate({"ash": 160, "beech": 160, "cedar": 160, "elm": 160, "fir": 12}.items()):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.random((rows, 4)), columns=["x0", "x1", "x2", "x3"])
        table["y"] = (rng.random(rows) < 1 / (1 + np.exp(4 - 8 * table["x0"]))).astype(int)
        made[site] = cohort_from_frame(table, study)
    return made


def through_the_wire(study: Study) -> tuple[str, list[Message]]:
    """A round in which every order and every reply is packed and unpacked; its model, and what was sent."""
    sent: list[Message] = []

    def travel(letters: Mapping[str, Message]) -> dict[str, Message]:
        sent.extend(letters.values())
        return {site: wire.decode_message(wire.encode_message(message)) for site, message in letters.items()}

    class Recording(InProcess):
        def ask(self, step: str, orders: Mapping[str, Message], attempt: int = 1) -> dict[str, Message]:
            return travel(super().ask(step, travel(orders), attempt))

    with patch("spinney.trial.simulate.InProcess", Recording):
        people = cohorts(study)
        opening = simulate(study, people)
        simulate(study, {**people, "fir": people["elm"]}, round=2, after=opening)  # now large enough to be a guest
        return opening.model_digest, sent


@cache
def messages() -> dict[str, Message]:
    """One real message of every kind, by kind."""
    sent = [message for algorithm in ROUNDS for message in through_the_wire(wood(*algorithm))[1]]
    inner = [message.manifest for message in sent if isinstance(message, Weights)]
    return {type(message).__name__: message for message in [*sent, *inner]}


DESCRIPTION = Description(40, np.array([0.5, -0.0, np.nan]), np.array([True, False, True]), b"k" * 32, b"s" * 64)


def same(one: Any, other: Any) -> bool:
    """Equal bit for bit, also where NaN is not equal to itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return struct.pack("<d", one) == struct.pack("<d", other) if isinstance(one, float) else one == other


def changed(message: Message, change: Callable[[Any], Any]) -> bytes:
    """A message's bytes after something was done to its fields."""
    kind, values = msgpack.unpackb(wire.encode_message(message))
    content = dict(zip((field.name for field in fields(message)), values, strict=True))
    return msgpack.packb([kind, [*(change(content) or content).values()]])
