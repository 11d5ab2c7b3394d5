"""What a night's report is made of: aggregates that the house has anyway. Nothing here is about one patient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from spinney.algorithms.bofrf import Bofrf, clustered
from spinney.choice.personalise import Outcome
from spinney.cohort.attrition import Division
from spinney.cohort.drift import Drift
from spinney.cohort.pull_report import PullReport
from spinney.connectors.great_expectations.quality import QualityReport
from spinney.federation.messages import Description
from spinney.house.audit import Line
from spinney.scoring.monitor import Watch
from spinney.study.study import Study


@dataclass(frozen=True)
class Standing:
    """What the site's registry says after the night."""

    version: str = ""  # that tonight's model was registered as; empty: none
    champion: str = ""  # the version that is in use now; empty: none
    words: str = ""  # why the champion is the champion, where there is more to say than the outcome does


@dataclass(frozen=True)
class NightFacts:
    """One site's night. Whatever did not come about is None or empty, and the report says so."""

    study: Study
    site: str
    round: int  # 0: there was none
    at: datetime
    outcome: Outcome | None = None
    missed: str = ""  # why there is no outcome: the cohort was rejected, the round was void, nobody opened one
    standing: Standing = field(default_factory=Standing)
    pulled: PullReport | None = None
    division: Division | None = None  # of the rows whose outcome is known
    quality: QualityReport | None = None
    drift: Drift | None = None  # None: no earlier cohort to compare with
    lines: Sequence[Line] = ()  # of the audit log; the report takes those of this round
    vector: Mapping[str, float] = field(default_factory=dict)  # name -> number, as it was told in `join`
    peers: Sequence[str] = ()  # who learned together with this site, as the coordinator said
    watch: Watch | None = None  # how the champion does on patients whose outcome is known by now


@dataclass(frozen=True)
class Step:
    """One question of the coordinator to the sites: how long until the last answer that counted, and how many bytes."""

    name: str
    seconds: float
    bytes: int
    answers: int


@dataclass(frozen=True)
class RoundFacts:
    """One round as the coordinator saw it: what sites told it and what they agreed to share."""

    study: Study
    coordinator: str
    round: int
    at: datetime
    model: str = ""  # digest of the common model; empty: the round is void
    void: str = ""
    described: Mapping[str, Description] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)  # site -> why
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of sites that share them
    lines: Sequence[Line] = ()  # of the audit log

    @property
    def clusters(self) -> list[tuple[str, ...]]:
        """Who learned together: decided by the vectors and the study's seed, so it can be said again."""
        if not self.described:
            return []
        if isinstance(self.study.algorithm, Bofrf):
            return clustered(dict(self.described), self.study)
        return [tuple(sorted(self.described))]


def of_round(lines: Iterable[Line], study: str, number: int) -> list[Line]:
    """The lines of the audit log that belong to one round."""
    return [line for line in lines if (line.entry.study, line.entry.round) == (study, number)]


def steps_in(lines: Iterable[Line]) -> list[Step]:
    """Seconds, bytes and answers of every step, from the coordinator's audit log of one round."""
    asked: dict[str, list[Line]] = {}
    name = ""
    for line in lines:
        entry = line.entry
        if entry.direction == "sent" and entry.step.startswith("ask"):
            name = entry.step
            asked[name] = [line]
        elif name and entry.direction == "received":
            asked[name].append(line)
    return [_step(name, lines) for name, lines in asked.items()]


def _step(name: str, lines: Sequence[Line]) -> Step:
    first, last = (datetime.fromisoformat(lines[place].time) for place in (0, -1))
    letters = {line.entry.digest: line.entry for line in lines}  # an answer that was read twice came once
    senders = {entry.peer for entry in letters.values() if entry.direction == "received"}
    size = sum(entry.bytes for entry in letters.values())
    return Step(name.partition("-")[2], (last - first).total_seconds(), size, len(senders))
