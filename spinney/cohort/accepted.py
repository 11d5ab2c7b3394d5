"""What a site says it has nothing of, and how far its nights may differ: with these it takes part all the same."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from spinney.base import Settings

NameOrBeginning = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}\*?$")]
Lacking = Literal["refused", "empty", "constant"]


class Accepted(Settings):
    """What this site has nothing of, and somebody here has looked why. Anything else keeps it out of rounds."""

    refused: tuple[NameOrBeginning, ...] = Field(
        (), description="Resource types that the source has and of which nothing can be used, such as Condition."
    )
    empty: tuple[NameOrBeginning, ...] = Field(
        (), description="Features that are 0 or missing in every row; lab_* means all that begin with lab_."
    )
    constant: tuple[NameOrBeginning, ...] = Field(
        (), description="Features that have one and the same value wherever they have one."
    )

    def words(self, lacking: Lacking) -> tuple[str, ...]:
        """What is written under a key."""
        words: tuple[str, ...] = getattr(self, lacking)
        return words

    def allows(self, lacking: Lacking, name: str) -> bool:
        """Whether a name is under a key, as a whole or by its beginning."""
        return any(fnmatchcase(name, one) for one in self.words(lacking))

    def outdated(self, lacking: Lacking, gone: Iterable[str], looked_at: Iterable[str]) -> list[str]:
        """Words under a key that are about what was looked at, and about nothing that is gone."""
        lost = {*gone}
        about = {one: {name for name in looked_at if fnmatchcase(name, one)} for one in self.words(lacking)}
        return [one for one, names in about.items() if names and not names & lost]


class VolumeRules(Settings):
    """How far a night may be from the accepted nights before."""

    warn: float = Field(1.2, gt=1, description="A factor beyond which, and beyond what is usual, the report warns.")
    refuse: float = Field(
        1.6,
        gt=1,
        description="A factor beyond which this site stays out of the round. Raise it for one night, when somebody "
        "here knows why; later nights are held against that one, too.",
    )
