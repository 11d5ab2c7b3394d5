"""Would it help? A federation of data frames in this process, run over many splits, and what came out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.library.tables import Frames, cohort_of, named_frames, study_for
from spinney.reports.simulation import gains_drawing, simulation_page
from spinney.trial.repeats import repeats as splits_of
from spinney.trial.simulate import Simulation
from spinney.trial.summary import report_of, verdicts_of

if TYPE_CHECKING:
    import pandas as pd

    from spinney.choice.model import FederatedForest
    from spinney.choice.verdict import GainVerdict
    from spinney.study.study import Study


@dataclass(frozen=True)
class Picture:
    """A drawing that a notebook shows and a file can hold."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: str | Path) -> None:
        """Write it as an SVG file."""
        Path(file).write_text(self.svg, encoding="utf-8")


@dataclass(frozen=True)
class FederationResult:
    """What federating would be worth to every site.

    Attributes
    ----------
    study : Study
        What all sites would sign; with `FederationResult.study` in hand the next run can change it.
    simulations : list of Simulation
        One per split, in full.
    """

    study: Study
    simulations: list[Simulation] = field(repr=False)

    @cached_property
    def verdicts(self) -> Mapping[str, GainVerdict]:
        """By site: the word, the gain in AUROC with its interval, and how many more patients would tell."""
        return verdicts_of(self.simulations)

    @property
    def verdict(self) -> str:
        """A sentence per site."""
        return "\n".join(f"{one.mark} {site}: {one.sentence}." for site, one in self.verdicts.items())

    @cached_property
    def data(self) -> dict[str, Any]:
        """Everything as plain data, as `spinney simulate --json` writes it."""
        return report_of(self.study, self.simulations)

    @property
    def frame(self) -> pd.DataFrame:
        """A row per site: rows, positives, mean AUROC of every candidate, the gain and its interval, the verdict."""
        import pandas as pd

        rows = {}
        for site, told in self.data["sites"].items():
            gain = self.verdicts[site].gain
            figures = {"gain": gain.value, "low": gain.low, "high": gain.high, "verdict": self.verdicts[site].word}
            rows[site] = {"rows": told["rows"], "positives": told["positives"], **told["auroc"], **figures}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("site")

    @property
    def models(self) -> dict[str, FederatedForest]:
        """By site the model that it would use, of the first split: scikit-learn classifiers that take data frames."""
        return {site: outcome.model for site, outcome in self.simulations[0].outcomes.items()}

    def plot(self) -> Picture:
        """Every site's gain with its interval."""
        return Picture(gains_drawing(self.data["sites"]))

    def report(self, file: str | Path) -> None:
        """Write the answer as one page with pictures."""
        Path(file).write_text(simulation_page(self.data), encoding="utf-8")

    def __str__(self) -> str:
        return self.verdict


def simulate(
    tables: Frames,
    label: str | None = None,
    *,
    study: Study | str | Path | None = None,
    repeats: int = 10,
    workers: int | None = None,
) -> FederationResult:
    """Would federating help these hospitals? Run a federation in this process and say what each would gain.

    Nothing is sent anywhere. The patients of every site are split and its trees grown `repeats` times; choices are made
    on training rows and figures measured on test rows. With a column such as `patient`, a patient's rows stay together.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        A table per site, a row per case; text, boolean and missing values as they are, any column names.
    label : str, optional
        The column with the outcome, yes or no. May be left out where a study is given.
    study : Study or path of a study.yaml, optional
        What the sites would sign. Guessed from the tables if left out.
    repeats : int, default 10
        How many splits; an interval is over patients and splits.
    workers : int, optional
        Sites that answer at once; all cores if left out.

    Returns
    -------
    FederationResult
        With `.verdict`, `.frame`, `.plot()`, `.report("answer.html")` and `.models`.

    Raises
    ------
    StudyInvalid
        If no study can be made of the tables.
    CohortRejected
        If a table does not fit the study; the message names the site and the rule.
    RoundVoid
        If too few sites are left to sum anything.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_breast_cancer
    >>> frame = load_breast_cancer(as_frame=True).frame
    >>> result = spinney.simulate({f"site{i}": frame[i::3] for i in range(3)}, label="target", repeats=1)
    >>> sorted(result.models)
    ['site0', 'site1', 'site2']
    >>> bool((result.frame["chosen"] > 0.9).all())
    True
    """
    if repeats < 1:
        raise ValueError("repeats must be at least 1")
    frames = named_frames(tables)
    agreed = study_for(frames, label, study)

    def draw(again: Study) -> dict[str, Any]:
        return {site: cohort_of(site, table, again) for site, table in frames.items()}

    found = splits_of(agreed, draw, lambda done: done < repeats, workers=workers or os.cpu_count() or 1)
    return FederationResult(agreed, list(found))
