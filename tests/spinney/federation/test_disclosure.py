"""What may leave a house: messages of known kinds, with nothing that the study does not allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spinney.federation.seam import Decline, Message
from spinney.plugins import ALGORITHMS
from tests.spinney.in_process import Wood


@pytest.mark.parametrize(
    ("rows", "rule"), [(123, "rows are rounded"), (10**18, "no hospital has more than 1,000,000,000 rows")]
)
def test_a_message_that_says_more_than_the_study_allows_does_not_leave_the_house(wood, people, rows, rule):
    class Chatterbox(ALGORITHMS["bofrf"].site_part):
        def join(self, order):
            return replace(super().join(order), rows=rows)

    federation = Wood(wood, people, parts={"elm": Chatterbox})
    federation.run()
    assert federation.left_out == {"elm": f"refused join: a message breaks the rule: {rule}"}


def test_a_kind_of_message_that_nobody_knows_does_not_leave_the_house(wood, people):
    class Talkative(ALGORITHMS["bofrf"].site_part):
        def check(self, _order):
            return Message()

    federation = Wood(wood, people, parts={"elm": Talkative})
    federation.run()
    assert "no message that a site may send" in federation.left_out["elm"]


def test_a_long_reason_is_cut_off_at_the_door(wood, people):
    class Poet(ALGORITHMS["bofrf"].site_part):
        def join(self, _order):
            return Decline("because " * 1000)

    federation = Wood(wood, people, parts={"elm": Poet})
    federation.run()
    assert federation.left_out["elm"] == "refused join: a message breaks the rule: a reason is a sentence"
