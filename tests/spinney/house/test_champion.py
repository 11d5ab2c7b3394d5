"""The champion of the registry in the next night's choice, over real houses and a real vault."""

from __future__ import annotations

import numpy as np

from spinney.cohort.encoded import read_encoded
from spinney.configuration.site import read_site
from spinney.house.champion import incumbent_of
from spinney.tasks.site import patients_of
from tests.federations import breast_study
from tests.servers.migrated import registry_in


def test_the_first_night_has_no_champion_and_the_second_judges_it(two_nights):
    _, first, second = two_nights
    assert first.outcome.succession is None
    assert second.outcome.succession.champion == "1"
    assert second.outcome.succession.patients > 0
    assert second.outcome.takes_over == (second.outcome.succession.reason == "it is not worse beyond noise")
    assert "auroc" in second.outcome.gain_over_champion


def test_the_champion_is_pinned_to_the_round(two_nights):
    village, first, _ = two_nights
    registry, study = registry_in(village.home("ash")), breast_study()
    memory: dict[str, object] = {}
    patients = patients_of(read_site(village.site_file("ash")), study)
    before = incumbent_of(registry, patients, study, "ash", memory, first.cohort)
    assert (before.version, memory) == ("1", {"champion": "1"})
    again = incumbent_of(registry, patients, study, "ash", {"champion": ""}, first.cohort)
    assert again is None
    assert before.promised == first.outcome.decision.cross_validated[first.outcome.decision.name]
    assert np.isfinite(before.votes(read_encoded(first.cohort, study))).all()
