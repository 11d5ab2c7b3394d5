"""FedRF: the union of all trees, one vote each. The baseline in every report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from spinney.base import Settings
from spinney.federation.forest_site import ForestSite
from spinney.federation.gathering import gather, publish
from spinney.federation.seam import Algorithm, Federation
from spinney.federation.welcome import welcome

if TYPE_CHECKING:
    from spinney.study.study import Study


class Fedrf(Settings):
    """Every tree of every site has the same weight."""

    name: Literal["fedrf"] = Field("fedrf", description="Equal votes of all trees.")


def coordinate(federation: Federation, study: Study) -> str:
    """Grow, check, publish."""
    joined = welcome(federation, study)
    clusters = gather(federation, study, [tuple(joined)])
    weighed = [(cluster, np.ones(len(cluster.manifest))) for cluster in clusters]
    return publish(federation, study, joined, weighed)


ALGORITHM = Algorithm(Fedrf, ForestSite, coordinate)
