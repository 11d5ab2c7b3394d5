"""Why a forest is refused, in words that every site can check; and who refuses without such a reason.

All sites read the same bytes under the same study, so they find the same rule broken or none, and what one of them says
the others have checked. `unreadable` is the exception: somebody may seal a parcel for some and not for others. It costs
nobody anything; who can't read trees doesn't score them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.federation.messages import Verdict

RULES = {
    "unreadable": "the parcel did not come, or is not what was announced",
    "announced": "these are other trees than announced",
    "size": "more bytes than the study's trees can have",
    "format": "damaged, or no forest",
    "version": "another version of the format",
    "study": "made for another study: columns or rounding differ",
    "trees": "another number of trees than the study allows, or than announced",
    "nodes": "more nodes than the study allows, or a number that trees can't have",
    "leaves": "a tree has more leaves than the study allows",
    "depth": "a tree is deeper than the study allows, or its shape is broken",
    "feature": "a feature that the study doesn't name",
    "threshold": "a threshold outside the study's grid",
    "probability": "a probability outside 0..1",
}
UNREADABLE = "unreadable"


def broken(verdicts: Mapping[str, Verdict], owner: str) -> bool:
    """Whether most of those who could read an owner's trees find that they break a rule."""
    said = [verdict.refused.get(owner, "") for verdict in verdicts.values()]
    judges = [rule for rule in said if rule != UNREADABLE]
    return 2 * sum(bool(rule) for rule in judges) > len(judges)


def false_refusals(verdicts: Mapping[str, Verdict]) -> dict[str, str]:
    """Who refuses trees in which most of the others find nothing wrong, its owner aside; and the words for it."""
    found = {}
    for site, verdict in sorted(verdicts.items()):
        for owner, rule in sorted(verdict.refused.items()):
            if rule == UNREADABLE or owner not in verdicts or broken(verdicts, owner):
                continue
            others = [one.refused.get(owner, "") for name, one in verdicts.items() if name not in (site, owner)]
            judges = [said for said in others if said != UNREADABLE]
            contrary = sum(not said for said in judges)
            if 2 * contrary > len(judges):
                found[site] = f"refuses the trees of {owner} ({RULES[rule]}), and {contrary} others find nothing wrong"
    return found


def held(forests: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.bool_]]:
    """Of each owner's trees, by digest, which ones count as its own: one that several have sent counts once.

    Nobody can tell who has copied whom, and who copies can't choose whose name a tree will have.
    """
    holder: dict[str, str] = {}
    for owner, digests in sorted(forests.items()):
        for digest in {*digests}:
            best = min(filter(None, (holder.get(digest), owner)), key=lambda one: _lot(digest, one))
            holder[digest] = best
    found = {}
    for owner, digests in forests.items():
        first = {digest: place for place, digest in reversed(list(enumerate(digests)))}
        mine = [holder[digest] == owner and first[digest] == place for place, digest in enumerate(digests)]
        found[owner] = np.array(mine, dtype=bool)
    return found


def _lot(digest: str, owner: str) -> bytes:
    return hashlib.sha256(f"{digest} {owner}".encode()).digest()
