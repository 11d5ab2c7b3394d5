"""Where a message lies on the exchange: at its address, or at a spare one where somebody else's bytes were first."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.connectors.exchange import Address

SPARES = 3


def addresses(study: str, sender: str, round: int, step: str, attempt: int = 1) -> Iterator[Address]:
    """Where a message may be, in the order in which its sender tries and its readers look."""
    yield Address(study, sender, round, step, attempt)
    for spare in range(1, SPARES + 1):
        yield Address(study, sender, round, f"{step}-spare{spare}", attempt)
