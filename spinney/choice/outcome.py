"""What a site's night came to, in words and numbers. Nothing here is about one patient but the model's own arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spinney.choice.curves import Curve
from spinney.choice.metrics import Calibration, Figure
from spinney.choice.split_votes import SplitVotes
from spinney.rows.plane import SiteMap

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest


@dataclass(frozen=True)
class Decision:
    """What was chosen, from what, and why, in words and numbers."""

    name: str
    reason: str
    threshold: float
    calibration: tuple[float, float] | None
    cross_validated: Mapping[str, float]
    question: str | None = None
    notes: tuple[str, ...] = ()
    judged_by: str = ""  # how candidates were compared; empty: nothing was chosen


@dataclass(frozen=True)
class Succession:
    """Whether tonight's model takes the place of the champion, and why. Both were judged on the same rows."""

    champion: str  # its version
    replaces: bool
    reason: str
    champion_quality: float | None = None  # by the study's metric; None: not comparable
    candidate_quality: float | None = None
    patients: int = 0  # on whom both could be judged


@dataclass(frozen=True)
class Subgroup:
    """Figures of some of the test patients. Without figures there are too few of them, and nothing is told."""

    name: str  # such as "sex: female" or "age: 40 to 64"
    patients: int | None = None  # rounded
    figures: Mapping[str, Figure] = field(default_factory=dict)
    observed: float | None = None
    predicted: float | None = None


@dataclass(frozen=True)
class Newest:
    """Figures on the newest index events, whose patients no tree of this site has seen."""

    share: float  # of all index events that are kept aside; 0: none are
    figures: Mapping[str, Figure]
    note: str = ""  # why there are no figures


@dataclass(frozen=True)
class OutOfBag:
    """Figures on the rows to choose on, where test patients are too few: local and chosen, and what is gained."""

    figures: Mapping[str, Mapping[str, Figure]]
    gain: Mapping[str, Figure]


@dataclass(frozen=True)
class Outcome:
    """A site's result: its model, the decision behind it, and figures on test rows."""

    site: str
    rows: int
    patients: int
    positives: int
    auroc: Mapping[str, Figure | None]
    figures: Mapping[str, Figure]
    prevalence: float
    calibration: Calibration | None
    gain: Mapping[str, Figure]
    decision: Decision
    credit: Mapping[str, Mapping[str, float]]
    model: FederatedForest = field(repr=False)
    compared: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)  # candidate -> metric, test rows
    curves: Mapping[str, Curve] = field(default_factory=dict)  # local, the default and the chosen, test rows
    succession: Succession | None = None  # None: there is no champion
    gain_over_champion: Mapping[str, Figure] = field(default_factory=dict)  # on the same test rows
    strongest_alone: str = "local"  # what this site could have alone and is best by the rows to choose on
    gain_over_alone: Mapping[str, Figure] = field(default_factory=dict)  # over that, on the same test rows
    out_of_bag: OutOfBag | None = None  # None: there are test patients enough, or even for this too few
    newest: Newest | None = None  # None: the study keeps no newest index events aside
    subgroups: tuple[Subgroup, ...] = ()
    tested: SplitVotes | None = field(
        default=None, repr=False
    )  # votes on test rows, for whoever reads many splits as one
    map: SiteMap = field(default_factory=SiteMap)  # as the coordinator told it; empty: it did not

    @property
    def takes_over(self) -> bool:
        """Whether this model may be used without asking anybody: no question is open, and no champion is better."""
        return self.decision.question is None and (self.succession is None or self.succession.replaces)
