"""A whole federation in one process: the reference that tests, benchmarks and readers use.

Sites answer in parallel; the model is the same bit for bit whatever the order of answers and the number of workers.
Parcels pass the coordinator's program unopened, and round keys and signatures are real, as between houses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from spinney.choice.model import FederatedForest
from spinney.choice.personalise import Outcome
from spinney.errors import Refused
from spinney.federation import disclosure
from spinney.federation.epochs import Release, kept_of, open_epoch, resume_epoch
from spinney.federation.forest_site import rounding_of
from spinney.federation.messages import INTRODUCTIONS
from spinney.federation.seam import Algorithm, Card, Message, Parcel, SiteContext, content_digest
from spinney.forest.export import export_forest
from spinney.forest.grow import grow
from spinney.plugins import ALGORITHMS
from spinney.rows.cohort import Cohort
from spinney.rows.parts import Part

if TYPE_CHECKING:
    from spinney.study.study import Study

Progress = Callable[[str, int, int], None]  # step, sites that have answered, sites that were asked


@dataclass(frozen=True)
class Simulation:
    """What came out: the common model's digest, every site's outcome, who was left out, bytes between sites."""

    model_digest: str
    outcomes: Mapping[str, Outcome]
    left_out: Mapping[str, str]
    parcel_bytes: int
    epoch: int = 1
    """The round that opened it."""
    release: Release | None = field(default=None, repr=False)
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """What every site keeps for the nights of the epoch."""
    parcels: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """What sites have sent to each other, by digest."""


@dataclass
class LocalMail:
    """Sealed mail within one process: only recipients get a parcel's content."""

    contents: dict[tuple[str, str], tuple[frozenset[str], bytes]] = field(default_factory=dict)  # by sender and digest

    def of(self, name: str) -> PostBox:
        """One site's own box."""
        return PostBox(self, name)


@dataclass(frozen=True)
class PostBox:
    """A site's view of the post."""

    box: LocalMail
    name: str

    def post(self, content: bytes, recipients: Sequence[str]) -> Parcel:
        """Put a parcel in."""
        parcel = Parcel(self.name, content_digest(content), len(content))
        self.box.contents[parcel.sender, parcel.digest] = (frozenset(recipients) | {self.name}, content)
        return parcel

    def fetch(self, parcel: Parcel) -> bytes:
        """Take a parcel out, if it is for this site."""
        recipients, content = self.box.contents.get((parcel.sender, parcel.digest), (frozenset(), b""))
        if self.name not in recipients:
            raise Refused(f"there is no parcel of {parcel.sender} for {self.name}")
        return content


class InProcess:
    """A federation of houses in this process. `lost` names the step from which on a site no longer answers."""

    def __init__(
        self,
        study: Study,
        houses: Mapping[str, SiteContext],
        *,
        algorithm: Algorithm | None = None,
        round: int = 1,
        workers: int = 1,
        progress: Progress | None = None,
        lost: Mapping[str, str] | None = None,
    ) -> None:
        self._study, self._houses = study, houses
        self.round, self._workers, self._progress = round, workers, progress
        self._lost, self._gone = dict(lost or {}), set[str]()
        self._algorithm: Algorithm = algorithm or ALGORITHMS[study.algorithm.name]
        self._parts = {name: self._algorithm.site_part(house) for name, house in houses.items()}
        self.left_out: dict[str, str] = {}
        self._cards: dict[str, Card] = {}

    @property
    def sites(self) -> Sequence[str]:
        """Who is still there."""
        return sorted({*self._parts} - {*self.left_out})

    def leave_out(self, site: str, reason: str) -> None:
        """Go on without a site."""
        self.left_out[site] = reason

    def ask(self, step: str, orders: Mapping[str, Message], attempt: int = 1) -> dict[str, Message]:  # noqa: ARG002
        """Ask all at once."""
        self._gone |= {site for site, when in self._lost.items() if when == step}
        replies: dict[str, Message] = {}
        with ThreadPoolExecutor(self._workers) as pool:
            asked = {site: pool.submit(self._answer, site, step, order) for site, order in sorted(orders.items())}
            for done, (site, future) in enumerate(asked.items(), start=1):
                reply = future.result()
                if reply is not None:
                    replies[site] = reply
                if isinstance(reply, INTRODUCTIONS):
                    card = Card(reply.key, reply.present, reply.signature)
                    self._cards = {**self._cards, site: card}  # a new one: others are reading the old one
                if self._progress is not None:
                    self._progress(step, done, len(asked))
        return replies

    def _answer(self, site: str, step: str, order: Message) -> Message | None:
        if site in self._gone:
            self.leave_out(site, f"no answer to {step}")
            return None
        try:
            self._houses[site].introduce(self._cards)
            reply = self._parts[site].answer(step, order)
            disclosure.check_message(
                reply, self._study
            )  # as it leaves the house and as it arrives: here the same moment
        except Refused as reason:
            self.leave_out(site, f"refused {step}: {reason}")
            return None
        return reply

    def verify(self, site: str, words: bytes, signature: bytes) -> bool:
        """Whether a site has signed these words."""
        return self._houses[site].verify(site, words, signature)


