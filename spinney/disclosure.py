"""What may pass between houses, checked at the sender when a message is built and again where it arrives.

An allow-list: a kind of message that has no rule here does not pass.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from spinney.encode import columns_of
from spinney.errors import Refused
from spinney.federation import Decline, Message, Parcel
from spinney.messages import (
    Description,
    Done,
    GrownForest,
    MaskedCounts,
    OwnWeights,
    PlainCounts,
    ReleasedSeed,
    RingPackets,
    Signature,
    Verdict,
)
from spinney.study import Study

SHARED_FIGURES = frozenset({"auroc", "auprc", "brier", "mcc", "sensitivity", "specificity"})
LONGEST_REASON = 1000


@singledispatch
def check(reply: Message, study: Study) -> None:  # noqa: ARG001
    """Refuse a site's message that says more than the study allows, or something that can't be."""
    raise Refused(f"{type(reply).__name__} is no message that a site may send")


@check.register
def _(reply: Decline, study: Study) -> None:  # noqa: ARG001
    _require(len(reply.reason) <= LONGEST_REASON, "a reason is a sentence")


@check.register
def _(reply: Description, study: Study) -> None:
    columns = len(columns_of(study.features))
    privacy = study.privacy
    known = reply.vector[~np.isnan(reply.vector)]
    _require(reply.rows % privacy.rows_precision == 0, "rows are rounded")
    _require(reply.rows + privacy.rows_precision > privacy.smallest_cohort, "the smallest cohort is kept")
    _require(reply.vector.shape == reply.present.shape == (columns,), "one number per column of the study")
    _require(bool(np.all((known >= 0) & (known <= 1))), "means and shares are in 0..1")
    _require(bool(np.all(known == np.round(known, 3))), "means and shares are rounded")
    _require(len(reply.key) == 32 and len(reply.signature) == 64, "a key and its signature")


@check.register
def _(reply: GrownForest, study: Study) -> None:  # noqa: ARG001
    _require_parcel(reply.forest)


@check.register
def _(reply: Verdict, study: Study) -> None:
    digests = [digest for accepted in reply.accepted.values() for digest in accepted]
    _require(all(len(accepted) <= study.forest.trees for accepted in reply.accepted.values()), "trees of the study")
    _require(reply.scorable <= {*digests}, "only accepted trees are scored")
    _require(all(len(reason) <= LONGEST_REASON for reason in reply.refused.values()), "a reason is a sentence")


@check.register
def _(reply: MaskedCounts, study: Study) -> None:
    _require(study.privacy.secure_sum == "masked", "the study's secure sum")
    _require_counts(reply.counts, np.uint64)


@check.register
def _(reply: PlainCounts, study: Study) -> None:
    _require(study.privacy.secure_sum == "trusted-third-party", "the study's secure sum")
    _require_counts(reply.counts, np.int64)
    _require(bool(np.all(reply.counts >= 0)), "counts are not negative")


@check.register
def _(reply: RingPackets, study: Study) -> None:
    _require(study.privacy.secure_sum == "ring", "the study's secure sum")
    for parcel in reply.packets.values():
        _require_parcel(parcel)


@check.register
def _(reply: OwnWeights, study: Study) -> None:
    steps = reply.weights / study.privacy.weight_precision
    _require(bool(np.all(np.abs(reply.weights) <= 1)), "weights are in -1..1")
    _require(bool(np.all(np.abs(steps - np.rint(steps)) < 1e-6)), "weights are rounded")


@check.register
def _(reply: Signature, study: Study) -> None:  # noqa: ARG001
    _require(len(reply.signature) == 64, "a signature")


@check.register
def _(reply: ReleasedSeed, study: Study) -> None:  # noqa: ARG001
    _require(len(reply.seed) == 32, "a seed")


@check.register
def _(reply: Done, study: Study) -> None:
    allowed = SHARED_FIGURES if study.privacy.share_metrics else frozenset()
    _require(set(reply.figures) <= allowed, "figures that the study shares")
    figures = list(reply.figures.values())
    _require(all(-1 <= value <= 1 and value == round(value, 2) for value in figures), "figures are rounded")


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise Refused(f"a message breaks the rule: {rule}")


def _require_parcel(parcel: Parcel) -> None:
    _require(len(parcel.digest) == 64 and parcel.size > 0, "a parcel has a digest and a size")


def _require_counts(counts: NDArray[np.generic], dtype: type[np.generic]) -> None:
    _require(counts.dtype == dtype and counts.ndim == 2 and counts.shape[1] == 4, "four counts per tree")
