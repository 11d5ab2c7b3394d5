"""Growing trees: our own grower and scikit-learn, in one thread, two and a Dask cluster, and scikit-learn-intelex.

    python -m benchmarks.engines --write

Every run is a process of its own, and the engines take turns. One row per patient, so that all can be compared; the
AUROC is of rows that no tree has seen, by the trees as they leave the house where we know what each was grown on.
scikit-learn-intelex comes from an environment in build/peers/, made at the first run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from distributed import LocalCluster
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from benchmarks.federations import unit_grid
from benchmarks.harness import Figure, Measured, command, table
from benchmarks.speed_peers import INTELEX as INTELEX_PEER
from benchmarks.speed_peers import NotInstalled, versions
from spinney.connectors.dask_cluster import DaskSettings, cluster_of
from spinney.federation.forest_site import forest_digest
from spinney.forest.export import export_forest
from spinney.forest.grow import MAX_SEED, grow, tree_parameters
from spinney.forest.traverse import Walker
from spinney.forest.tree import LEAF, CountedTree
from spinney.study.settings import ForestSettings

COLUMNS, HELD_OUT, FLOOR = 30, 10_000, 5
GRID = unit_grid(COLUMNS)
INTELEX = "scikit-learn-intelex, its own bootstrap"
INTELEX_OURS = "scikit-learn-intelex, our bootstrap"
HEAD = (
    "engine",
    "seconds",
    "processor s",
    "peak MiB",
    "AUROC",
    "same trees as ours, one thread",
    "the same every time",
    "fewest patients in a leaf before the recount",
)
Trees = tuple[Sequence[Any], Any]
Told = dict[str, float | str]


def rows(count: int) -> tuple[Any, Any]:
    """Made-up rows, scaled to 0..1, the last of them to measure on."""
    X, y = make_classification(count + HELD_OUT, COLUMNS, n_informative=10, flip_y=0.1, random_state=0)
    return ((X - X.min(axis=0)) / np.ptp(X, axis=0)).astype(np.float32), y.astype(np.int8)


def ours(X: Any, y: Any, settings: ForestSettings, jobs: int, address: str = "") -> Trees:
    """As a site grows."""
    spread = cluster_of(DaskSettings(address=address)) if address else None
    grown = grow(X, y, np.arange(len(y)), settings, 0, jobs, spread, rounding=GRID, floor=FLOOR)
    return grown.trees, grown.drawn


def by_scikit(X: Any, y: Any, settings: ForestSettings, jobs: int, address: str = "") -> Trees:
    """As a site grows whose study asks for scikit-learn's trees: on snapped rows."""
    chosen = settings.model_copy(update={"engine": "scikit-learn"})
    return ours(GRID.snapped(X), y, chosen, jobs, address)


def plain(X: Any, y: Any, settings: ForestSettings, jobs: int, forest: Any = RandomForestClassifier) -> Trees:
    """As the library grows; who was drawn it does not always tell."""
    model = forest(settings.trees, random_state=0, n_jobs=jobs, **tree_parameters(settings)).fit(X, y)
    if forest is not RandomForestClassifier:
        return model.estimators_, None
    return model.estimators_, np.stack([np.bincount(drawn, minlength=len(y)) for drawn in model.estimators_samples_])


def intelex(X: Any, y: Any, settings: ForestSettings, jobs: int) -> Trees:
    """Its fast path."""
    from sklearnex.ensemble import RandomForestClassifier as Accelerated

    return plain(X, y, settings, jobs, Accelerated)


def intelex_ours(X: Any, y: Any, settings: ForestSettings, jobs: int) -> Trees:
    """One tree at a time on the patients that we drew, because it does not tell which rows it drew."""
    from sklearnex.ensemble import RandomForestClassifier as Accelerated

    states, trees, drawn = np.random.RandomState(0), [], []
    for seed in [states.randint(MAX_SEED) for _ in range(settings.trees)]:
        draws = np.bincount(np.random.RandomState(seed).randint(0, len(y), len(y)), minlength=len(y))
        used = np.flatnonzero(draws)
        one = Accelerated(1, bootstrap=False, random_state=seed, n_jobs=jobs, **tree_parameters(settings))
        trees += one.fit(X[used], y[used], sample_weight=draws[used].astype(float)).estimators_
        drawn.append(draws)
    return trees, np.stack(drawn)


ENGINES: dict[str, tuple[Callable[..., Trees], int]] = {
    "ours, one thread": (ours, 1),
    "ours, two threads": (ours, 2),
    "ours, Dask with two workers": (ours, 2),
    "ours by scikit-learn, one thread": (by_scikit, 1),
    "ours by scikit-learn, Dask with two workers": (by_scikit, 2),
    "RandomForestClassifier, one thread": (plain, 1),
    "RandomForestClassifier, two threads": (plain, 2),
    INTELEX: (intelex, 2),
    INTELEX_OURS: (intelex_ours, 2),
}


