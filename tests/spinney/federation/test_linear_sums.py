"""A coordinator can't say where a step of the common regression starts, nor how many there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.errors import Refused, RoundVoid
from spinney.federation.linear_sums import AS_COMPUTED_HERE
from spinney.federation.messages import AddOrder
from spinney.plugins import ALGORITHMS
from tests.spinney.in_process import Wood, cohorts, study


def wood():
    return study(algorithm={"name": "linear"})


def refusal_by_elm(step, change):
    tamper = lambda name, site, order: change(order) if (name, site) == (step, "elm") else order  # noqa: E731
    federation = Wood(wood(), cohorts(wood()), tamper=tamper)
    federation.run()
    return federation.left_out["elm"]


def test_a_coordinator_that_makes_up_what_was_opened_is_refused():
    def other_answers(order):
        if not order.subject.startswith("fit"):
            return order
        hidden = order.last.hidden.copy()
        hidden[0, 0] += np.uint64(1 << 35)
        return replace(order, last=replace(order.last, hidden=hidden))

    assert "other answers than those that this house signed" in refusal_by_elm("add", other_answers)


def test_a_coordinator_that_skips_or_repeats_a_step_is_refused():
    def later(order):
        return replace(order, subject="fit-3") if order.subject == "fit-2" else order

    assert "step 3 follows from step 2" in refusal_by_elm("add", later)

    def again(order):
        return replace(order, subject="fit-1") if order.subject == "fit-2" else order

    assert "opened already" in refusal_by_elm("add", again)


@pytest.mark.parametrize("subject", ["fit-11", "fit-0", "fit-x", "fit-", "least-squares", "anything"])
def test_a_sum_that_the_limit_forbids_or_nobody_knows_is_refused(subject):
    def change(order):
        return replace(order, subject=subject) if order.subject == "fit-2" else order

    known = ("no sum of this algorithm", "more than this study's limit", "follows from", "not how the moments were")
    reason = refusal_by_elm("add", change)
    assert any(words in reason for words in known)


def test_a_coordinator_that_tells_other_coefficients_than_were_summed_is_refused():
    def moved(order):
        return replace(order, terms=replace(order.terms, at=order.terms.at + 10 * AS_COMPUTED_HERE))

    assert "not those of the sums" in refusal_by_elm("finish", moved)


def test_a_sum_that_cannot_be_opened_ends_the_round_of_this_algorithm():
    with pytest.raises(RoundVoid, match="did not release"):
        Wood(wood(), cohorts(wood()), lost={"elm": "add_release"}).run()


def test_nonsense_from_one_site_is_refused_as_a_sum_or_bounded_at_home():
    liar = type("Liar", (ALGORITHMS["linear"].site_part,), {})

    def summands(self, order):
        values, terms = super(liar, self).summands(order)
        return np.full_like(values, terms.high * self.rows_told), terms

    liar.summands = summands
    federation = Wood(wood(), cohorts(wood()), parts={"elm": liar})
    federation.run()
    for site in ("ash", "beech", "cedar"):
        outcome = federation.outcomes[site]
        reached = outcome.decision.cross_validated
        assert reached[outcome.decision.name] >= max(reached[one] for one in ("local", "local blend")) - 0.05


def test_an_opened_sum_of_another_subject_is_no_evidence():
    def change(order):
        return replace(order, last=replace(order.last, subject="moments")) if order.subject == "fit-2" else order

    assert "step 2 follows from step 1" in refusal_by_elm("add", change)


def test_an_order_without_the_sum_before_is_refused():
    federation = Wood(wood(), cohorts(wood()))
    federation.run()
    order = federation.order("add")
    plain = AddOrder("fit-9", order.mode, 99, order.participants, order.most, ())
    with pytest.raises(Refused, match="no sum of this algorithm"):
        federation.site("ash").answer("add", plain)
