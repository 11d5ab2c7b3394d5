"""What a gain and its interval say, in words that need no statistics.

yes             better beyond noise
no harm         not better beyond noise, and not worse by more than a hundredth either
no              worse beyond noise
can't tell yet  anything may be; how many more patients would tell, if that can be said
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from spinney.choice.metrics import Figure

HARM = 0.01  # of AUROC: a loss below this changes nothing for anybody
MOST_WORTH_NAMING = 100  # times the patients that there are: nobody waits for more

Word = Literal["yes", "no harm", "no", "can't tell yet"]
MARKS: dict[Word, str] = {"yes": "+", "no harm": "=", "no": "-", "can't tell yet": "?"}


@dataclass(frozen=True)
class GainVerdict:
    """One word, the gain that it rests on, and how many more patients would tell (0: no number can be said)."""

    word: Word
    gain: Figure
    more_patients: int = 0

    @property
    def mark(self) -> str:
        """A sign beside the word, for those who skim."""
        return MARKS[self.word]

    @property
    def sentence(self) -> str:
        """The word with its figures."""
        gain = self.gain
        if math.isnan(gain.value):
            return f"{self.word}: too few patients to measure on"
        if not gain.value and gain.low == gain.high:
            return f"{self.word}: it would keep its own model"
        if self.more_patients:
            return f"{self.word}; about {self.more_patients:,} more patients would tell"
        return f"{self.word}, {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"


def verdict_of(gain: Figure | None, patients: int) -> GainVerdict:
    """The verdict on a gain in AUROC over so many patients; no figure at all can't tell."""
    if gain is None or not gain.low <= gain.value <= gain.high:  # NaN is neither
        return GainVerdict("can't tell yet", gain or Figure(float("nan"), float("nan"), float("nan")))
    if gain.low > 0:
        return GainVerdict("yes", gain)
    if gain.high < 0:
        return GainVerdict("no", gain)
    if gain.low >= -HARM:
        return GainVerdict("no harm", gain)
    return GainVerdict("can't tell yet", gain, _more_patients(gain, patients))


def _more_patients(gain: Figure, patients: int) -> int:
    """Until the interval, which shrinks with the root of the patients, ends above no gain or above harm."""
    below = gain.value - gain.low
    needed: list[float] = [patients * (below / room) ** 2 for room in (gain.value, gain.value + HARM) if room > 0]
    if not needed or not patients or min(needed) > MOST_WORTH_NAMING * patients:
        return 0
    more = min(needed) - patients
    step = int(10 ** max(0, len(str(int(more))) - 2))  # two digits: it is no more exact than that
    return max(step, step * math.ceil(more / step))
