"""BOFRF: every tree is scored at every site, and the summed confusion counts decide how much its vote counts.

Base, personalised (each site tries several tau) and clustered (sites of a kind help each other).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from spinney.base import Settings
from spinney.choice import metrics
from spinney.choice.personalise import Candidate, LinearCandidate, Pool, Rules
from spinney.choice.weigh import Cap, mcc_weights, or_equal, tempered_weights
from spinney.errors import Refused
from spinney.federation.companion import companion, why_none
from spinney.federation.forest_site import equal_votes
from spinney.federation.gathering import gather, publish
from spinney.federation.linear_candidates import common_candidate, local_candidates
from spinney.federation.linear_sums import LinearSums
from spinney.federation.messages import AddOrder, Description, Weights
from spinney.federation.real_sums import ADDING, Terms
from spinney.federation.scoring import ScoringSite, sum_counts
from spinney.federation.seam import Algorithm, Federation
from spinney.federation.welcome import welcome
from spinney.rows.clusters import best_separated, distances, farthest_first

if TYPE_CHECKING:
    from spinney.study.study import Study

Floats = NDArray[np.float64]


class Bofrf(Settings):
    """Boosting-based federated random forest."""

    name: Literal["bofrf"] = Field("bofrf", description="Trees weighted by how well they do at all sites.")
    preset: Literal["spinney", "published"] = Field(
        "spinney", description="published: in-sample scores, raw correlations above tau, F or F_n, no guard."
    )
    weighting: Literal["tempered", "mcc"] | None = Field(
        None, description="tempered: own and common experience; mcc: correlation where it passes tau. Empty: preset."
    )
    tau: float = Field(0.2, ge=0, lt=1, description="With weighting mcc: a tree at or below this has no vote.")
    scoring_of_own_trees: Literal["out-of-bag", "training"] | None = Field(
        None, description="Rows on which a site scores its own trees. Empty: preset."
    )
    selection: Literal["guarded", "personalised"] = Field(
        "guarded",
        description="guarded: F unless local is better beyond noise; personalised: best tau and ensemble first.",
    )
    taus: tuple[float, ...] = Field(
        (0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4), description="What the personalised selection tries."
    )
    clusters: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        1, description="Number of clusters of sites; 1: all together; auto: as many as their vectors fall into."
    )
    distance: Literal["euclidean", "manhattan", "minkowski"] = Field(
        "euclidean", description="Between characteristic vectors."
    )
    minkowski_p: float = Field(3.0, ge=1, description="Order of the Minkowski distance.")
    companion: Literal["linear", "none"] = Field(
        "none",
        description="linear: beside the forest, one logistic regression of all sites by secure sums, once per epoch.",
    )
    companion_penalty: float = Field(
        10.0, gt=0, le=1e6, description="Of the companion's squared coefficients, halved, per column."
    )
    open_share: float = Field(
        0.25,
        ge=0,
        le=1,
        description="Numbers that the companion may open in an epoch, as a share of training rows times columns.",
    )
    first_centroid: str | None = Field(None, description="Site that starts the clustering. Empty: drawn by the seed.")

    @property
    def published(self) -> bool:
        """The combination of the publication."""
        return self.preset == "published"

    @property
    def penalty(self) -> float:
        """Of the companion."""
        return self.companion_penalty

    @property
    def accompanied(self) -> bool:
        """Whether a logistic regression is fitted beside the forest: not in the combinations of the publication."""
        return self.companion == "linear" and not self.published and self.selection == "guarded"

    @property
    def strict(self) -> tuple[float, ...]:
        """Every tau that may decide about a tree."""
        decides = not self.tempered or self.selection == "personalised"
        return tuple(sorted({self.tau, *self.taus})) if decides else ()

    @property
    def tempered(self) -> bool:
        """Our weighting, unless the study says otherwise."""
        return self.weighting == "tempered" or (self.weighting is None and not self.published)

    @property
    def out_of_bag(self) -> bool:
        """Own trees are scored on patients that they were not grown on, unless the study says otherwise."""
        own = self.scoring_of_own_trees
        return own == "out-of-bag" or (own is None and not self.published)

    def newcomer(self, common: Floats) -> Floats:
        """Weights of the common trees at a site that brings nothing, so that it has no word of its own."""
        weights = tempered_weights(common, common, 0) if self.tempered else mcc_weights(common, self.tau)
        return or_equal(weights, np.ones(len(common), dtype=bool))


@dataclass(frozen=True)
class Weigher:
    """Weights of F (all common trees) or F_n (own trees only) by either rule."""

    common: Floats  # G; NaN of own trees that too few sites can score: there is only what this site has seen of them
    allowed: NDArray[np.bool_]
    note: str
    own: Floats  # S
    rows: int
    cap: Cap

    def tempered(self, name: str) -> Candidate:
        """Our rule."""
        return Candidate(name, lambda own: self._kept(tempered_weights(self._known(own), own, self.rows)), self.note)

    def above(self, name: str, tau: float) -> Candidate:
        """The published rule."""
        weights = mcc_weights(self._known(self.own), tau)
        note = self.note if weights[self.allowed].any() else f"{name}: no tree is above tau {tau:g}, so votes are equal"
        if not np.isnan(self.common).any():
            return Candidate(name, self._kept(weights), note)
        return Candidate(name, lambda own: self._kept(mcc_weights(self._known(own), tau)), note)

    def _known(self, own: Floats) -> Floats:
        """G, or what this site has seen of a tree where nobody else has seen it."""
        return np.where(np.isnan(self.common), own, self.common)

    def _kept(self, weights: Floats) -> Floats:
        return self.cap.on(or_equal(weights, self.allowed))


class BofrfSite(LinearSums, ScoringSite):
    """Scores everybody's trees, adds to the companion's sums, then chooses."""

    steps = ScoringSite.steps | ADDING

    def summands(self, order: AddOrder) -> tuple[Floats, Terms]:
        """What the companion asks for, where the study has one."""
        if not self.settings.accompanied:
            raise Refused("this study has no logistic regression beside its forest")
        return super().summands(order)

    @property
    def settings(self) -> Bofrf:
        """The study's words."""
        settings: Bofrf = self.house.study.algorithm
        return settings

    @property
    def fences(self) -> bool:
        """Not as published."""
        return not self.settings.published

    def counted_rows(self, owners: Sequence[str], unseen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Own trees out of bag, or as published on the rows that they were grown on."""
        if self.settings.out_of_bag:
            return super().counted_rows(owners, unseen)
        return np.ones((len(unseen), len(owners)), dtype=bool)

    def candidates(self, pool: Pool, order: Weights) -> tuple[Sequence[Candidate | LinearCandidate], Rules]:
        """Local, equal votes, F and F_n by the study's rule, what the personalised selection tries, the companion's.

        With a companion the guard compares with the strongest that a site can have alone, its forest beside its own
        logistic regression; also on a night on which there is no common one.
        """
        settings = self.settings
        local, fedrf = equal_votes(pool, len(order.manifest))
        sites = len({*pool.owners})
        largest = 1.0 if settings.published else self.house.study.privacy.share_cap(sites)
        cap = Cap(pool.owners, pool.home, largest)
        everybody, alone = (self._weigher(pool, order, cap, own_only=own_only) for own_only in (False, True))
        both = (("F", everybody), ("F_n", alone))
        personal = [weigher.above(f"{name} tau {tau:g}", tau) for name, weigher in both for tau in settings.taus]
        if not settings.published:
            personal = [*(weigher.tempered(name) for name, weigher in both), *personal]
        chosen = [
            weigher.tempered(name) if settings.tempered else weigher.above(name, settings.tau)
            for name, weigher in (("bofrf", everybody), ("bofrf own trees", alone))
        ]
        rules = self._rules(tuple(candidate.name for candidate in personal))
        trees = [local, fedrf, *chosen, *personal]
        return self._accompanied(trees, rules, order) if settings.accompanied else (trees, rules)

    def _accompanied(
        self, trees: list[Candidate], rules: Rules, order: Weights
    ) -> tuple[list[Candidate | LinearCandidate], Rules]:
        """With the logistic regressions that there are at home, and the common one."""
        summed, study, terms = self.took_part(order.linear), self.house.study, order.linear
        beside = local_candidates(self.training, study, self.linear.penalty)
        rules = replace(rules, shown=("local", "local blend", "fedrf", "bofrf"), opponents=("local", "local blend"))
        if not terms:
            noted = [replace(one, note=one.note or why_none(terms)) if one.name == "bofrf" else one for one in trees]
            return [*noted, *beside], rules
        common = [
            common_candidate("linear", terms, self.training, study, summed=summed),
            common_candidate("blend", terms, self.training, study, summed=summed, beside="bofrf"),
        ]
        return [*trees, *beside, *common], replace(rules, shown=(*rules.shown, "linear", "blend"), default="blend")

    def _rules(self, personal: tuple[str, ...]) -> Rules:
        shown, published = ("local", "fedrf", "bofrf"), self.settings.published
        among = personal
        if self.settings.selection == "guarded":
            among = ("bofrf own trees", "bofrf") if published else ()
        ours = not published
        return Rules(shown, "bofrf", personal, choose_among=among, guard=ours, asks=ours, calibrates=ours)

    def _weigher(self, pool: Pool, order: Weights, cap: Cap, *, own_only: bool) -> Weigher:
        known = len(order.manifest)
        common = np.full(len(pool.owners), np.nan)
        common[:known] = order.weights
        allowed, note = (pool.ours, "") if own_only else pool.voting(known)
        return Weigher(common, allowed, note, metrics.mcc(pool.total), len(self.training), cap)


def coordinate(federation: Federation, study: Study) -> str:
    """Join, cluster, grow, check, score, weigh, publish."""
    joined = welcome(federation, study)
    clusters = gather(federation, study, clustered(joined, study))
    weighed = [(cluster, sum_counts(federation, study, cluster, joined)) for cluster in clusters]
    return publish(federation, study, joined, weighed, companion(federation, study, joined))


def clustered(joined: dict[str, Description], study: Study) -> list[tuple[str, ...]]:
    """Sites of a kind; a cluster too small for a secure sum joins its nearest."""
    settings: Bofrf = study.algorithm
    names = sorted(joined)
    if settings.clusters == 1:
        return [tuple(names)]
    vectors, fewest = np.stack([joined[name].vector for name in names]), study.privacy.fewest_scorers

    def clustered(k: int) -> list[tuple[str, ...]]:
        return farthest_first(
            names,
            vectors,
            k,
            settings.distance,
            settings.first_centroid if settings.first_centroid in joined else None,  # it may have declined
            study.split.seed,
            p=settings.minkowski_p,
            fewest=fewest,
        )

    if settings.clusters != "auto":
        return clustered(settings.clusters)
    most = max(1, len(names) // fewest)
    return best_separated(
        [clustered(k) for k in range(1, most + 1)], names, distances(vectors, settings.distance, settings.minkowski_p)
    )


ALGORITHM = Algorithm(Bofrf, BofrfSite, coordinate)