def simulate(
    study: Study,
    cohorts: Mapping[str, Cohort],
    *,
    algorithm: Algorithm | None = None,
    round: int = 1,
    workers: int = 1,
    budget: Callable[[float], Callable[[], bool]] | None = None,
    progress: Progress | None = None,
    lost: Mapping[str, str] | None = None,
    after: Simulation | None = None,
) -> Simulation:
    """Run the study's algorithm, or another one, over some sites' cohorts.

    `after`: an earlier night of the epoch, so that what was told then is used again, on these cohorts.
    """
    algorithm = algorithm or ALGORITHMS[study.algorithm.name]
    post = LocalMail()
    houses = houses_of(study, cohorts, post, round)
    for name, house in houses.items():
        if after is not None:
            house.epoch, house.memory = after.epoch, dict(after.kept.get(name, {}))
        house.jobs = max(1, workers // max(len(houses), 1))
        house.budget = budget or house.budget
    federation = InProcess(
        study, houses, algorithm=algorithm, round=round, workers=workers, progress=progress, lost=lost
    )
    if after is None or after.release is None:
        release = open_epoch(federation, study, algorithm)
    else:
        release = after.release
        resume_epoch(federation, algorithm, after.epoch, release)
    kept = {**after.kept} if after is not None else {}
    kept |= {name: kept_of(algorithm.site_part, house.memory) for name, house in houses.items() if house.outcome}
    outcomes = {name: house.outcome for name, house in sorted(houses.items()) if house.outcome is not None}
    size = sum(len(content) for _, content in post.contents.values())
    left_out, epoch = dict(sorted(federation.left_out.items())), after.epoch if after is not None else round
    parcels = {digest: content for (_, digest), (_, content) in post.contents.items()}
    return Simulation(release.model, outcomes, left_out, size, epoch, release, kept, parcels)


def pooled_forest(study: Study, cohorts: Mapping[str, Cohort], workers: int = 1) -> FederatedForest:
    """A forest on the training rows of all sites together: the reference that nobody may have in life."""
    training = [cohort.rows(Part.TRAINING) for cohort in cohorts.values()]
    rounding = rounding_of(study, next(iter(cohorts.values())))
    X = rounding.snapped(np.concatenate([rows.X for rows in training]))
    y = np.concatenate([rows.y for rows in training])
    offsets = np.cumsum([0, *(int(rows.patients.max(initial=-1)) + 1 for rows in training)])
    people = np.concatenate([rows.patients + offset for rows, offset in zip(training, offsets, strict=False)])
    _, patients = np.unique(people, return_inverse=True)
    floor = study.privacy.smallest_leaf
    grown = grow(X, y, patients, study.forest, study.split.seed, workers, rounding=rounding, floor=floor)
    forest = export_forest(grown.trees, grown.drawn, X, y, patients, floor=floor, rounding=rounding, jobs=workers)
    return FederatedForest.from_trees(forest, ["pooled"] * len(forest), np.ones(len(forest)), study.features)


def houses_of(study: Study, cohorts: Mapping[str, Cohort], post: LocalMail, round_: int = 1) -> dict[str, SiteContext]:
    """A house per cohort, with a signing key that the others know."""
    keys = {name: Ed25519PrivateKey.generate() for name in cohorts}
    public = {name: key.public_key() for name, key in keys.items()}

    def verify(name: str, words: bytes, signature: bytes) -> bool:
        try:
            public[name].verify(signature, words)
        except (InvalidSignature, KeyError):
            return False
        return True

    return {
        name: SiteContext(name, study, round_, cohort, post.of(name), keys[name].sign, verify)
        for name, cohort in cohorts.items()
    }