def run(name: str, count: int, trees: int, address: str) -> Told:
    """One engine in this process: seconds, memory, and what came out."""
    X, y = rows(count)
    X, y, new, truth = X[:count], y[:count], X[count:], y[count:]
    settings = ForestSettings(trees=trees)
    engine, jobs = ENGINES[name]
    more = {"address": address} if "Dask" in name else {}
    engine(X[:500], y[:500], settings.model_copy(update={"trees": 1}), jobs, **more)  # what is loaded at first use
    before, processor = time.perf_counter(), time.process_time()
    fitted, drawn = engine(X, y, settings, jobs, **more)
    told: Told = {
        "seconds": time.perf_counter() - before,
        "processor": time.process_time() - processor,
        "memory": _peak(),
    }
    if drawn is None:
        votes, told["digest"], told["fewest"] = (
            np.mean([tree.predict_proba(new)[:, 1] for tree in fitted], axis=0),
            "",
            "",
        )
    else:
        forest = export_forest(fitted, drawn, X, y, np.arange(count), floor=FLOOR, rounding=GRID, jobs=2)
        told["export"] = time.perf_counter() - before - float(told["seconds"])
        votes, told["digest"] = Walker(forest, COLUMNS).votes(new).mean(axis=1), forest_digest(forest)
        told["fewest"] = min(_fewest(tree, X[draws > 0]) for tree, draws in zip(fitted, drawn, strict=True))
    return told | {"auroc": float(roc_auc_score(truth, votes))}


def _fewest(tree: Any, X: Any) -> int:
    """Fewest rows that end in a leaf as it has grown, before we recount."""
    if isinstance(tree, CountedTree):
        return int(tree.patients[tree.tree.feature == LEAF].min())
    leaf = tree.tree_.children_left < 0
    return int(np.bincount(tree.tree_.apply(X), minlength=len(leaf))[leaf].min())


def _peak() -> float:
    """Of this process, in MiB."""
    words = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(words["VmHWM"].split()[0]) / 1024


def measure(asked: argparse.Namespace) -> Measured:
    """All engines in turns."""
    count, trees, turns = (4_000, 10, 1) if asked.quick else (40_000, 100, 3)
    missing = _missing(asked.quick)
    names = [name for name in ENGINES if not (missing and "intelex" in name)]
    found = _in_turns(names, count, trees, turns)
    lines = [_line(name, found[name], found[names[0]][0]["digest"]) for name in names]
    export = Figure("engines/export", "s", tuple(float(one["export"]) for one in found[names[0]]))
    told = (
        f"{trees} trees of depth {ForestSettings().max_depth} on {count:,} x {COLUMNS} rows; median of {turns}, "
        f"smallest and largest. Export of ours in two threads: {export.told()} s. {versions(INTELEX_PEER)}\n\n"
        f"{table(HEAD, lines)}"
    )
    if not missing:
        told += f"\n\n{_gaps(count // 10)}"
    figures = [
        Figure(f"engines/{name}/{what}", unit, tuple(float(one[what]) for one in found[name]), better)
        for name in names
        for what, unit, better in (
            ("seconds", "s", "less"),
            ("processor", "s", "less"),
            ("memory", "MiB", "less"),
            ("auroc", "AUROC", "more"),
        )
    ]
    return Measured([*figures, export], told, missing)


def _missing(quick: bool) -> list[str]:
    """Why there is no scikit-learn-intelex; where there is, this process and those that it starts can import it."""
    try:
        INTELEX_PEER.importable(make=not quick)
    except NotInstalled as reason:
        return [str(reason)]
    return []


def _in_turns(names: Sequence[str], count: int, trees: int, turns: int) -> dict[str, list[Told]]:
    """Who goes first changes from turn to turn."""
    found: dict[str, list[Told]] = {name: [] for name in names}
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        for turn in range(turns):
            for name in names if turn % 2 == 0 else reversed(names):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found[name].append(pool.apply(run, (name, count, trees, cluster.scheduler_address)))
    return found


def _line(name: str, told: list[Told], reference: Any) -> list[str]:
    def figure(what: str, form: str) -> str:
        return Figure(what, "", tuple(float(one[what]) for one in told)).told(form)

    digests = {str(one["digest"]) for one in told}
    same = "unknown" if digests == {""} else "yes" if digests == {reference} else "no"
    always = "unknown" if digests == {""} else "yes" if len(digests) == 1 else "no"
    auroc = f"{told[0]['auroc']:.3f}"
    return [
        name,
        figure("seconds", ".2f"),
        figure("processor", ".2f"),
        figure("memory", ".0f"),
        auroc,
        same,
        always,
        str(told[0]["fewest"]) or "unknown",
    ]


def _gaps(count: int) -> str:
    """Does scikit-learn-intelex grow with what studies ask for, or does it hand over to scikit-learn?"""
    from sklearnex.ensemble import RandomForestClassifier as Accelerated

    X, y = rows(count)
    gappy = X.copy()
    gappy[::7, 3] = np.nan
    cases = {"missing values": (gappy, {}), "`criterion: entropy`": (X, {"criterion": "entropy"})}
    handed = []
    for name, (table_, more) in cases.items():
        model = Accelerated(2, random_state=0, **more).fit(table_, y)
        if not hasattr(model, "_onedal_estimator"):
            handed.append(name)
    return (
        f"scikit-learn-intelex hands over to scikit-learn, with a bootstrap of rows, for: {', '.join(handed) or '-'}."
    )


if __name__ == "__main__":
    command("engines", __doc__, measure)
