"""The made-up hospitals are what the tables say, and pictures can be read by everybody."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import pictures
from benchmarks.pictures import Panel
from benchmarks.shifts_data import SWEEPS, TEST_ROWS, Hospital, cohorts_of, study_of
from spinney.rows.parts import Part


def rows_of(part, seed=0, **ways):
    study = study_of((Hospital(**ways),), 10, seed)
    return cohorts_of((Hospital(**ways),), study)["S1"].rows(part)


def test_a_hospital_is_measured_on_the_same_patients_in_every_repeat():
    np.testing.assert_array_equal(rows_of(Part.TEST, seed=1).X, rows_of(Part.TEST, seed=2).X)
    assert not np.array_equal(rows_of(Part.TRAINING, seed=1).X, rows_of(Part.TRAINING, seed=2).X)


@pytest.mark.parametrize("positive", [0.05, 0.3, 0.75])
def test_the_share_of_ill_patients_is_the_one_that_was_asked_for(positive):
    assert rows_of(Part.TRAINING, rows=200, positive=positive).y.mean() == positive
    assert rows_of(Part.TEST, positive=positive).y.sum() == round(TEST_ROWS * positive)


def test_wrong_labels_are_in_training_only():
    right, wrong = rows_of(Part.TRAINING, rows=4000), rows_of(Part.TRAINING, rows=4000, wrong=0.3)
    np.testing.assert_array_equal(right.X, wrong.X)
    assert np.mean(right.y != wrong.y) == pytest.approx(0.3, abs=0.02)
    np.testing.assert_array_equal(rows_of(Part.TEST).y, rows_of(Part.TEST, wrong=0.3).y)


def test_measurements_move_and_stay_as_spread_out():
    usual, moved = rows_of(Part.TEST, positive=None), rows_of(Part.TEST, positive=None, moved=1.0)
    np.testing.assert_allclose(np.abs(moved.X.mean(axis=0) - usual.X.mean(axis=0)) * 12, 1.0, atol=0.01)
    np.testing.assert_allclose(moved.X.std(axis=0), usual.X.std(axis=0), rtol=0.01)


def test_only_the_first_hospital_is_odd_where_one_is():
    for sweep in SWEEPS:
        for federation in sweep.settings.values():
            usual = {replace(one, rows=300) for one in federation[1:]}
            assert not sweep.odd or usual == {Hospital()}


def test_a_picture_is_named_described_and_tells_every_value(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    panel = Panel("gain", ["few", "many"], {"ours": [(0.02, 0.01, 0.03), (-0.01, -0.02, 0.0)]})
    pictures.save("one", "A title", "What is to be seen.", [panel], joined=True)
    picture = ElementTree.parse(tmp_path / "one.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    assert (picture.findtext(f"{svg}title"), picture.findtext(f"{svg}desc")) == ("A title", "What is to be seen.")
    told = [one.text for one in picture.iter(f"{svg}title")][1:]
    assert told == ["ours, few: +0.02 (+0.01 to +0.03)", "ours, many: -0.01 (-0.02 to +0.00)"]
