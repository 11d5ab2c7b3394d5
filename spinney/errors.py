"""Every error that Spinney raises on purpose.

SpinneyError
├── StudyInvalid          the study file has mistakes, all of them listed
├── CohortRejected        a table that breaks the study's contract: rule names and counts, never rows
├── Declined              a site stays out of the round and says why
├── PermitExpired         the study may not go on; its patients' data are deleted
├── RoundVoid             too few sites are left; everybody keeps what they have
├── Refused               something that arrived is not what it should be
│   ├── TreeRefused       a tree or forest that fails a check
│   └── ReleaseRefused    a private mask asked for twice or for the wrong list
└── SourceFailed          a data source did not deliver, with what to do next
"""

from __future__ import annotations

LONGEST_REASON = 1000


class SpinneyError(Exception):
    """Root of all errors that carry a message for people."""


class StudyInvalid(SpinneyError):
    """The study or settings file is wrong; every mistake is listed with its place."""

    def __init__(self, mistakes: list[str]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(mistakes))


class CohortRejected(SpinneyError):
    """A table breaks a rule. Carries the rule and how often, never a row."""

    def __init__(self, rule: str, failed: int | None = None, advice: str = "") -> None:
        self.rule, self.failed, self.advice = rule, failed, advice
        count = "" if failed is None else f" ({failed} failed)"
        super().__init__(f"{rule}{count}" + (f": {advice}" if advice else ""))


class Declined(SpinneyError):
    """This site stays out of the round."""


class PermitExpired(SpinneyError):
    """The permit of a study has ended: nothing is pulled or computed for it any more."""


class RoundVoid(SpinneyError):
    """The round ends without a result; every site keeps the model that it has."""


class Refused(SpinneyError):
    """Something from another house fails a check."""


class TreeRefused(Refused):
    """A tree or a forest from another house fails a check; `rule` says which, in a word that everybody knows."""

    def __init__(self, words: str, rule: str = "format") -> None:
        self.rule = rule
        super().__init__(words)


class ReleaseRefused(Refused):
    """A private mask is not released."""


class SourceFailed(SpinneyError):
    """A data source did not deliver; the message says what to do next."""

    transient = False
    """True where the same attempt may succeed in a while."""


def in_short(reason: object) -> str:
    """One line of bounded length that can be shown anywhere: words in it may come from a house that means harm."""
    words = str(reason)[: 2 * LONGEST_REASON]
    return " ".join("".join(one if one.isprintable() else " " for one in words).split())[:LONGEST_REASON]
