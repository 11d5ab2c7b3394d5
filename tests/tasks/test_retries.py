"""What can heal is tried again, and no task leaves a trace of patients in Prefect's hands."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest
from prefect.cache_policies import NO_CACHE
from prefect.states import Failed
from prefect.tasks import Task

from spinney import tasks
from spinney.errors import CohortRejected, SourceFailed
from spinney.tasks.retries import TRANSIENT, is_transient, through_the_night


class Busy(SourceFailed):
    transient = True


EVERY_TASK = {
    f"{module.name}.{name}": found
    for module in iter_modules(tasks.__path__)
    for name, found in vars(import_module(f"spinney.tasks.{module.name}")).items()
    if isinstance(found, Task)
}


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Busy("HTTP 503"), True),
        (SourceFailed("HTTP 401"), False),
        (CohortRejected("adults", 3), False),
        (ConnectionError("reset"), False),
    ],
    ids=["busy server", "refused", "bad data", "unknown"],
)
def test_only_a_source_that_says_so_is_tried_again(error: Exception, again: bool):
    assert is_transient(None, None, Failed(data=error)) is again  # type: ignore[arg-type]


def test_tries_are_farther_and_farther_apart():
    waits = TRANSIENT["retry_delay_seconds"](TRANSIENT["retries"])
    assert waits == sorted({*waits})
    assert len(waits) == TRANSIENT["retries"]


@pytest.mark.parametrize("name", sorted(EVERY_TASK))
def test_no_task_keeps_a_result_a_cache_or_what_is_printed(name: str):
    task = EVERY_TASK[name]
    assert task.persist_result is False
    assert task.cache_policy == NO_CACHE
    assert task.log_prints is False


@pytest.mark.parametrize("name", sorted(EVERY_TASK))
def test_every_task_lets_no_library_speak_about_patients(name: str):
    """What `guards_patients` wraps; so an error leaves its kind and its place only."""
    assert hasattr(EVERY_TASK[name].fn, "__wrapped__")


def test_only_tasks_that_talk_to_a_hospital_s_servers_are_retried():
    assert {name for name, task in EVERY_TASK.items() if task.retries} == {
        "cohort.pull_cohort",
        "round.register_model",
        "scores.pull_open_rows",
        "scores.write_to_fhir",
        "scores.write_to_table",
    }


def test_a_source_is_asked_again_as_long_as_its_site_would_be_in_time():
    told = through_the_night(60)
    assert told["retry_delay_seconds"][:4] == [10, 20, 40, 80]
    assert 60 * 40 < sum(told["retry_delay_seconds"]) <= 60 * 48
    assert told["retries"] == len(told["retry_delay_seconds"])
    assert through_the_night(0.05) == {"retries": 0, "retry_delay_seconds": None}
