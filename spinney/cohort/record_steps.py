"""Where a study cuts finer than a site records: a threshold then tells the two values that it lies between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spinney.connectors.great_expectations.quality import RuleResult
from spinney.rows.recorded import converted_steps, recorded_steps
from spinney.study.cuts import cuts_of
from spinney.study.settings import Feature
from spinney.study.study import Study

NUMBER = pa.float64()


def finer_than_recorded(table: pa.Table, study: Study) -> Iterator[RuleResult]:
    """A warning for every feature whose cuts are less than two recorded steps apart."""
    looked_at = [
        (one, values)
        for one in study.features
        if one.range is not None and (values := _numbers(table, one)) is not None
    ]
    fine = False
    for one, values in looked_at:
        recorded = recorded_steps(values) or converted_steps(values)
        closest = _closest(one)
        if recorded is not None and closest < 2 * recorded * (1 - 1e-6):
            fine = True
            rule = (
                f"{one.name}: cut in steps of {2 * recorded:g} or more, because it is recorded in steps of "
                f"{recorded:g} (`resolution` in the study)"
            )
            yield RuleResult(rule, "warning", len(values), len(values), False)
    if looked_at and not fine:
        yield RuleResult("no feature is cut finer than it is recorded", "warning", len(looked_at), 0, True)


def _closest(one: Feature) -> float:
    """The smallest distance of two cuts."""
    cuts = cuts_of(one.range or (0.0, 1.0), one.resolution, one.cuts, one.most_cuts)
    return min((after - before for before, after in pairwise(cuts)), default=float("inf"))


def _numbers(table: pa.Table, one: Feature) -> np.ndarray | None:
    known = table[one.name].drop_null() if one.name in table.column_names else None
    if known is None or not (pa.types.is_floating(known.type) or pa.types.is_integer(known.type)):
        return None
    return np.asarray(known.cast(NUMBER).to_numpy())
