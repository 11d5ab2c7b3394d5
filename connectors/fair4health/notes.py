"""What was assumed on the way to a study, and what is not in it: each with the line in which it stands."""

from __future__ import annotations

from dataclasses import dataclass, field


class Untranslated(Exception):
    """This has no counterpart in a study, and why."""


@dataclass
class Notes:
    """Two lists that grow while a document is read."""

    _assumed: dict[tuple[int, str], None] = field(default_factory=dict)
    _left_out: dict[tuple[int, str], None] = field(default_factory=dict)

    def assume(self, words: str, line: int = 0) -> None:
        """Line 0: it holds for the whole document, and is said once."""
        self._assumed[line, words] = None

    def leave_out(self, words: str, line: int) -> None:
        self._left_out[line, words] = None

    @property
    def assumed(self) -> tuple[str, ...]:
        return _lines(self._assumed)

    @property
    def left_out(self) -> tuple[str, ...]:
        return _lines(self._left_out)


def _lines(notes: dict[tuple[int, str], None]) -> tuple[str, ...]:
    """In the order of the document; first what holds for all of it."""
    ordered = sorted(notes, key=lambda note: note[0])
    return tuple(f"line {line}: {words}" if line else words for line, words in ordered)
