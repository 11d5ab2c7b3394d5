"""A data-protection impact assessment, filled in as far as the study knows; what only people know is marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from pydantic import BaseModel, Field, ValidationError

from spinney.errors import SpinneyError
from spinney.house.roster import Roster
from spinney.reports.html import bullets, el, page, section, table
from spinney.study.settings import Feature
from spinney.study.study import Study

OPEN = "To be filled in by this house: "
RISKS_MEASURED = ("AUC", "true positives at 1 %")
SUMS = {
    "masked": "only the sum of all sites can be opened, once, if all have signed it",
    "ring": "sums pass from site to site, and no house but a tree's owner sees a tree's sum",
    "trusted-third-party": "the coordinator, whom all trust, reads every site's counts",
}


class NoFigures(SpinneyError):
    """A file that holds no figures of attacks."""


class AttackFigure(BaseModel):
    """A figure as `python -m benchmarks.privacy --json FILE` writes it."""

    name: str
    runs: tuple[float, ...] = Field(min_length=1)


class AttackFigures(BaseModel):
    """Such a file."""

    part: str
    machine: str
    figures: tuple[AttackFigure, ...]


def read_figures(content: bytes) -> AttackFigures:
    """The figures in a file, or NoFigures."""
    try:
        found = AttackFigures.model_validate_json(content)
    except ValidationError:
        raise NoFigures("no figures of attacks; python -m benchmarks.privacy --json FILE writes some") from None
    return found


def dpia_page(
    study: Study, house: str, roster: Roster | None, leaves: Sequence[str], attacks: AttackFigures | None = None
) -> str:
    """The page. `leaves` says in words what leaves the house in a round."""
    return page(
        f"Data-protection impact assessment: {study.name}, version {study.version}",
        el(
            "p",
            f"House {house}; study digest {study.digest}. A draft made from the study's own settings.",
            class_="where",
        ),
        section("Purpose and grounds", _pairs("purpose", _purpose(study))),
        section("Data", *_data(study)),
        section("Recipients", *_recipients(roster, leaves)),
        section("Retention", bullets(_retention(study))),
        section("Necessity and proportion", bullets(_necessity(study))),
        section("Risks and measures", *_risks(study, attacks)),
        section("Still open", bullets(_still_open())),
    )


def _pairs(name: str, pairs: Mapping[str, str]) -> Element:
    return table(("what", "words"), [*pairs.items()], name)


def _purpose(study: Study) -> dict[str, str]:
    permit = study.permit
    return {
        "question": study.description or OPEN + "the clinical question.",
        "purpose": study.purpose or OPEN + "what the model is for (`purpose` in the study).",
        "legal basis": study.legal_basis or OPEN + "the legal basis (`legal_basis` in the study).",
        "permit": str(permit) if permit else OPEN + "the permit, or why none is needed (`permit` in the study).",
        "consent": {
            "presumed": "all patients of the population but those who object, where the house keeps that",
            "required": "only patients who agree",
        }[study.consent],
    }


def _data(study: Study) -> list[Element]:
    rows = [(one.name, str(one.kind), _values(one), _origin(one)) for one in study.features]
    rows.append((study.label.name, "outcome", "yes or no", "as the study's `label` says"))
    told = "Health data of patients (GDPR Art. 9), read inside the house and pseudonymised with a key of the house."
    return [el("p", told), table(("variable", "kind", "values", "read from"), rows, "variables")]


def _values(feature: Feature) -> str:
    if feature.categories:
        return ", ".join(feature.categories)
    if feature.range is None:
        return "yes or no"
    return f"{feature.range[0]:g} to {feature.range[1]:g} {feature.unit or ''}".strip()


def _origin(feature: Feature) -> str:
    if feature.source is None:
        return "finished tables"
    said = feature.source.model_dump(mode="json", exclude_none=True)
    return "; ".join(
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in said.items()
        if value
    )


def _recipients(roster: Roster | None, leaves: Sequence[str]) -> list[Element]:
    if roster is None:
        houses = el("p", OPEN + "the houses of the study; no roster is approved here yet.")
    else:
        rows = [
            (name, "coordinator" if name == roster.coordinator else "site", prints)
            for name, prints in roster.fingerprints.items()
        ]
        houses = table(("house", "role", "key"), rows, "houses")
    return [
        houses,
        el("p", "What leaves this house in a round, each message with a line in its audit log:"),
        bullets(leaves),
    ]


def _retention(study: Study) -> list[str]:
    end = (
        f"until the permit ends on {study.permit.expires}; then it is deleted"
        if study.permit
        else "until it is deleted"
    )
    return [
        f"Cohorts in the house's vault: {end} (spinney site forget deletes sooner). " + OPEN + "the period.",
        f"Messages on the exchange and copies of what this house has sent: {study.schedule.retention_days} days.",
        "Keys of a round: destroyed when it is over. Pseudonyms: as long as the house keeps its key.",
        "Models: until this house deletes them; trees of a house that withdraws leave them on the next night.",
    ]


def _necessity(study: Study) -> list[str]:
    privacy = study.privacy
    return [
        "No row, no identifier and no date of a patient leaves the house; nothing is pooled.",
        f"A house with fewer than {privacy.smallest_cohort} training patients stays out.",
        f"{len(study.features)} variables are used. " + OPEN + "why each of them is needed.",
        "The model supports a decision and takes none. "
        + OPEN
        + "who acts on it, and how a patient can object to that.",
    ]


def _risks(study: Study, attacks: AttackFigures | None) -> list[Element]:
    privacy = study.privacy
    rows = [
        (
            "a tree tells who was among the patients that grew it, or a value of one of them",
            f"at least {study.lent_leaf} distinct patients in every leaf that is lent, recounted; "
            + (
                f"each house attacks its own trees and lends none above an advantage of {privacy.largest_advantage:g}; "
                if privacy.largest_advantage
                else ""
            )
            + f"thresholds only at the study's cuts, probabilities rounded to {privacy.probability_precision:g}; "
            "no counts, no differential privacy",
        ),
        ("counts per tree tell about a house's patients", SUMS[privacy.secure_sum]),
        (
            "averages tell about a few patients",
            f"refused below {privacy.smallest_cohort} patients, rounded to 0.001, nothing told of fewer than "
            f"{privacy.smallest_leaf}; the number of rows is rounded to {privacy.rows_precision}",
        ),
        ("two nights differ by one patient", f"told once in an epoch of {study.epoch_nights} nights, then used again"),
        ("another house sends something harmful", "no code is received; trees are checked against the study first"),
        ("the coordinator invents houses around one", "keys are compared by telephone, rosters approved by a person"),
        ("messages are read or changed on their way", "sealed for their recipients, signed, under keys of one round"),
        ("a house's server is stolen", "one private folder; " + OPEN + "disk encryption, access and backups"),
        ("a patient objects", "lists are read before every pull (`opt_out`). " + OPEN + "which lists this house keeps"),
        ("the model errs, or serves some patients worse", "chosen and tested on own patients, by subgroups"),
    ]  # fmt: skip
    found = [
        (one.name, f"{sorted(one.runs)[len(one.runs) // 2]:.3f}")
        for one in (attacks.figures if attacks else ())
        if one.name.endswith(RISKS_MEASURED)
    ]
    shown = (
        [
            el("p", f"Attacks on releases under such rules, on public data ({attacks.machine if attacks else ''}). "
               "An AUC of 0.5 tells nothing."),
            table(("attack", "figure"), found, "attacks", numbers=(1,)),
        ]
        if found
        else [el("p", OPEN + "figures of attacks: python -m benchmarks.privacy --json FILE, then --attacks FILE.")]
    )  # fmt: skip
    return [table(("risk", "measure"), rows, "risks"), *shown]


def _still_open() -> list[str]:
    words = (
        "the controller, and its contract with the others (joint controllers or processors)",
        "the opinion of the data-protection officer",
        "the views of patients or of who speaks for them",
        "how likely and how severe each risk is after the measures, and whether that is accepted",
        "date, name and signature",
    )
    return [OPEN + one + "." for one in words]
