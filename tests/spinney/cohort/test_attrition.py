"""What is kept of the way from the source to the rows."""

from __future__ import annotations

import numpy as np

from spinney.cohort.attrition import Attrition, Division, Loss, PartCount


def test_index_events_are_the_rows_and_all_that_was_left_out_of_them() -> None:
    losses = (
        Loss("no index event of the study", 40, 4, 9),
        Loss("no stroke before", 3, 1, 2),
        Loss("no stroke before", 4, 2, 3),
        Loss("died before prediction time", 0, 0, 0),
        Loss("the outcome is still open", 5, 5, 5),
    )
    found = Attrition("Encounter", losses, 10, 8)
    assert found.index_events == 22
    assert found.left_out == {"no stroke before": 7}


def test_a_finished_table_has_no_rules() -> None:
    found = Attrition("", (Loss("the outcome is still open", 5, 5, 5),), 10, 8)
    assert (found.index_events, found.left_out) == (15, {})


def test_a_patient_of_the_newest_rows_counts_in_each_part_and_once_in_all() -> None:
    part = np.array([0, 0, 0, 2, 3, 3, 3], dtype=np.int8)
    division = Division.of(part, np.array([1, 1, 2, 3, 2, 3, 4]))
    assert division.parts == (
        PartCount("training", 3, 2),
        PartCount("validation", 0, 0),
        PartCount("test", 1, 1),
        PartCount("newest", 3, 3),
    )
    assert (division.aside.rows, division.aside.patients) == (4, 3)
    assert (division.training, division.patients) == (2, 4)
