"""Units of measure: pint converts, ucumvert teaches it UCUM. A conversion is computed once per pair of units.

A conversion is a factor and an offset, so that a whole column is converted by DuckDB and not value by value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

UNKNOWN = "unknown unit"
INCONVERTIBLE = "unit can't be converted"
NO_UNIT = "no unit"

_ANNOTATION = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class Conversion:
    """value * factor + offset."""

    factor: float = 1.0
    offset: float = 0.0


def conversion(unit: str | None, target: str, molar_mass: float | None = None) -> Conversion | str:
    """How values in `unit` become values in `target`, or the reason why they can't."""
    if unit is None or not unit.strip():
        return NO_UNIT
    return Conversion() if unit == target else _computed(unit, target, molar_mass)


def is_unit(unit: str) -> bool:
    """True for a UCUM unit that can be converted."""
    return _parsed(unit) is not None


@cache
def _computed(unit: str, target: str, molar_mass: float | None) -> Conversion | str:
    from pint import PintError

    there, here = _parsed(unit), _parsed(target)
    if there is None or here is None:
        return UNKNOWN
    registry = _registry()
    chemistry = ("chemistry",) if molar_mass else ()
    mass = {"mw": registry.Quantity(molar_mass, "gram / mole")} if molar_mass else {}
    try:
        with registry.context(*chemistry, **mass):
            at = [
                float(registry.Quantity(x * there.magnitude, there.units).to(here.units).magnitude) for x in (0, 1, 2)
            ]
    except PintError:
        return INCONVERTIBLE
    zero, one, two = (x / here.magnitude for x in at)
    if abs((two - one) - (one - zero)) > 1e-9 * max(abs(zero), abs(one), abs(two)):
        return INCONVERTIBLE  # a logarithmic scale is no factor and offset
    return Conversion(float(f"{one - zero:.14g}"), float(f"{zero:.14g}") + 0.0)


@cache
def _parsed(unit: str) -> Any:
    """A pint quantity; annotations such as {score} count as nothing, as UCUM says."""
    from lark.exceptions import LarkError  # both are slow to load, and whoever reads site.yaml comes by here
    from pint import PintError

    plain = _ANNOTATION.sub("", unit.strip()).rstrip("/.") or "1"
    try:
        quantity = _read_ucum()(plain)
    except (LarkError, PintError, ValueError):
        return None
    return quantity if hasattr(quantity, "magnitude") else _registry().Quantity(1, quantity)


def _registry() -> Any:
    from pint import application_registry

    return application_registry


@cache
def _read_ucum() -> Callable[[str], Any]:
    """Teaches pint's own registry UCUM; ucumvert's has all units a second time, and takes twice as long to make."""
    from ucumvert import UcumToPintTransformer, get_ucum_parser, parse_ucum  # half a second to load

    transformer, parser = UcumToPintTransformer(), get_ucum_parser()
    return lambda unit: transformer.transform(parse_ucum(unit, parser))
