"""Spinney: hospitals grow forests together, and no patient leaves the house.

The map, in the order in which data pass:

    settings, study     what all sites sign
    encode, parts       a table becomes a matrix; who is training, who is test
    grow, export        a local forest, and the trees of it that may travel
    tree, codec         what a tree is, and its bytes
    score               confusion counts of every tree, at every site
    secure_sum          the counts of all sites, and nobody's in particular
    federation          the seam: a program that asks, a site that answers
    algorithms          BOFRF and its relatives, one file each
    personalise         the model that serves this site best, and the evidence
    model               the classifier that a site keeps
    trial               a whole federation in one process, and many of them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest
    from spinney.library.champion import load_champion
    from spinney.library.simulated import FederationResult, simulate
    from spinney.study.study import Study

    __version__: str

__all__ = ["FederatedForest", "FederationResult", "Study", "__version__", "load_champion", "simulate"]

_WHERE = {
    "FederatedForest": "spinney.choice.model",
    "FederationResult": "spinney.library.simulated",
    "Study": "spinney.study.study",
    "load_champion": "spinney.library.champion",
    "simulate": "spinney.library.simulated",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for, so that `import spinney` costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("spinney")
    if name not in _WHERE:
        raise AttributeError(f"module 'spinney' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
