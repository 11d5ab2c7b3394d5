"""A document becomes a study and two lists: what was assumed, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spinney.connectors.fair4health.criteria import population_of
from spinney.connectors.fair4health.documents import Block, blocks, member_objects, member_text, read_fair4health, shown
from spinney.connectors.fair4health.models import settings_of
from spinney.connectors.fair4health.notes import Notes, Untranslated
from spinney.connectors.fair4health.ranges import ranges_of
from spinney.connectors.fair4health.variables import Variables, is_of_stays, study_name_of
from spinney.errors import StudyInvalid
from spinney.study.definition import RESERVED_COLUMNS
from spinney.study.study import Study

DEPENDENT, MOST_VARIABLES = "dependent", 5000
RESULTS = {
    "boosted_models": "models that were trained already; a study grows its own",
    "predictions": "predictions for patients; a study keeps none",
    "variable_configurations": "a study has no counterpart",
}


@dataclass(frozen=True)
class Imported:
    """A first study, what was assumed to get there, and what is not in it."""

    study: Study
    assumed: tuple[str, ...]
    left_out: tuple[str, ...]


def import_document(path: Path) -> Imported:
    """Translate a file, or raise StudyInvalid with what keeps it from being a study."""
    content = read_fair4health(path)
    found = [block for block in blocks(content) if _is_feature_set(block)]
    if not found:
        raise StudyInvalid([f"{path}: no FAIR4Health feature set: nothing in it has `variables` with `fhir_query`"])
    feature_set, *others = found
    variables = member_objects(feature_set, "variables")
    if len(variables) > MOST_VARIABLES:
        raise StudyInvalid([f"{path}: {len(variables):,} variables; a study takes {MOST_VARIABLES:,}"])
    dependent = [one for one in variables if one.get("variable_type") == DEPENDENT]
    if not dependent:
        raise StudyInvalid([_without_outcome(path, feature_set, len(variables))])
    notes = Notes()
    draft = _Draft(notes, Variables(notes, ranges_of(content)))
    for variable in (dependent[0], *(one for one in variables if one is not dependent[0])):
        draft.add(variable, dependent[0])
    _leave_out_the_rest(content, others, notes)
    criteria = next(
        (member_objects(one, "eligibility_criteria") for one in blocks(content) if "eligibility_criteria" in one), []
    )
    cohort = population_of(criteria, any(map(is_of_stays, variables)), notes)
    settings = settings_of(content, notes)
    if not draft.features or draft.label is None:
        raise StudyInvalid([f"{path}: {draft.missing(dependent[0])}", *(f"{path}: {one}" for one in notes.left_out)])
    words = {
        "name": study_name_of(member_text(feature_set, "name")),
        "description": shown(member_text(feature_set, "description"), 2000),
    }
    made = {**words, "features": draft.features, "label": draft.label, "cohort": cohort, **settings}
    return Imported(_checked(path, made), notes.assumed, notes.left_out)


def _leave_out_the_rest(content: Any, others: list[Block], notes: Notes) -> None:
    """List what else stands in a document."""
    for other in others:
        notes.leave_out("another feature set; a study has one", other.line)
    for block in blocks(content):
        for name in RESULTS:
            if isinstance(block.get(name), list) and block[name]:
                notes.leave_out(f"{name}: {RESULTS[name]}", block.line_of(name))
    if isinstance(content, Block) and content.get("variables") and not _is_feature_set(content):
        notes.leave_out("variables: a patient's values; a study keeps none", content.line_of("variables"))


def _is_feature_set(block: Block) -> bool:
    """Whether it has variables with queries; predictions have variables, too, and these are a patient's values."""
    variables = block.get("variables")
    return bool(variables) and isinstance(variables, list) and all(_is_variable(one) for one in variables)


def _is_variable(one: object) -> bool:
    return isinstance(one, Block) and bool(member_text(one, "fhir_query") and member_text(one, "fhir_path"))


def _without_outcome(path: Path, feature_set: Block, variables: int) -> str:
    return (
        f"{path}: line {feature_set.line_of('variables')}: no dependent variable: {variables} variables say what is "
        "known about a patient, and none what is to be predicted. Export a feature set with an outcome, or give one of "
        f'these "variable_type": "{DEPENDENT}"'
    )


def _checked(path: Path, made: dict[str, Any]) -> Study:
    try:
        return Study.model_validate(made)
    except ValidationError as error:
        mistakes = [f"{path}: {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise StudyInvalid(mistakes) from None


@dataclass
class _Draft:
    """What the variables became."""

    notes: Notes
    variables: Variables
    features: list[dict[str, Any]] = field(default_factory=list)
    label: dict[str, Any] | None = None
    taken: set[str] = field(default_factory=lambda: set(RESERVED_COLUMNS))

    def add(self, variable: Block, dependent: Block) -> None:
        words = member_text(variable, "name")
        try:
            if variable is dependent:
                source = self.variables.label(variable)
                self.label = {"name": self._name(words, variable), "source": source}
            elif variable.get("variable_type") == DEPENDENT:
                raise Untranslated("a second dependent variable; a study has one label")
            else:
                feature = self.variables.feature(variable)
                self.features.append({"name": self._name(words, variable), **feature})
        except Untranslated as why:
            self.notes.leave_out(f"{study_name_of(words)}: {why}", variable.line_of("name"))

    def missing(self, dependent: Block) -> str:
        """What keeps it from being a study."""
        if self.label is None:
            name = study_name_of(member_text(dependent, "name"))
            return f"the dependent variable {name} can't be translated, so there is no outcome to predict"
        return "no other variable than the dependent one can be translated, so there is nothing to predict from"

    def _name(self, words: str, variable: Block) -> str:
        """A name that nothing else has."""
        wanted = name = study_name_of(words)
        number = 2
        while name in self.taken:
            name, number = f"{wanted[:60]}_{number}", number + 1
        if name != wanted:
            self.notes.assume(f"{name}: called so because there is a {wanted} already", variable.line_of("name"))
        self.taken.add(name)
        return name
