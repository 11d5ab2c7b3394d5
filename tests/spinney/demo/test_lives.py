"""The patients' lives hang together."""

from __future__ import annotations


def test_stays_of_a_patient_do_not_overlap_and_nothing_happens_after_death(history):
    stays = history.events["Encounter"].query("`class` in ('IMP', 'OBSENC')").sort_values(["patient", "time"])
    before = stays.groupby("patient", observed=True)["until"].shift()
    assert not (stays["time"] < before).any()
    died = history.patients.set_index("patient")["died"]
    for rows in history.events.values():
        assert not (rows["time"].to_numpy() > died.reindex(rows["patient"]).to_numpy()).any()
