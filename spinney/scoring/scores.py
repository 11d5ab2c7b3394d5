"""Tonight's patients and what the champion says about them, from the vault to wherever the hospital wants it.

Rows are those that the study's population rule takes and whose outcome nobody knows yet. A row is told once per patient
and index time; where a finished table has several, the highest probability counts.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from spinney.cohort.handover import Handover
from spinney.cohort.vault import Vault
from spinney.rows.cohort_ref import CohortRef
from spinney.study.study import Study

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest

KEY_BYTES = 16


@dataclass(frozen=True)
class ScoredBy:
    """The model behind a score: all that leads from a prediction back to its version."""

    model: str  # its name in the registry
    version: int
    digest: str


@dataclass(frozen=True)
class Score:
    """What is said about one patient at one time. Only ever in memory, and where the hospital wants it."""

    patient: str
    index_time: datetime
    probability: float
    decision: bool
    key: str  # keyed hash of patient, time and model version: the same score has the same key in every run

    def __repr__(self) -> str:
        return "Score(...)"  # tracebacks and logs may show a repr


def apply_model(vault: Vault, rows: CohortRef, study: Study, model: FederatedForest) -> pa.Table:
    """Probability and decision for every open row, by hashed patient and index time."""
    frame = vault.read(rows).to_pandas()
    features = frame[[feature.name for feature in study.features if feature.name in frame]]
    said = model.predict_proba(features)[:, 1] if len(frame) else np.empty(0)
    told = pd.DataFrame({"patient": frame["patient"], "index_time": frame["index_time"], "probability": said})
    told = told.sort_values("probability", ascending=False, kind="stable").drop_duplicates(["patient", "index_time"])
    told["decision"] = told["probability"] >= model.threshold_
    ordered = told.sort_values(["index_time", "patient"], kind="stable")
    return pa.Table.from_pandas(ordered, preserve_index=False)


def to_write(handover: Handover, source: ScoredBy, study: str) -> Iterator[Score]:
    """The scores of the handover with the identifiers of their patients."""
    known, key = handover.identifiers(), handover.vault.key
    for row in handover.scores().to_pylist():
        at = _utc(row["index_time"])
        words = f"{study}/{row['patient']}/{at.isoformat()}/{source.digest}".encode()
        yield Score(
            known[row["patient"]],
            at,
            float(row["probability"]),
            bool(row["decision"]),
            hmac.digest(key, b"score/" + words, "sha256")[:KEY_BYTES].hex(),
        )


def in_batches(scores: Iterable[Score], size: int) -> Iterator[list[Score]]:
    """So many at a time."""
    left = iter(scores)
    while some := list(islice(left, size)):
        yield some


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
