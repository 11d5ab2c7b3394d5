"""The TRIPOD+AI checklist of a version, filled as far as the evidence goes and honest where it does not.

Items are numbered as in Collins et al., BMJ 2024;385:e078378, and said in our own short words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.connectors.mlflow.lineage import Lineage
from spinney.rows.describe import rounded_rows
from spinney.study.study import Study

PEOPLE = "for people to write"
Evidence = Mapping[str, Any]


def checklist(study: Study, lineage: Lineage, evidence: Evidence) -> str:
    """Markdown: every item, what is known of it, and who has to fill in the rest."""
    rows = [*_front(study), *_methods(study, lineage, evidence), *_results(study, lineage, evidence)]
    filled = sum(PEOPLE not in words for _, _, words in rows)
    lines = [
        f"# TRIPOD+AI: {study.name}, round {lineage.round} at {lineage.site}",
        "",
        f"{filled} of {len(rows)} items are answered from the study and the evidence of this version; the others are "
        f"marked '{PEOPLE}'.",
        "",
        "| item | asks for | answer |",
        "|---|---|---|",
        *(f"| {item} | {asks} | {' '.join(words.replace('|', '/').split())} |" for item, asks, words in rows),
    ]
    return "\n".join(lines) + "\n"


def _front(study: Study) -> list[tuple[str, str, str]]:
    return [
        ("1", "title: a prediction model, population, outcome", f"{study.name}: outcome {study.label.name}; {PEOPLE}"),
        ("2", "abstract (TRIPOD+AI for abstracts)", PEOPLE),
        ("3a", "health context and rationale", study.description or PEOPLE),
        ("3b", "target population, purpose, intended users", study.purpose or PEOPLE),
        ("3c", "known inequalities between groups", PEOPLE),
        ("4", "objectives: development or evaluation", "development at several hospitals, evaluation at this one"),
    ]


def _methods(study: Study, lineage: Lineage, evidence: Evidence) -> list[tuple[str, str, str]]:
    cohort, forest, choice = study.cohort, study.forest, evidence["choice"]
    index = "finished tables" if cohort is None else f"index event {cohort.index.kind}, at its {cohort.index.at}"
    predictors = ", ".join(feature.name for feature in study.features)
    filling = {
        "none": "left to the forest, which learns a side for missing values",
        "forward-fill-then-median": "the patient's earlier row, then this site's median",
        "federated-means": "the mean or most frequent category over all sites",
    }[study.imputation]
    return [
        ("5a", "sources of data", f"routine data of {len(lineage.trees)} hospitals: {', '.join(lineage.trees)}"),
        ("5b", "dates of the data", PEOPLE),
        ("6a", "setting", PEOPLE),
        ("6b", "eligibility", f"{index}; rules in the study (digest {study.digest[:16]})"),
        ("6c", "treatments received", PEOPLE),
        ("7", "data preparation and quality", "the same rules at every site, checked before every round"),
        ("8a", "outcome and horizon", _outcome(study)),
        ("8b", "who assessed the outcome", "read from records by the study's codes; nobody assessed it for this model"),
        ("8c", "blinding of the assessment", "outcomes were recorded before the model, or without regard to it"),
        ("9a", "choice of predictors", f"{predictors}; reasons are {PEOPLE}"),
        ("9b", "definition of predictors", "in the study, with codes, windows and units"),
        ("9c", "who assessed predictors", "read from records"),
        ("10", "sample size", f"{PEOPLE}; a site with fewer than {study.privacy.smallest_cohort} patients stays out"),
        ("11", "missing data", filling),
        ("12a", "how data were used", f"{_split(study)}; all rows of a patient are in one part"),
        ("12b", "predictors: form and scaling", "scaled by the study's ranges, cut where the study says"),
        ("12c", "type of model and its building", f"{study.algorithm.name}: {forest.trees} trees per site, at most "
         f"{forest.max_depth} deep, at least {study.lent_leaf} patients in a leaf that is lent"),
        ("12d", "differences between hospitals", "every site chooses, calibrates and tests on its own patients"),
        ("12e", "measures of performance", "AUROC, AUPRC, Brier score, MCC with intervals over patients; calibration"),
        ("12f", "updating", "anew every night; a candidate replaces the champion unless it is worse beyond noise"),
        ("12g", "predictions in evaluation", "by the registered model, as it is used"),
        ("13", "class imbalance", "no resampling; probabilities are calibrated at this site"),
        ("14", "fairness", f"figures by sex and age where the study asks for them; aims are {PEOPLE}"),
        ("15", "output of the model", f"a probability; a yes from {choice['threshold']:.3f} on"),
        ("16", "training against evaluation", "the same hospital, other patients; no other hospital's test patients"),
        ("17", "ethical approval", f"permit {study.permit}" if study.permit else PEOPLE),
        ("18a", "funding", PEOPLE),
        ("18b", "conflicts of interest", PEOPLE),
        ("18c", "protocol", f"the study, digest {study.digest}"),
        ("18d", "registration", PEOPLE),
        ("18e", "data sharing", "none: no row leaves a hospital"),
        ("18f", "code sharing", "Spinney, Apache-2.0"),
        ("19", "involvement of patients and public", PEOPLE),
    ]  # fmt: skip


def _results(study: Study, lineage: Lineage, evidence: Evidence) -> list[tuple[str, str, str]]:
    return [
        ("20a", "flow of participants", "drawn on the night's page of this site"),
        ("20b", "characteristics of participants", f"in reports at the sites; a table is {PEOPLE}"),
        ("20c", "development against evaluation data", f"by part of this site's cohort; a table is {PEOPLE}"),
        ("21", "numbers in each analysis", f"about {rounded_rows(evidence['rows'], study.privacy)} rows at this site"),
        ("22", "the full model", f"model digest {lineage.model_digest}; trees are in the export"),
        ("23a", "performance with intervals", _performance(evidence)),
        ("23b", "heterogeneity", f"by group: {len(evidence.get('subgroups') or [])} groups; by hospital: {PEOPLE}"),
        ("24", "results of updating", _succession(evidence)),
        ("25", "interpretation, fairness", PEOPLE),
        ("26", "limitations", f"on the card; {PEOPLE}"),
        ("27a", "poor or missing input data", "out of range counts as the range's end, unknown categories as missing"),
        ("27b", "interaction with users and skills", PEOPLE),
        ("27c", "next steps", PEOPLE),
    ]


def _outcome(study: Study) -> str:
    source = study.label.source
    return study.label.name if source is None else f"{study.label.name}: {source.outcome} within {source.horizon}"


def _split(study: Study) -> str:
    chosen = "by size" if study.split.validation is None else f"{study.split.validation:g}"
    return f"validation {chosen}, test {study.split.test:g}, the rest for training, by a keyed hash of the patient"


def _performance(evidence: Evidence) -> str:
    shown = [
        f"{name} {one['value']:.3f}" + (f" ({one['low']:.3f} to {one['high']:.3f})" if one["low"] is not None else "")
        for name, one in evidence["test"].items()
        if one and one["value"] is not None
    ]
    return ", ".join(shown) or "too few test patients for figures"


def _succession(evidence: Evidence) -> str:
    succession = evidence.get("succession")
    return f"against version {succession['champion']}: {succession['reason']}" if succession else "the first version"
