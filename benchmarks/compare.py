"""What got slower, larger or less accurate between two runs of the benchmarks.

    python -m benchmarks.compare OLD.json NEW.json

Reads what `python -m benchmarks` or one part with `--json` has written. A figure has changed if its medians differ by
more than the spread (largest less smallest run) of either side, and by more than a floor: 5 %; 20 % where it was
measured only once, because then the noise is not known, unless it is counted in bytes; 0.005 of shares
such as AUROC. Exit code 1: something got worse. Exit code 2: these two can't be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, table

FLOOR = 0.05
FLOOR_OF_ONE_RUN = 0.20
FLOOR_OF_QUALITY = 0.005
QUALITIES = ("AUROC", "AUPRC", "Brier", "MCC")
EXACT = ("B", "bytes", "kB", "MB")


@dataclass(frozen=True)
class Change:
    """The same figure, measured twice."""

    old: Figure
    new: Figure

    @property
    def difference(self) -> float:
        """Of the medians."""
        return self.new.median - self.old.median

    @property
    def counts(self) -> bool:
        """Whether it is more than the noise."""
        noise = max(_spread(self.old), _spread(self.new))
        return abs(self.difference) > noise and abs(self.difference) >= self.floor

    @property
    def floor(self) -> float:
        """The smallest difference that anybody would act on."""
        if self.old.unit in QUALITIES:
            return FLOOR_OF_QUALITY
        once = min(len(self.old.runs), len(self.new.runs)) == 1 and self.old.unit not in EXACT
        return (FLOOR_OF_ONE_RUN if once else FLOOR) * abs(self.old.median)

    @property
    def worse(self) -> bool:
        """In the direction that nobody wants."""
        return self.counts and (self.difference > 0) == (self.old.better == "less")

    @property
    def told(self) -> list[str]:
        """A line of a table."""
        old = self.old.median
        change = f"{self.difference:+.3f}" if self.old.unit in QUALITIES or not old else f"{self.difference / old:+.0%}"
        return [self.old.name, self.old.told(",.3g"), self.new.told(",.3g"), self.old.unit, change]


@dataclass(frozen=True)
class Comparison:
    """Two runs, figure by figure."""

    worse: Sequence[Change]
    better: Sequence[Change]
    alike: int
    missing: Sequence[str]  # in the new run
    fresh: Sequence[str]

    @property
    def told(self) -> str:
        """For people."""
        parts = []
        for what, changes in (("worse", self.worse), ("better", self.better)):
            if changes:
                ordered = sorted(changes, key=lambda one: one.old.name)
                parts.append(table([what, "old", "new", "unit", "change"], [one.told for one in ordered]))
        parts += [f"Missing in the new run: {name}" for name in self.missing]
        parts += [f"{len(self.fresh)} figures are new."] if self.fresh else []
        parts.append(f"{len(self.worse)} worse, {len(self.better)} better, {self.alike} alike within the noise.")
        return "\n\n".join(parts)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Of two files' contents."""
    before, after = dict(_figures(old)), dict(_figures(new))
    judged = [Change(before[name], after[name]) for name in before if name in after]
    changed = [one for one in judged if one.counts and one.old.better != "neither"]
    worse = [one for one in changed if one.worse]
    return Comparison(
        worse,
        [one for one in changed if not one.worse],
        len(judged) - len(changed),
        [name for name in before if name not in after],
        [name for name in after if name not in before],
    )


def why_not(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Reasons not to compare these two."""
    reasons = []
    if old["quick"] != new["quick"]:
        reasons.append("one is a quick run, the other a whole one: their sizes differ")
    if old["hardware"] != new["hardware"]:
        reasons.append(f"they come from different machines: {old['hardware']} and {new['hardware']}")
    return reasons


def _figures(file: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    for part, found in file["parts"].items() if "parts" in file else [(file["part"], file)]:
        for words in found["figures"]:
            name = f"{part}/{words['name']}"
            yield name, Figure(**{**words, "name": name, "runs": tuple(words["runs"])})


def _spread(figure: Figure) -> float:
    return max(figure.runs) - min(figure.runs)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--anyway", action="store_true", help="also quick with whole runs, or of different machines")
    asked = parser.parse_args(arguments)
    old, new = (_read(parser, path) for path in (asked.old, asked.new))
    reasons = why_not(old, new)
    for reason in reasons:
        print(reason, file=sys.stderr)
    if reasons and not asked.anyway:
        print("Not compared; --anyway does it all the same.", file=sys.stderr)
        return 2
    if old["machine"] != new["machine"]:
        print(f"old: {old['machine']}\nnew: {new['machine']}\n")
    found = compare(old, new)
    print(found.told)
    return 1 if found.worse else 0


def _read(parser: argparse.ArgumentParser, path: Path) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        dict(_figures(content))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        parser.error(f"{path} holds no result of a benchmark ({type(error).__name__})")
    return content


if __name__ == "__main__":
    sys.exit(main())
