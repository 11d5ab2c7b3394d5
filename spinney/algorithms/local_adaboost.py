"""Local AdaBoost on stumps: BOPPID's own baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from spinney.algorithms.boppid import MESSAGES, BoppidSite, CombineOrder
from spinney.base import Settings
from spinney.federation.messages import GrowOrder
from spinney.federation.seam import Algorithm, Federation, Message
from spinney.federation.welcome import welcome

if TYPE_CHECKING:
    from spinney.study.study import Study


class LocalAdaboost(Settings):
    """Every site boosts for itself."""

    name: Literal["local-adaboost"] = Field("local-adaboost", description="The site's own boosted stumps.")


class AdaboostSite(BoppidSite):
    """Boost and measure."""

    steps, last_step = frozenset({"join", "alone"}), "alone"

    def alone(self, order: GrowOrder) -> Message:  # noqa: ARG002
        """Nothing is sealed for anybody."""
        self.boosted()
        return self.combine(CombineOrder({}, {}))

    @property
    def theta(self) -> float:
        """There is nobody to compare with."""
        return 0.0


def coordinate(federation: Federation, study: Study) -> str:
    """There is no common model."""
    joined = welcome(federation, study)
    federation.ask("alone", dict.fromkeys(joined, GrowOrder(())))
    return ""


ALGORITHM = Algorithm(LocalAdaboost, AdaboostSite, coordinate, MESSAGES)
