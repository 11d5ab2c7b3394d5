"""What was assumed and left out, in the order of the document."""

from __future__ import annotations

from spinney.connectors.fair4health.notes import Notes


def test_notes_come_by_their_lines_and_what_holds_for_all_comes_first_and_once() -> None:
    notes = Notes()
    notes.assume("b", 9)
    notes.assume("a", 3)
    notes.assume("all")
    notes.assume("all")
    notes.leave_out("c", 4)
    assert notes.assumed == ("all", "line 3: a", "line 9: b")
    assert notes.left_out == ("line 4: c",)
