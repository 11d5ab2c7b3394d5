"""What a step is called in front of people: `grow 100 trees`, `score 412 trees of 3 sites`."""

from __future__ import annotations

from functools import singledispatch

from spinney.federation.messages import (
    AddOrder,
    CheckOrder,
    EnrolOrder,
    FillOrder,
    FitResult,
    GrowOrder,
    Invitation,
    LendOrder,
    Manifest,
    ReleaseOrder,
    ResumeOrder,
    RingOrder,
    ScoreOrder,
    SignOrder,
    Weights,
)
from spinney.federation.seam import Message
from spinney.study.study import Study


def title(step: str, order: Message, study: Study) -> str:
    """A step's name for the run that does it; an algorithm's own step is called by its name."""
    return _words(order, study) or f"answer {step}"


@singledispatch
def _words(order: Message, study: Study) -> str:  # noqa: ARG001
    return ""


@_words.register
def _(order: Invitation, study: Study) -> str:  # noqa: ARG001
    return f"join round {order.round}"


@_words.register
def _(order: ResumeOrder, study: Study) -> str:  # noqa: ARG001
    return f"go on with the epoch of round {order.epoch}"


@_words.register
def _(order: LendOrder, study: Study) -> str:  # noqa: ARG001
    return f"lend the trees of the epoch to {', '.join(order.peers)}"


@_words.register
def _(order: EnrolOrder, study: Study) -> str:  # noqa: ARG001
    return f"join the means of round {order.round}"


@_words.register
def _(order: FillOrder, study: Study) -> str:  # noqa: ARG001
    return f"add to the means of {len(order.participants)} sites" if type(order) is FillOrder else ""


@_words.register
def _(order: GrowOrder, study: Study) -> str:  # noqa: ARG001
    return f"grow {study.forest.trees} trees"


@_words.register
def _(order: CheckOrder, study: Study) -> str:  # noqa: ARG001
    return f"check the forests of {len(order.forests)} sites"


@_words.register
def _(order: ScoreOrder, study: Study) -> str:  # noqa: ARG001
    return f"score {_trees(order.manifest)}"


@_words.register
def _(order: SignOrder, study: Study) -> str:  # noqa: ARG001
    return "sign the list of answers"


@_words.register
def _(order: ReleaseOrder, study: Study) -> str:  # noqa: ARG001
    return "release the sum"


@_words.register
def _(order: RingOrder, study: Study) -> str:  # noqa: ARG001
    return f"add to {len(order.packets)} sums and pass them on"


@_words.register
def _(order: AddOrder, study: Study) -> str:  # noqa: ARG001
    return f"add to the {order.subject} of {len(order.participants)} sites"


@_words.register
def _(order: FitResult, study: Study) -> str:  # noqa: ARG001
    return f"choose with a common regression of {len(order.terms.places)} columns"


@_words.register
def _(order: Weights, study: Study) -> str:  # noqa: ARG001
    return f"choose among {_trees(order.manifest)}"


def _trees(manifest: Manifest) -> str:
    return f"{len(manifest)} trees of {len({*manifest.owners})} sites"
