"""A model's card, for people and for catalogues: what it is, why it was chosen, and never more than is known."""

from __future__ import annotations

import pytest

from spinney.connectors.mlflow import Registry
from spinney.connectors.mlflow.card import card as card_of
from tests.connectors.mlflow.registered import register
from tests.spinney.in_process import Wood


@pytest.fixture
def version(registry: Registry, wood: Wood):
    return register(registry, wood)


def row(card: str, name: str) -> list[str]:
    """The cells of the line that begins with a name."""
    (line,) = (one for one in card.splitlines() if one.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_card_says_what_was_chosen_and_why(registry: Registry, wood: Wood, version):
    card, decision = registry.card(version), wood.outcomes["elm"].decision
    assert f"`{decision.name}`: {decision.reason}." in card
    assert row(card, "decision threshold") == [f"{decision.threshold:.3f}"]
    assert card.startswith("# wood, version 1\n")


def test_figures_are_the_registered_ones_with_their_intervals(registry: Registry, wood: Wood, version):
    figure = wood.outcomes["elm"].figures["auroc"]
    assert row(registry.card(version), "auroc")[0] == f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"


def test_every_house_is_named_with_its_trees_and_its_share(registry: Registry, version):
    card, lineage = registry.card(version), registry.lineage(version)
    for house, trees in lineage.trees.items():
        assert row(card, house) == [str(trees), f"{100 * lineage.weights[house]:.1f} %"]


def test_too_few_test_patients_are_said_instead_of_figures(registry: Registry, version):
    evidence = {**registry.evidence(version), "test": {}}
    told = card_of(version, registry.lineage(version), evidence, registry.features(version))
    assert "Too few test patients for figures." in told
    assert "| auroc |" not in told


def test_words_of_others_break_no_table(registry: Registry, version):
    groups = [{"name": "a | b", "patients": 10, "figures": {}, "predicted": 0.5, "observed": 0.4}]
    evidence = {**registry.evidence(version), "subgroups": groups}
    told = card_of(version, registry.lineage(version), evidence, registry.features(version))
    assert row(told, "a / b") == ["10", "", "0.500", "0.400"]
