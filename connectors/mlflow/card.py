"""What people should know about a version: a model card in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from spinney.connectors.mlflow.lineage import Lineage
from spinney.connectors.mlflow.store import Version
from spinney.study.settings import Feature

Evidence = Mapping[str, Any]
LIMITS = (
    "Made for the population of its study and chosen on the patients of one site; elsewhere its figures don't hold. "
    "A feature that is not there counts as missing, or trees that ask it abstain, as the study says. It supports a "
    "decision and takes none."
)
FIGURES = ("auroc", "auprc", "brier", "mcc", "sensitivity", "specificity", "ppv", "npv", "accuracy", "f1")


def card(version: Version, lineage: Lineage, evidence: Evidence, features: Sequence[Feature]) -> str:
    """The model card."""
    parts = [
        f"# {version.name}, version {version.number}",
        evidence.get("description") or f"A model of the study {lineage.study}.",
        _facts(version, lineage, evidence),
        *([f"## Withdrawn\n\n{evidence['withdrawn']}"] if evidence.get("withdrawn") else []),
        f"## Why this model\n\n{_why(evidence)}",
        f"## On test rows\n\n{_tests(evidence)}",
        f"## Groups of patients\n\n{_groups(evidence)}",
        f"## Whose trees\n\n{_houses(lineage)}",
        *([f"## What the logistic regression says\n\n{_odds(evidence)}"] if evidence.get("odds_ratios") else []),
        f"## What it asks\n\n{_asked(features)}",
        f"## Limits\n\n{LIMITS}",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(version: Version, lineage: Lineage, evidence: Evidence) -> str:
    return _table(
        ("", ""),
        [
            ("study", f"{lineage.study} (`{lineage.study_digest[:16]}`)"),
            ("site", lineage.site),
            ("round", str(lineage.round)),
            ("model", f"`{lineage.model_digest[:16]}`"),
            ("cohort", f"`{lineage.cohort_digest[:16]}`, {evidence['rows']} rows of {evidence['patients']} patients"),
            ("audit log up to", f"`{lineage.audit_head[:16]}`"),
            ("registered", registered_on(version)),
            ("decision threshold", f"{evidence['choice']['threshold']:.3f}"),
        ],
    )


def _why(evidence: Evidence) -> str:
    choice, succession = evidence["choice"], evidence.get("succession")
    said = [f"`{choice['model']}`: {choice['reason']}."]
    said += [f"Candidates were compared by {choice['judged_by']}."] if choice.get("judged_by") else []
    said += [f"Question to a person: {choice['question']}"] if choice["question"] else []
    said += (
        [f"Against version {succession['champion']}, the champion then: {succession['reason']}."] if succession else []
    )
    said += [f"{note}." for note in choice["notes"]]
    rows = [(name, _number(value)) for name, value in choice["cross_validated"].items()]
    return "\n".join(said) + ("\n\n" + _table(("candidate", "on the rows to choose on"), rows) if rows else "")


def _out_of_bag(found: Evidence | None) -> str:
    if not found:
        return "Too few test patients for figures."
    rows = [(name, *(_span(found["figures"][one].get(name)) for one in ("local", "chosen"))) for name in FIGURES]
    words = "Too few test patients for figures. Out of bag, on the patients who train and by whose votes it was chosen:"
    return f"{words}\n\n{_table(('figure', 'local (95 %)', 'chosen (95 %)'), rows)}"


def _tests(evidence: Evidence) -> str:
    if not evidence["test"]:
        return _out_of_bag(evidence.get("out_of_bag"))
    alone = evidence.get("strongest_alone", "local")
    first = () if alone == "local" else (f"gain over {alone}, the strongest alone",)
    columns = (
        "figure",
        "chosen (95 %)",
        *first,
        "gain over local",
        "gain over the champion then",
        "newest index events",
    )
    newest = (evidence.get("newest") or {}).get("figures", {})
    gains = (evidence["gain"],) if alone == "local" else (evidence["gain_over_alone"], evidence["gain"])
    parts = (evidence["test"], *gains, evidence.get("gain_over_champion") or {}, newest)
    shown = _table(columns, [(name, *(_span(part.get(name)) for part in parts)) for name in FIGURES])
    note = (evidence.get("newest") or {}).get("note")
    return f"{shown}\n\nNo figures on the newest index events: {note}." if note else shown


def _groups(evidence: Evidence) -> str:
    groups = evidence.get("subgroups") or []
    if not groups:
        return "The study asks neither sex nor age, or there are too few test patients."
    rows = [
        (one["name"], str(one["patients"] or "too few"), _span(one["figures"].get("auroc")),
         _number(one["predicted"]), _number(one["observed"]))
        for one in groups
    ]  # fmt: skip
    return _table(("group", "test patients", "AUROC (95 %)", "said on average", "happened"), rows)


def _odds(evidence: Evidence) -> str:
    rows = [(one["name"], f"{one['ratio']:.2f}", f"{one['deviation']:.3g}") for one in evidence["odds_ratios"]]
    return _table(("variable", "odds ratio per standard deviation", "standard deviation"), rows)


def _houses(lineage: Lineage) -> str:
    rows = [(house, str(trees), f"{100 * lineage.weights[house]:.1f} %") for house, trees in lineage.trees.items()]
    return _table(("house", "trees", "share of the vote"), rows)


def _asked(features: Sequence[Feature]) -> str:
    rows = [(one.name, one.kind, one.unit or "", _values(one)) for one in features]
    return _table(("feature", "kind", "unit", "values"), rows)


def _values(feature: Feature) -> str:
    if feature.categories:
        return ", ".join(feature.categories)
    return f"{feature.range[0]:g} to {feature.range[1]:g}" if feature.range else "0 or 1"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)


def _span(figure: Mapping[str, float | None] | None) -> str:
    if not figure or figure["value"] is None:
        return ""
    return f"{figure['value']:.3f} ({_number(figure['low'])} to {_number(figure['high'])})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def registered_on(version: Version) -> str:
    """The day, in UTC."""
    return datetime.fromtimestamp(version.created / 1000, UTC).date().isoformat()
