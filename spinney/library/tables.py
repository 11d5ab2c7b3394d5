"""Data frames as people have them become cohorts and, if nobody has written one, a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.errors import CohortRejected, StudyInvalid
from spinney.rows.cohort import Cohort, cohort_from_frame

if TYPE_CHECKING:
    import pandas as pd

    from spinney.study.study import Study

Frames = Mapping[str, "pd.DataFrame"]


def cohort_of(site: str, table: Any, study: Study) -> Cohort:
    """A site's table as rows of the study; what is wrong with it is said with the site's name.

    With a column such as `patient`, all rows of a patient are in one part.
    """
    from spinney.connectors.tables import patient_column

    whose = patient_column(table.columns)
    try:
        if whose is None:
            return cohort_from_frame(table, study)
        if nobody := int(table[whose].isna().sum()):
            raise CohortRejected(f"{whose} is known", nobody, "say whose rows these are, or take the column out")
        key = b"simulation %d" % study.split.seed
        return cohort_from_frame(table, study, table[whose].astype(str).tolist(), key)
    except CohortRejected as error:
        raise CohortRejected(f"{site}: {error.rule}", error.failed, error.advice) from None


def absent_everywhere(cohorts: Mapping[str, Cohort]) -> list[str]:
    """Features of the study that no site has."""
    there = {
        column.feature.name
        for one in cohorts.values()
        for column, has in zip(one.columns, one.present, strict=True)
        if has
    }
    named = dict.fromkeys(column.feature.name for one in cohorts.values() for column in one.columns)
    return [name for name in named if name not in there]


def named_frames(tables: Frames) -> dict[str, pd.DataFrame]:
    """The frames with text for column names, in the order of the sites' names."""
    import pandas as pd

    wrong = sorted(site for site, table in tables.items() if not isinstance(table, pd.DataFrame) or table.empty)
    if wrong:
        raise StudyInvalid([f"{', '.join(wrong)}: give a pandas data frame with a row per case"])
    return {site: tables[site].rename(columns=str).reset_index(drop=True) for site in sorted(tables)}


def study_for(frames: Frames, label: str | None, study: Study | str | Path | None) -> Study:
    """The study that is given, or one that is guessed from the tables and their label."""
    if isinstance(study, (str, Path)):
        from spinney.configuration.study_file import read_study

        return read_study(Path(study))
    if study is not None:
        return study
    if label is None:
        raise StudyInvalid(["say which column is the outcome (label=...), or give a study"])
    from spinney.cohort.infer import infer_study

    return infer_study(frames, str(label), "simulation").study
