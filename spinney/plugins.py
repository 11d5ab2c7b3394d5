"""What is found by itself: one file in a folder of ours, or an entry point of somebody else's package.

A file is called as what it offers, with _ for -: `fhir_rest.py` offers the source fhir-rest. In another package's
pyproject.toml the same is said by an entry point of that name:

    [project.entry-points."spinney.sources"]
    lab = "our_lab.source:SOURCE"

Nothing is imported before somebody asks for it. What another package offers and can't be loaded is left out and named
by `Offers.broken`: it costs nobody a night who doesn't use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from spinney.errors import SpinneyError


class OfferBroken(SpinneyError):
    """Something that was found can't be used; the message says what and where."""


class Offers(Mapping[str, Any]):
    """Everything of one kind, by name; loaded when it is asked for."""

    def __init__(self, what: str, group: str, package: str, attribute: str, called: Callable[[Any], str]) -> None:
        self.what, self.group = what, group
        self._package, self._attribute, self._called = package, attribute, called
        self._loaded: dict[str, Any] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What there is, by the names of files and entry points; some of it may be broken."""
        return (*self._ours, *(name for name in sorted(self._theirs) if name not in self._ours))

    @property
    def foreign(self) -> tuple[str, ...]:
        """What other packages offer, and can be used."""
        return tuple(name for name in self if name not in self._ours)

    @cached_property
    def broken(self) -> dict[str, str]:
        """What other packages offer and nobody can use, and why."""
        wrong = {name: f"{self._ours_already(name)}, so it is not used" for name in self._theirs if name in self._ours}
        for name in set(self._theirs) - set(self._ours):
            try:
                self._load(name)
            except OfferBroken as reason:
                wrong[name] = str(reason)
        return wrong

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names if name in self._ours or name not in self.broken)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._checked(name, self._import(name))
        return self._loaded[name]

    def _import(self, name: str) -> Any:
        if name in self._ours:
            return getattr(import_module(f"{self._package}.{self._ours[name]}"), self._attribute)
        try:
            return self._theirs[name].load()
        except Exception as error:  # somebody else's code, of which we know nothing
            reason = f"{type(error).__name__}: {error}"
            raise OfferBroken(f"{self._origin(name)} can't be loaded ({reason}); mend or remove it") from None

    def _checked(self, name: str, found: Any) -> Any:
        try:
            called = self._called(found)
        except (AttributeError, KeyError, TypeError):
            raise OfferBroken(f"{self._origin(name)} is nothing of the kind; see `spinney new --help`") from None
        if called != name:
            raise OfferBroken(f"{self._origin(name)} calls itself {called}; call both the same")
        return found

    def _origin(self, name: str) -> str:
        if name in self._ours:
            return f"the {self.what} {name} ({self._package}.{self._ours[name]})"
        distribution = self._theirs[name].dist
        return f"the {self.what} {name} of {distribution.name if distribution else self._theirs[name].value}"

    def _ours_already(self, name: str) -> str:
        distribution = self._theirs[name].dist
        return f"{distribution.name if distribution else 'a package'} offers the {self.what} {name}, which is there"

    @cached_property
    def _ours(self) -> dict[str, str]:
        folder = Path(__file__).parent.joinpath(*self._package.split(".")[1:])  # without importing the package
        found = iter_modules([str(folder)])
        return {one.name.replace("_", "-"): one.name for one in found if not one.name.startswith("_")}

    @cached_property
    def _theirs(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in _entry_points() if point.group == self.group}


@cache
def _entry_points() -> list[EntryPoint]:
    """All of all packages, read once: that takes as long for one group as for all."""
    return [point for distribution in distributions() for point in distribution.entry_points]


ALGORITHMS = Offers(
    "algorithm",
    "spinney.algorithms",
    "spinney.algorithms",
    "ALGORITHM",
    lambda algorithm: str(algorithm.settings.model_fields["name"].default),
)
SOURCES = Offers(
    "source",
    "spinney.sources",
    "spinney.connectors.sources",
    "SOURCE",
    lambda settings: str(settings.model_fields["kind"].default),
)
EXCHANGES = Offers(
    "exchange",
    "spinney.exchanges",
    "spinney.connectors.exchange.places",
    "PLACE",
    lambda place: str(place.scheme),
)
