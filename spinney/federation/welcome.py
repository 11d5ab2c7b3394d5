"""The first step of every algorithm: who takes part, with which features and which key for this round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.federation.filling import federated_means
from spinney.federation.gathering import ask, require
from spinney.federation.messages import Description, Invitation
from spinney.federation.seam import Federation

if TYPE_CHECKING:
    from spinney.study.study import Study


def welcome(federation: Federation, study: Study) -> dict[str, Description]:
    """Ask who takes part; void below the quorum. Means over all sites come first, where the study fills with them."""
    invitation = Invitation(federation.round)
    if study.imputation == "federated-means":
        invitation = Invitation(federation.round, federated_means(federation, study))
    joined = ask(federation, "join", dict.fromkeys(federation.sites, invitation), Description)
    require(federation, study)
    return joined
