"""What people see of a simulation."""

from __future__ import annotations

from spinney.flows.cli.simulate_show import clustering, short
from tests.spinney.in_process import study


def test_a_long_name_is_cut_and_a_short_one_is_not():
    assert short("ash") == "ash"
    assert short("hospital-of-the-seven-oaks") == "hospital-of-the…"


def test_fewer_clusters_than_asked_for_are_explained():
    wood = study(algorithm={"name": "bofrf", "clusters": 3})
    lines = clustering(wood, [("ash", "elm", "oak"), ("beech", "cedar", "birch")])
    assert lines[0] == "cluster: ash, elm, oak"
    assert lines[-1] == "2 instead of 3 clusters: one with fewer than 3 sites joins its nearest"
    assert clustering(study(), [("ash", "elm")]) == []
