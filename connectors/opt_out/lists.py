"""What every list of objections or consents has in common, and what comes of reading one."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from spinney.base import Settings
from spinney.connectors.opt_out.identifiers import Compare, Named
from spinney.connectors.sources import Source, SourceSettings, Surroundings


@dataclass(frozen=True)
class ListContent:
    """What a list says."""

    objects: frozenset[Named] = frozenset()
    agrees: frozenset[Named] = frozenset()
    entries: int = 0
    """Everything on it, also what says neither."""
    unclear: int = 0
    """Entries that apply and say neither."""


@dataclass(frozen=True)
class Place:
    """Where a list is read."""

    staging: Path
    """An empty private folder of its own."""
    now: datetime
    around: Surroundings = field(default_factory=Surroundings)
    source: Callable[[], Source] | None = None
    """Opens the site's own source, as one that keeps nothing from night to night."""
    shifted: datetime | None = None
    """What counts as now in that source, where its dates are shifted."""


class ListSettings(Settings):
    """One list."""

    kind: str
    may_be_empty: bool = Field(
        False, description="Whether it may be empty though it was not the night before; else that stops the pull."
    )

    @abstractmethod
    def read(self, place: Place) -> ListContent:
        """What it says now. SourceFailed if it can't be read or isn't what it should be."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What people call it."""

    def beside(self, source: SourceSettings) -> ListSettings:  # noqa: ARG002
        """The same list with what it takes over from the site's own source."""
        return self

    def anchored(self, folder: Path) -> ListSettings:
        """The same list with relative paths below the folder of site.yaml."""
        paths = {name: folder / value for name, value in self if isinstance(value, Path)}
        return self.model_copy(update=paths)

    @property
    def key(self) -> str:
        """By what it is known again the next night."""
        words = self.model_dump_json(exclude={"may_be_empty"})
        return hashlib.sha256(f"{type(self).__name__} {words}".encode()).hexdigest()[:16]


class PlainList(ListSettings):
    """A list of identifiers and nothing else."""

    means: Literal["objection", "consent"] = Field(
        "objection", description="What being on it means; consent: for a study that takes only those who agree."
    )
    system: str = Field(
        "",
        description="System of Patient.identifier to which its identifiers belong, such as a national number; empty: "
        "they are the source's own ids of patients.",
    )
    compare: Compare = Field(
        "exact",
        description="exact: blanks around and `Patient/` before an identifier don't count, all else does. digits: "
        "only digits count, without leading zeros.",
    )

    def said(self, named: frozenset[Named]) -> ListContent:
        """These identifiers in the sense of the list."""
        agrees = self.means == "consent"
        return ListContent(frozenset() if agrees else named, named if agrees else frozenset(), len(named))
