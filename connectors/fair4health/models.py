"""The settings of a data-mining model: those of its random forest, and how large the test part is.

Parameters are those of Spark ML, which FAIR4Health runs; several values between commas are a grid that it searches.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ValidationError

from spinney.connectors.fair4health.documents import Block, blocks, member_objects, member_text, shown
from spinney.connectors.fair4health.notes import Notes, Untranslated
from spinney.study.settings import MOST_NODES, Choice, ForestSettings, Split, Tuning

FOREST = "classification_random_forest"
Target = tuple[str, type[BaseModel], str]
TAKEN: dict[str, Target] = {
    "num_trees": ("forest", ForestSettings, "trees"),
    "max_depth": ("forest", ForestSettings, "max_depth"),
    "min_instances_per_node": ("forest", ForestSettings, "min_samples_leaf"),
    "impurity": ("forest", ForestSettings, "criterion"),
    "feature_subset_strategy": ("forest", ForestSettings, "max_features"),
    "num_folds": ("tuning", Tuning, "folds"),
    "metric": ("choice", Choice, "metric"),
}
OUR_WORDS = {"areaUnderROC": "auroc", "areaUnderPR": "auprc"}
WITHOUT = {
    "handle_invalid": "what is missing is left to the forest; see `imputation`",
    "max_bins": "trees cut a feature at its `cuts`, at most `most_cuts` of them",
    "max_parallelism": "each site uses its own processors",
}
Sections = dict[str, dict[str, Any]]


def settings_of(content: Any, notes: Notes) -> Sections:
    """Sections of a study, as far as a document says something about them."""
    sections: Sections = {}
    model = next((block for block in blocks(content) if member_objects(block, "algorithms")), None)
    if model is not None:
        for algorithm in member_objects(model, "algorithms"):
            _take_algorithm(algorithm, sections, notes)
        _take_sizes(model, sections, notes)
        _fit_a_house(sections.get("forest", {}), notes)
    if "tuning" in sections:
        sections.setdefault("forest", {})["tuning"] = sections.pop("tuning")
    return sections


def _take_algorithm(algorithm: Block, sections: Sections, notes: Notes) -> None:
    name, parameters = member_text(algorithm, "name"), member_objects(algorithm, "parameters")
    if name != FOREST or "forest" in sections:
        words = ", ".join(f"{shown(one.get('name'))} {shown(one.get('value'), 40)}" for one in parameters[:20])
        why = "a study has one forest" if name == FOREST else "sites of a study grow random forests"
        what = f"algorithm {shown(name)}" + (f" ({words})" if words else "")
        notes.leave_out(f"{what}: {why}", algorithm.line_of("name"))
        return
    sections["forest"] = {}
    for one in parameters:
        try:
            _take(member_text(one, "name"), str(one.get("value")).strip(), sections)
        except Untranslated as why:
            words = f"{shown(one.get('name'))} {shown(one.get('value'), 40)}"
            notes.leave_out(f"algorithm {FOREST}: {words}: {why}", one.line_of("name"))
    if sections["forest"].get("max_features") == "auto":  # so does Spark
        sections["forest"]["max_features"] = "all" if sections["forest"].get("trees") == 1 else "sqrt"


def _take(name: str, value: str, sections: Sections) -> None:
    if name == "min_info_gain" and value in ("0", "0.0"):
        return  # as here
    if name not in TAKEN:
        raise Untranslated(WITHOUT.get(name, "no counterpart"))
    if "," in value:
        raise Untranslated("several values to be tried; forest.tuning searches by itself, where it has seconds")
    section, settings, member = TAKEN[name]
    value = OUR_WORDS.get(value, value)
    if not (name == "feature_subset_strategy" and value == "auto"):
        value = _checked(settings, member, value)
    sections.setdefault(section, {})[member] = value


def _checked(settings: type[BaseModel], member: str, value: str) -> Any:
    """The value as the setting alone takes it; whether settings go together is seen when all are there."""
    alone = {"max_leaves": 2} if settings is ForestSettings else {}
    try:
        return getattr(settings.model_validate({**alone, member: value}), member)
    except ValidationError as error:
        where = {ForestSettings: "forest", Tuning: "forest.tuning", Choice: "choice"}[settings]
        raise Untranslated(f"{where}.{member}: {error.errors()[0]['msg'].lower()}") from None


def _take_sizes(model: Block, sections: Sections, notes: Notes) -> None:
    sizes = {name: model[name] for name in ("training_size", "test_size") if model.get(name) is not None}
    if not sizes:
        return
    try:
        numbers = {name: _number(value) for name, value in sizes.items()}
        test = numbers.get("test_size", round(1 - numbers.get("training_size", 0), 9))
        if not math.isclose(test + numbers.get("training_size", 1 - test), 1):
            raise Untranslated("they leave a part that neither trains nor tests")
        sections["split"] = {"test": Split(test=test).test}
        notes.assume(f"split.test is test_size {test:g}, of patients and not of rows", model.line_of("test_size"))
    except (Untranslated, ValidationError) as error:
        why = error if isinstance(error, Untranslated) else f"split.test: {error.errors()[0]['msg'].lower()}"
        words = ", ".join(f"{name} {shown(value, 40)}" for name, value in sizes.items())
        notes.leave_out(f"{words}: {why}", model.line_of(next(iter(sizes))))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Untranslated("no number")
    return float(value)


def _fit_a_house(forest: dict[str, Any], notes: Notes) -> None:
    """Fewer leaves, where trees as many and as deep as these would be more than a house takes."""
    try:
        ForestSettings.model_validate(forest)
    except ValidationError:
        trees = forest.get("trees", ForestSettings().trees)
        forest["max_leaves"] = (MOST_NODES // trees + 1) // 2
        notes.assume(f"max_leaves {forest['max_leaves']}: deeper trees, {trees} of them, are more than a house takes")
