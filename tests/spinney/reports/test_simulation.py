"""The page of a simulation: one file that says first whether it would help."""

from __future__ import annotations

import pytest

from spinney.reports.simulation import simulation_page


@pytest.fixture
def report():
    gain = {"value": 0.031, "low": 0.012, "high": 0.05}
    site = {
        "rows": 1234,
        "positives": 99,
        "auroc": {"local": 0.7, "chosen": 0.731, "pooled": None},
        "gain": {"auroc": gain},
        "verdict": {"word": "yes", "sentence": "yes, +0.031 (+0.012 to +0.050)"},
    }
    return {
        "study": "wood",
        "algorithm": "bofrf",
        "study_digest": "ab" * 32,
        "repeats": 7,
        "sites": {"ash <b>": site, "elm": {**site, "gain": {"auroc": None}}},
        "newcomers": {"elm": {"value": 0.7, "low": 0.6, "high": 0.8}},
        "by_trees": {"elm": [{"size": 10, "mean": 0.0, "least": -0.01, "most": 0.02, "tried": 4}]},
    }


def test_the_answer_stands_before_the_pictures(report):
    told = simulation_page(report)
    assert told.index("+ elm: yes, +0.031") < told.index("<svg")
    assert "7 splits of the same patients" in told
    assert told.count("<svg") == 3


def test_the_page_loads_nothing_and_runs_nothing(report):
    told = simulation_page(report)
    assert "ash &lt;b&gt;" in told
    assert "<script" not in told
    assert "src=" not in told
