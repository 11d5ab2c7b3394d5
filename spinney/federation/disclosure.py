"""What may pass between houses, checked at the sender when a message is built and again where it arrives.

An allow-list: a kind of message that has no rule here does not pass.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from spinney.errors import LONGEST_REASON, Refused
from spinney.federation.messages import (
    Description,
    Done,
    Enrolment,
    GrownForest,
    Lent,
    MaskedCounts,
    MaskedMeans,
    MaskedReals,
    OwnWeights,
    PlainCounts,
    PlainMeans,
    PlainReals,
    ReleasedSeed,
    Resumed,
    RingMeans,
    RingPackets,
    RingReals,
    Signature,
    Verdict,
)
from spinney.federation.refusals import RULES
from spinney.federation.seam import Decline, Message, MessageKind, Parcel
from spinney.plugins import ALGORITHMS
from spinney.rows.describe import MEAN_STEPS, VECTOR_DECIMALS
from spinney.rows.encode import columns_of
from spinney.study.study import Study

SHARED_FIGURES = frozenset({"auroc", "auprc", "brier", "mcc", "sensitivity", "specificity"})
LONGEST_NAME = 64
MOST_ROWS = 10**9  # by which counts are given their bits


@singledispatch
def check_message(reply: Message, study: Study) -> None:
    """Refuse a site's message that says more than the study allows, or something that can't be."""
    brought: tuple[MessageKind, ...] = ALGORITHMS[study.algorithm.name].messages
    check = next((one.check for one in brought if one.kind is type(reply)), None)
    if check is None:
        raise Refused(f"{type(reply).__name__} is no message that a site may send")
    check(reply, study)


@check_message.register
def _(reply: Decline, study: Study) -> None:  # noqa: ARG001
    _require(len(reply.reason) <= LONGEST_REASON, "a reason is a sentence")


@check_message.register
def _(reply: Description, study: Study) -> None:
    _require_introduction(reply, study)
    rates = (len(study.features) if study.privacy.missing_rates else 0) + study.privacy.label_rate
    _require(reply.vector.shape == (len(reply.present) + rates,), "one number per column of the study")
    _require_means(reply.vector)


@check_message.register
def _(reply: Enrolment, study: Study) -> None:
    _require_means_are_asked(study)
    _require_introduction(reply, study)


@check_message.register
def _(reply: MaskedMeans, study: Study) -> None:
    _require_means_are_asked(study)
    _require(study.privacy.secure_sum == "masked", "the study's secure sum")
    _require_two_per_column(reply.counts, np.uint64, study)


@check_message.register
def _(reply: PlainMeans, study: Study) -> None:
    _require_means_are_asked(study)
    _require(study.privacy.secure_sum == "trusted-third-party", "the study's secure sum")
    _require_two_per_column(reply.counts, np.int64, study)
    rows, sums = reply.counts.T
    _require(bool(np.all((rows >= 0) & (rows % study.privacy.rows_precision == 0))), "known rows are rounded")
    _require(bool(np.all((sums >= 0) & (sums <= MEAN_STEPS * rows))), "means and shares are in 0..1")
    _require(bool(np.all(sums % np.maximum(rows, 1) == 0)), "means and shares are rounded")


@check_message.register
def _(reply: RingMeans, study: Study) -> None:
    _require_means_are_asked(study)
    _require(study.privacy.secure_sum == "ring", "the study's secure sum")
    _require(reply.means.shape == (len(columns_of(study.features)),), "one number per column of the study")
    _require_means(reply.means)


@check_message.register
def _(reply: MaskedReals, study: Study) -> None:
    _require_reals(reply.counts, np.uint64, "masked", study)


@check_message.register
def _(reply: PlainReals, study: Study) -> None:
    _require_reals(reply.counts, np.int64, "trusted-third-party", study)


@check_message.register
def _(reply: RingReals, study: Study) -> None:
    _require_reals(reply.counts, np.int64, "ring", study)


@check_message.register
def _(reply: GrownForest, study: Study) -> None:  # noqa: ARG001
    _require_parcel(reply.forest)
    _require(len(reply.trees) == 64, "trees have a digest")


@check_message.register
def _(reply: Resumed, study: Study) -> None:
    _require_card(reply, study)


@check_message.register
def _(reply: Lent, study: Study) -> None:  # noqa: ARG001
    _require_parcel(reply.forest)


@check_message.register
def _(reply: Verdict, study: Study) -> None:
    sizes = [one.shape for one in reply.scorable.values()]
    _require(all(len(size) == 1 and size[0] <= study.forest.trees for size in sizes), "trees of the study")
    _require(not {*reply.scorable} & {*reply.refused}, "trees that are refused are not scored")
    _require({*reply.refused.values()} <= {*RULES}, "a reason is a rule that all sites can check")


@check_message.register
def _(reply: MaskedCounts, study: Study) -> None:
    _require(study.privacy.secure_sum == "masked", "the study's secure sum")
    counts = reply.counts
    _require(counts.dtype == np.uint64 and counts.ndim == 2 and counts.shape[1] == 2, "two hidden numbers per row")


@check_message.register
def _(reply: PlainCounts, study: Study) -> None:
    _require(study.privacy.secure_sum == "trusted-third-party", "the study's secure sum")
    counts = reply.counts
    _require(counts.dtype == np.int64 and counts.ndim == 2 and counts.shape[1] == 4, "four counts per tree")
    _require(bool(np.all(counts >= 0)), "counts are not negative")


@check_message.register
def _(reply: RingPackets, study: Study) -> None:
    _require(study.privacy.secure_sum == "ring", "the study's secure sum")
    for parcel in reply.packets.values():
        _require_parcel(parcel)


@check_message.register
def _(reply: OwnWeights, study: Study) -> None:
    steps = reply.weights / study.privacy.weight_precision
    _require(bool(np.all(np.abs(reply.weights) <= 1)), "weights are in -1..1")
    _require(bool(np.all(np.abs(steps - np.rint(steps)) < 1e-6)), "weights are rounded")


@check_message.register
def _(reply: Signature, study: Study) -> None:  # noqa: ARG001
    _require(len(reply.signature) == 64, "a signature")


@check_message.register
def _(reply: ReleasedSeed, study: Study) -> None:  # noqa: ARG001
    _require({len(seed) for seed in (reply.seed, *reply.guards)} == {32}, "a seed")


@check_message.register
def _(reply: Done, study: Study) -> None:
    allowed = SHARED_FIGURES if study.privacy.share_metrics else frozenset()
    _require(set(reply.figures) <= allowed, "figures that the study shares")
    figures = list(reply.figures.values())
    _require(all(-1 <= value <= 1 and value == round(value, 2) for value in figures), "figures are rounded")


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise Refused(f"a message breaks the rule: {rule}")


def _require_introduction(reply: Description | Enrolment, study: Study) -> None:
    privacy = study.privacy
    _require(reply.rows % privacy.rows_precision == 0, "rows are rounded")
    _require(reply.rows <= MOST_ROWS, f"no hospital has more than {MOST_ROWS:,} rows")
    _require(reply.rows + privacy.rows_precision > privacy.smallest_cohort, "the smallest cohort is kept")
    _require_card(reply, study)


def _require_card(reply: Description | Enrolment | Resumed, study: Study) -> None:
    _require(reply.present.shape == (len(columns_of(study.features)),), "one number per column of the study")
    _require(len(reply.key) == 32 and len(reply.signature) == 64, "a key and its signature")


def _require_means_are_asked(study: Study) -> None:
    _require(study.imputation == "federated-means", "means are told where the study fills with them")


def _require_means(means: NDArray[np.float64]) -> None:
    known = means[~np.isnan(means)]
    _require(bool(np.all((known >= 0) & (known <= 1))), "means and shares are in 0..1")
    _require(bool(np.all(known == np.round(known, VECTOR_DECIMALS))), "means and shares are rounded")


def _require_two_per_column(counts: NDArray[np.generic], dtype: type[np.generic], study: Study) -> None:
    columns = len(columns_of(study.features))
    _require(counts.dtype == dtype and counts.shape == (columns, 2), "known rows and sum of every column")


def _require_reals(counts: NDArray[np.generic], dtype: type[np.generic], mode: str, study: Study) -> None:
    _require("add" in ALGORITHMS[study.algorithm.name].site_part.steps, "an algorithm that sums real numbers")
    _require(study.privacy.secure_sum == mode, "the study's secure sum")
    _require(counts.dtype == dtype and counts.ndim == 2 and counts.shape[1] == 1, "one number per row")


def _require_parcel(parcel: Parcel) -> None:
    _require(len(parcel.digest) == 64 and parcel.size > 0, "a parcel has a digest and a size")
    _require(len(parcel.sender) <= LONGEST_NAME, "a parcel has the name of a house")
