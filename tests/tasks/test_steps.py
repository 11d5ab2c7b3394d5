"""The steps of a round as task runs that people can read, and the bar over them."""

from __future__ import annotations

import pytest
from prefect import flow
from prefect.client.orchestration import get_client

from spinney.errors import Refused
from spinney.tasks.guarded import StepFailed
from spinney.tasks.steps import Steps
from tests.servers.prefect_server import wait_until

pytestmark = pytest.mark.usefixtures("prefect")


def test_every_step_is_a_run_under_its_name_and_gives_what_its_work_gave():
    @flow(name="round-of-steps")
    def night() -> list[int]:
        steps = Steps("ash", "steps")
        done = [steps(f"score {number} trees", lambda number=number: number * 2) for number in (3, 4)]
        steps.end()
        return done

    assert night() == [6, 8]
    with get_client(sync_client=True) as client:
        names = {run.name for run in client.read_task_runs()}
    assert {"score 3 trees", "score 4 trees"} <= names


@pytest.mark.parametrize("done", [2, 9])
def test_the_bar_is_full_only_when_the_round_is_over(done: int):
    """Rounds may have more steps than usual, or fewer."""

    def bar() -> float:
        with get_client(sync_client=True) as client:
            return max((one for one in client.read_artifacts() if one.key == key), key=lambda one: one.created).data

    key = f"elm-{done}-round"
    seen: list[float] = []

    @flow(name="round-with-a-bar")
    def night() -> None:
        steps = Steps("elm", str(done))
        for _ in range(done):
            steps("grow", list)
        seen.append(wait_until(bar, 30))  # it is drawn aside
        steps.end()

    night()
    assert 0 < seen[0] < 100
    assert bar() == 100


@pytest.mark.parametrize(("error", "told"), [(Refused("too early"), Refused), (ValueError("Quibblewick"), StepFailed)])
def test_an_error_of_a_step_is_told_as_every_task_tells_it(error: Exception, told: type[Exception]):
    def fail() -> None:
        raise error

    @flow(name="round-that-fails")
    def night() -> None:
        steps = Steps("oak", "steps")
        try:
            steps("check", fail)
        finally:
            steps.end()

    with pytest.raises(told) as seen:
        night()
    assert "Quibblewick" not in str(seen.value)
