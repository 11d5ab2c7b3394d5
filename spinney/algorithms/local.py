"""The local forest: no help from anybody. The baseline that a site has without a federation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from spinney.base import Settings
from spinney.choice.personalise import Candidate, Pool, Rules
from spinney.federation.forest_site import ForestSite, equal_votes
from spinney.federation.messages import GrowOrder, Manifest, Weights
from spinney.federation.seam import Algorithm, Federation, Message
from spinney.federation.welcome import welcome

if TYPE_CHECKING:
    from spinney.study.study import Study


class Local(Settings):
    """Every site for itself."""

    name: Literal["local"] = Field("local", description="The site's own forest, and nothing from others.")


class LocalSite(ForestSite):
    """Grow and measure."""

    steps, last_step = frozenset({"join", "alone"}), "alone"

    def alone(self, order: GrowOrder) -> Message:  # noqa: ARG002
        """Grow, and keep it: nothing is sealed for anybody."""
        self.grown()
        return self.finish(Weights(Manifest((), ()), np.empty(0)))

    def candidates(self, pool: Pool, order: Weights) -> tuple[Sequence[Candidate], Rules]:
        """One forest, no choice."""
        local, _ = equal_votes(pool, len(order.manifest))
        return [local], Rules(shown=("local",), default="local", guard=False)


def coordinate(federation: Federation, study: Study) -> str:
    """There is no common model."""
    joined = welcome(federation, study)
    federation.ask("alone", dict.fromkeys(joined, GrowOrder(())))
    return ""


ALGORITHM = Algorithm(Local, LocalSite, coordinate)
