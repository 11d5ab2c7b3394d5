"""What a site has nothing of: types of which nothing can be used, features without values, columns of one value.

A code that nobody has mapped looks like a hospital without heart failure. So each of these keeps a site out of rounds
until somebody has looked, and has said in site.yaml, under `accepted`, that it is right here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spinney.cohort.accepted import Accepted, Lacking
from spinney.connectors.great_expectations.quality import Counts, RuleResult
from spinney.study.study import Study

FEWEST_VALUES = 10  # fewer say nothing about a column
ONE: Mapping[Lacking, str] = {
    "refused": "{}: something can be used",
    "empty": "{} has values",
    "constant": "{} differs between rows",
}
ALL: Mapping[Lacking, str] = {
    "refused": "of every resource type something can be used",
    "empty": "every feature has values",
    "constant": "no feature has one and the same value in all rows",
}


def gaps(
    table: pa.Table, before: pa.Table | None, study: Study, counts: Counts, accepted: Accepted
) -> Iterator[RuleResult]:
    """A failed rule for everything of which there is nothing; one that is accepted counts as kept.

    `before`: the last cohort that has passed its checks.
    """
    features = [one.name for one in study.features]
    shapes = {name: shape_of(table, name) for name in features}
    unusable = {kind: read for kind, read in counts.read.items() if read and counts.usable.get(kind) == 0}
    yield from _told("refused", unusable, list(counts.read), accepted)
    empty, constant = ({name: len(table) for name in features if shapes[name] == one} for one in ("empty", "constant"))
    fell = {name for name in empty if before is not None and shape_of(before, name) != "empty"}
    yield from _told("empty", empty, features, accepted, fell)
    yield from _told("constant", constant, features, accepted)


def shape_of(table: pa.Table, name: str) -> str:
    """`empty`, `constant`, or nothing where values differ or are too few to say."""
    known = table[name].drop_null() if name in table.column_names else pa.chunked_array([], pa.string())
    if pa.types.is_floating(known.type) or pa.types.is_integer(known.type) or pa.types.is_boolean(known.type):
        known = known.cast(pa.float64())
        known = known.filter(pc.is_finite(known))
        if pc.all(pc.equal(known, 0.0), min_count=0).as_py():
            return "empty"
    if not len(known):
        return "empty"
    return "constant" if len(known) >= FEWEST_VALUES and pc.count_distinct(known).as_py() == 1 else ""


def _told(
    lacking: Lacking,
    gone: Mapping[str, int],
    looked_at: Sequence[str],
    accepted: Accepted,
    fell: Collection[str] = (),
) -> Iterator[RuleResult]:
    for name, count in gone.items():
        rule = ONE[lacking].format(name) + (", as in the last cohort" if name in fell else "")
        if accepted.allows(lacking, name):
            yield RuleResult(f"{rule} (site.yaml accepts that it is not so)", "warning", count, count, True)
        else:
            yield RuleResult(rule, "critical", count, count, False, (lacking, name))
    if looked_at and not gone:
        yield RuleResult(ALL[lacking], "critical", len(looked_at), 0, True)
    for one in accepted.outdated(lacking, gone, looked_at):  # it would hide the next loss
        yield RuleResult(f"{one} is {lacking}, as site.yaml accepts; take it out there", "warning", 1, 1, False)
