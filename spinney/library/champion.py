"""The model that a house uses now, for a notebook or a script of the hospital's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest


def load_champion(site: str | Path = "site.yaml", study: str | None = None) -> FederatedForest:
    """The champion of a house, a scikit-learn classifier that takes data frames.

    Parameters
    ----------
    site : str or Path, default "site.yaml"
        The house's settings file.
    study : str, optional
        Name of the study; may be left out where the house takes part in one only.

    Returns
    -------
    FederatedForest

    Raises
    ------
    SpinneyError
        If the house has no champion in this study yet, or the study has to be named; the message says what to do.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.load_champion("ash/site.yaml", "readmission")  # doctest: +SKIP
    >>> risk = model.predict_proba(patients)[:, 1]  # doctest: +SKIP
    """
    from spinney.configuration.site import read_site
    from spinney.connectors.mlflow import Registry
    from spinney.house.approvals import the_study

    settings = read_site(site)
    registry = Registry(settings.home, settings.registry)
    return registry.model(registry.version(study or the_study(settings.home), "champion"))
