"""Counts of trees as rows of two numbers, of the sick and of the well, in which nothing is told twice.

    hits      of every tree
    cases     of every group: trees of one owner that the same sites can score
    beyond    cases of an owner's other trees of a group beyond those of the group's first one

Every site but the owner counts all trees of a group on the same rows, so their cases are added up once per group. Only
the owner, who counts on the rows that a tree was not grown on, has others for each, and only it has rows of `beyond`.
What they tell is in the totals anyway: two trees of a group differ in their total cases by what their owner says.
They open with the sum or not at all (`secure_sum.guards`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spinney.errors import Refused
from spinney.federation.secure_sum import modulo
from spinney.forest.score import Counts

Groups = NDArray[np.int64]  # of every tree, in the order in which groups begin


@dataclass(frozen=True)
class Tally:
    """How the counts of some trees are told."""

    owners: NDArray[np.str_]
    groups: Groups

    @classmethod
    def of(cls, owners: Sequence[str], scorers: NDArray[np.bool_]) -> Tally:
        """By which sites (rows) can score which trees (columns)."""
        if scorers.ndim != 2 or scorers.shape[1] != len(owners):
            raise Refused("one answer per participant and tree is wanted")
        numbers: dict[tuple[str, bytes], int] = {}
        alike = [(owner, tree.tobytes()) for owner, tree in zip(owners, np.ascontiguousarray(scorers.T), strict=True)]
        groups = [numbers.setdefault(one, len(numbers)) for one in alike]
        return cls(np.asarray(owners), np.array(groups, dtype=np.int64))

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """The first tree of every group."""
        return np.unique(self.groups, return_index=True)[1]

    @property
    def together(self) -> int:
        """Rows that are added up."""
        return len(self.groups) + len(self.first)

    def alone(self, owner: str) -> NDArray[np.bool_]:
        """Trees of which the owner has a row that is not added up."""
        others = np.asarray(self.owners == owner)
        others[self.first] = False
        return others

    def told(self, counts: Counts, site: str) -> Counts:
        """A site's rows."""
        tp, tn, fp, fn = counts.T
        cases = np.stack([tp + fn, tn + fp], axis=1)
        beyond = cases - cases[self.first][self.groups]
        if beyond[self.owners != site].any():
            raise Refused("trees that are called alike are not counted on the same rows here")
        return np.concatenate([counts[:, :2], cases[self.first], beyond[self.alone(site)]])

    def heard(self, total: Counts, alone: Mapping[str, Counts], bits: int) -> Counts:
        """Counts of all sites, from the rows that were added up and those that each owner has told alone."""
        hits, cases = np.split(total, [len(self.groups)])
        cases = cases[self.groups]
        for owner, beyond in alone.items():
            cases[self.alone(owner)] += beyond
        (tp, tn), (sick, well) = hits.T, cases.T
        return modulo(np.stack([tp, tn, well - tn, sick - tp], axis=1), bits)
