"""Both halves of a masked sum: a list that all sign, and one release for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spinney.errors import Refused, RoundVoid
from spinney.federation.messages import ReleasedSeed
from spinney.federation.secure_sum import modulo, unmask_alone
from tests.spinney.federation.tampered import cheats, stopped
from tests.spinney.in_process import SITES, Wood, cohorts, study


@pytest.fixture(scope="module")
def people(wood):
    return cohorts(wood, rows=120)


def test_a_roll_that_lacks_somebody_is_not_signed(scoring):
    order = scoring.order("sign")
    with pytest.raises(Refused, match="3 answers of 4 participants"):
        scoring.site("ash").answer("sign", replace(order, answers=order.answers[:3]))


def test_a_roll_with_another_answer_than_the_one_given_is_not_signed(scoring):
    order = scoring.order("sign")
    other = (order.answers[1], *order.answers[1:])
    with pytest.raises(Refused, match="does not list the answer that ash gave"):
        scoring.site("ash").answer("sign", replace(order, answers=other))


def test_a_roll_that_somebody_has_not_signed_releases_nothing(wood, people):
    federation = stopped(Wood(wood, people, lost=dict.fromkeys(SITES, "release")))
    order = federation.order("release")
    for signatures in ((*order.signatures[:3], order.signatures[0]), order.signatures[:3]):
        with pytest.raises(Refused, match="not validly signed by elm"):
            federation.site("ash").answer("release", replace(order, signatures=signatures))


def test_a_site_that_was_asked_again_releases_nothing_for_the_asking_before(wood, people):
    federation = stopped(Wood(wood, people, lost=dict.fromkeys(SITES, "release")))
    ash = federation.site("ash")
    ash.answer("score", replace(federation.order("score"), attempt=2))
    with pytest.raises(Refused, match="does not list the answer that ash gave"):
        ash.answer("release", federation.order("release"))


def test_what_was_signed_is_released_and_nothing_else(wood, people):
    federation = stopped(Wood(wood, people, lost=dict.fromkeys(SITES, "release")))
    changed = federation.houses["ash"].memory["signed"].replace("a", "b")
    federation.houses["ash"].memory["signed"] = changed
    with pytest.raises(Refused, match="not validly signed by ash, beech, cedar, elm"):
        federation.site("ash").answer("release", federation.order("release"))


def test_the_same_roll_is_released_again_and_with_the_same_seed(finished):
    order = finished.order("release")
    first, second = (finished.site("ash").answer("release", order) for _ in range(2))
    assert first.seed == second.seed


@pytest.mark.parametrize("step", ["sign", "release"])
def test_a_site_that_has_scored_nothing_has_nothing_to_sign_or_release(wood, people, finished, step):
    newcomer = Wood(wood, people)
    with pytest.raises(Refused, match="too early"):
        newcomer.site("ash").answer(step, finished.order(step))


@pytest.mark.parametrize("step", ["check", "score", "ring", "finish"])
def test_a_coordinator_that_asks_out_of_order_is_refused(people, step):
    wood = study(privacy={"secure_sum": "ring"})
    done = Wood(wood, people)
    done.run()
    newcomer = Wood(wood, people)
    newcomer.houses["ash"].verify = done.houses["ash"].verify
    with pytest.raises(Refused, match=r"too early|not scored here|no round key|have not joined"):
        newcomer.site("ash").answer(step, done.order(step))


def test_a_wrong_seed_voids_the_round_instead_of_giving_wrong_weights(wood, people):
    liar = cheats("release", lambda _, reply: replace(reply, seed=bytes(32)))
    with pytest.raises(RoundVoid, match="outside 0"):
        Wood(wood, people, parts={"elm": liar}).run()


def test_wrong_guards_void_the_round_and_so_does_a_release_without_them(wood, people):
    liar = cheats("release", lambda _, reply: replace(reply, guards=(bytes(32),) * len(reply.guards)))
    with pytest.raises(RoundVoid, match="outside 0"):
        Wood(wood, people, parts={"elm": liar}).run()
    miser = cheats("release", lambda _, reply: ReleasedSeed(reply.seed, ()))
    with pytest.raises(RoundVoid, match="elm did not release"):
        Wood(wood, people, parts={"elm": miser}).run()


def test_one_site_that_does_not_release_keeps_everybody_s_own_rows_closed(wood, people):
    answers = []
    noted = cheats("score", lambda _, reply: answers.append(reply) or reply)
    federation = stopped(Wood(wood, people, lost={"elm": "release"}, parts={"ash": noted}))
    order, tally = federation.order("score"), federation.order("score").tally
    given = {name: federation.site(name).answer("release", federation.order("release")) for name in SITES[:3]}
    guards = [given[name].guards[0] for name in ("beech", "cedar")]
    seen = unmask_alone(answers[0].counts, given["ash"].seed, guards, tally.together, order.bits)
    counts = federation.houses["ash"].memory["fold-counts"][0].sum(axis=0)
    told = modulo(tally.told(counts, "ash")[tally.together :], order.bits)
    assert len(told)
    assert not np.any(np.all(seen == told, axis=1))
