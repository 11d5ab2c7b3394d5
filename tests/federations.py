"""Small federations on this machine: breast cancer data dealt to a few sites as finished tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from spinney.cohort.encoded import encode_table
from spinney.configuration.site import read_site
from spinney.connectors.mlflow import Registry, lineage_of
from spinney.demo.federation import Village, found_village
from spinney.house.site_night import RoundResult, SiteNights, summary_of
from spinney.rows.cohort import Cohort
from spinney.study.study import Study
from spinney.trial.simulate import Simulation, simulate
from tests.made_up import pull_at

SITES = ("ash", "birch", "cedar", "elm")


def breast_table() -> pd.DataFrame:
    """The public data set, one row per made-up patient number, in a fixed random order."""
    data = load_breast_cancer(as_frame=True)
    table = data.data.rename(columns=lambda name: name.replace(" ", "_"))
    table["malignant"] = 1 - data.target
    table["patient"] = [f"p{number:04d}" for number in range(len(table))]
    table["index_time"] = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(range(len(table)), unit="h")
    return table.sample(frac=1, random_state=7).reset_index(drop=True)


def breast_study(trees: int = 6, **changes: Any) -> Study:
    """A study of these tables; small, so that a night takes seconds."""
    table = breast_table()
    names = [name for name in table.columns if name not in ("malignant", "patient", "index_time")]
    features = [
        {"name": name, "kind": "continuous", "range": [0.0, float(np.ceil(table[name].max() * 1.1 * 1e3) / 1e3)]}
        for name in names
    ]
    words: dict[str, Any] = {
        "name": "breast",
        "features": features,
        "label": {"name": "malignant"},
        "forest": {"trees": trees},
        "choice": {"bootstrap": 100},
        "schedule": {"answer_minutes": 1, "opening_minutes": 1},
    }
    for section, values in changes.items():
        words[section] = {**words[section], **values} if isinstance(words.get(section), dict) else values
    return Study.model_validate(words)


def deal(folder: Path, sites: Sequence[str] = SITES) -> dict[str, dict[str, Any]]:
    """A CSV file per site, and what its site.yaml says about it."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {}
    for number, name in enumerate(sites):
        path = folder / f"{name}.csv"
        breast_table().iloc[number :: len(sites)].to_csv(path, index=False)
        settings[name] = {"source": {"kind": "files", "table": str(path), "patient_column": "patient"}}
    return settings


def breast_village(folder: Path, sites: Sequence[str] = SITES, exchange: Any = None, **changes: Any) -> Village:
    """Sites that have joined and have patients."""
    return found_village(folder / "village", breast_study(**changes), deal(folder / "tables", sites), exchange)


def cohorts_of(village: Village, study: Study) -> dict[str, Cohort]:
    """What every site has in its vault after a pull of its own."""
    cohorts = {}
    for name in village.sites:
        site = read_site(village.site_file(name))
        cohorts[name] = encode_table(site.vault, pull_at(study, site).cohort, study)
    return cohorts


def simulated(village: Village, study: Study, round: int = 1, epoch: int = 1) -> Simulation:
    """The same round in one process; the epoch was opened on the same patients."""
    cohorts = cohorts_of(village, study)
    opening = simulate(study, cohorts, round=epoch)
    return opening if round == epoch else simulate(study, cohorts, round=round, after=opening)


def registered(village: Village, name: str, part: RoundResult, admission: str) -> None:
    """What a site's flow does after its round, without Prefect."""
    nights = SiteNights(read_site(village.site_file(name)))
    assert part.outcome is not None
    lineage = lineage_of(nights.study, name, part.outcome.model, part.number, part.cohort.digest)
    version = Registry(nights.home, nights.site.registry).register(nights.study, part.outcome, lineage)
    nights.keep(part.number, {**summary_of(part), "version": version.number, "admission": admission, "run": ""})
