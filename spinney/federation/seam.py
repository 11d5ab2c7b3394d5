"""The seam between an algorithm and its transport.

A coordinator's program is straight-line code that asks; a site's part is a class whose methods are the steps. Both run
in one process (`spinney.trial.simulate`) or between houses, and give the same model bit for bit.
"""

from __future__ import annotations

import hashlib
from abc import ABC
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, get_type_hints

import numpy as np
from numpy.typing import NDArray

from spinney.base import Settings
from spinney.errors import Refused

if TYPE_CHECKING:
    from spinney.choice.incumbent import Incumbent
    from spinney.choice.personalise import Outcome
    from spinney.forest.grow import Spread
    from spinney.rows.cohort import Cohort
    from spinney.study.study import Study


Digest = Annotated[str, "hex"]  # travels as raw bytes


@dataclass(frozen=True)
class Message:
    """Anything that passes between houses. Every field is plain data; arrays are NumPy's."""


@dataclass(frozen=True)
class Decline(Message):
    """A site stays out of the round, and why."""

    reason: str


@dataclass(frozen=True)
class Parcel:
    """What one site sends to other sites past a coordinator who can't open it."""

    sender: str
    digest: Digest
    size: int


@dataclass(frozen=True)
class Card:
    """Who a site is in one round: its key and the features that it has, signed by itself."""

    key: bytes
    present: NDArray[np.bool_]
    signature: bytes


class Federation(Protocol):
    """What a coordinator's program sees: the sites that are still there, and a way to ask them."""

    @property
    def round(self) -> int:
        """Number of this round."""

    @property
    def sites(self) -> Sequence[str]:
        """Names of the sites that are still taking part, sorted."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Who is not taking part any more, and why."""

    def ask(self, step: str, orders: Mapping[str, Message], attempt: int = 1) -> dict[str, Message]:
        """One order per site; the replies of those that answered in time. Who didn't is out of the round."""

    def leave_out(self, site: str, reason: str) -> None:
        """Go on without a site, and say why."""

    def verify(self, site: str, words: bytes, signature: bytes) -> bool:
        """Whether a site has signed these words."""


class Mail(Protocol):
    """How a site hands parcels to its peers."""

    def post(self, content: bytes, recipients: Sequence[str]) -> Parcel:
        """Seal for the recipients, and for nobody else."""

    def fetch(self, parcel: Parcel) -> bytes:
        """What is in a parcel that is for this site."""


@dataclass
class SiteContext:
    """What a site's part may touch: its own patients, its memory, its keys, and sealed mail."""

    name: str
    study: Study
    round: int
    cohort: Cohort
    mail: Mail
    sign: Callable[[bytes], bytes]
    verify: Callable[[str, bytes, bytes], bool]
    jobs: int = 1
    spread: Spread | None = None  # where trees grow, if not here
    budget: Callable[[float], Callable[[], bool]] = lambda _seconds: lambda: True
    memory: MutableMapping[str, Any] = field(default_factory=dict)  # bytes and arrays, for this round
    history: MutableMapping[str, int] = field(default_factory=dict)  # tree digest -> round in which it was scored
    cards: dict[str, Card] = field(default_factory=dict)  # of all that have joined, each signed by its owner
    incumbent: Incumbent | None = None  # the champion, if this site has one
    outcome: Outcome | None = None
    epoch: int = 0  # the round that opened the epoch; 0: this one
    withdrawn: frozenset[str] = frozenset()  # houses that have taken back what they lent when the epoch opened
    lent_leaf: int = 0  # fewest patients in a leaf that this house lends, if it is stricter than the study

    @property
    def resumes(self) -> bool:
        """Whether this night is of an epoch that was opened before, so that nothing new may be told."""
        return self.epoch not in (0, self.round)

    def introduce(self, cards: Mapping[str, Card]) -> None:
        """Know who has joined. A coordinator that hands out keys or features of its own could read everybody."""
        for site, card in cards.items():
            if self.cards.get(site) is card:
                continue
            words = key_words(self.study, self.round, site, card.key, card.present)
            if card.present.shape != self.cohort.present.shape or not self.verify(site, words, card.signature):
                raise Refused(f"the round key and features of {site} are not signed by {site}")
            self.cards[site] = card

    def recall(self, what: str) -> Any:
        """What an earlier step of this round left in memory; a coordinator that asks out of order is refused."""
        if what not in self.memory:
            raise Refused(f"asked too early: {self.name} has no {what} in this round")
        return self.memory[what]

    def open(self, parcel: Parcel, *, keep: bool = False) -> bytes:
        """A parcel's content, if it is what its reference says; what is kept is there for as long as the epoch."""
        kept = f"parcel-{parcel.digest}"
        content: bytes = self.memory[kept] if kept in self.memory else self.mail.fetch(parcel)
        if len(content) != parcel.size or content_digest(content) != parcel.digest:
            raise Refused(f"the parcel of {parcel.sender} is not what was announced")
        if keep and kept not in self.memory:
            self.memory[kept] = content
        return content


class SitePart(ABC):
    """A site's half of an algorithm. Every public method named in `steps` answers one step of the coordinator's."""

    steps: ClassVar[frozenset[str]]
    first_steps: ClassVar[frozenset[str]] = frozenset()  # what comes before every algorithm, if the study asks for it
    last_step: ClassVar[str] = "finish"  # leaves this house's own model; safe to do again
    later_steps: ClassVar[frozenset[str]] = frozenset()  # besides the last one, on the nights after an epoch's opening

    def __init__(self, house: SiteContext) -> None:
        self.house = house

    def answer(self, step: str, order: Message) -> Message:
        """Do one step."""
        if step not in self.steps | self.first_steps | self.later_steps:
            raise Refused(f"{step} is not a step of this algorithm")
        perform = getattr(self, step)
        wanted = get_type_hints(perform).get("order", Message)
        if not isinstance(order, wanted):
            raise Refused(f"{step} is asked with {type(order).__name__}, not {wanted.__name__}")
        reply: Message = perform(order)
        return reply


@dataclass(frozen=True)
class MessageKind:
    """A kind of message that an algorithm brings along."""

    kind: type[Message]
    words: str
    """What it is, for a data-protection officer: `how often each tree is right at one house, hidden`."""
    check: Callable[[Any, Study], None] | None = None
    """Refused if a site says more with it than the study allows; None: only the coordinator sends it."""


@dataclass(frozen=True)
class Algorithm:
    """What a file in `spinney/algorithms` offers: settings, a part for the site, a program for the coordinator.

    The program runs the round and returns the digest of the common model. What passes between the two is in
    `spinney.federation.messages`, or brought along in `messages`.
    """

    settings: type[Settings]
    site_part: type[SitePart]
    coordinate: Callable[[Federation, Study], str]
    messages: tuple[MessageKind, ...] = ()


def content_digest(content: bytes) -> str:
    """What a parcel is called."""
    return hashlib.sha256(content).hexdigest()


def key_words(study: Study, round_: int, name: str, public: bytes, present: NDArray[np.bool_]) -> bytes:
    """What a site signs so that nobody else can hand out a key or features in its name, nor old ones again."""
    return f"spinney round key {study.digest} {round_} {name} ".encode() + public + present.tobytes()
