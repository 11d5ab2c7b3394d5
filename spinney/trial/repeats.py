"""Many splits of the same patients: one split is a throw of dice.

Every repeat divides the patients anew and grows anew; the sites, their rows and the study stay. The first repeat is
the study as it stands, so its model is that of a single simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spinney.rows.cohort import Cohort
from spinney.trial.simulate import Simulation, simulate

if TYPE_CHECKING:
    from spinney.study.study import Study

Draw = Callable[["Study"], Mapping[str, Cohort]]
SEEDS = 2**32


def repeats(study: Study, draw: Draw, more: Callable[[int], bool], **how: Any) -> Iterator[Simulation]:
    """Simulations, one after another, while `more(how many there are)`.

    `draw` divides the sites' patients as a study with another seed says; `how` goes to `simulate`.
    """
    done = 0
    while more(done):
        again = reseeded(study, done)
        yield simulate(again, draw(again), **how)
        done += 1


def reseeded(study: Study, repeat: int) -> Study:
    """The study with another seed for each repeat; the first has its own."""
    return study.with_settings(split={"seed": (study.split.seed + repeat) % SEEDS}) if repeat else study
