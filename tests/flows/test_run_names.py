"""What a run is called: by the study that somebody asked for, and by what is known once it has begun."""

from __future__ import annotations

import pytest
from prefect import flow, runtime
from prefect.client.orchestration import get_client

from spinney.base import Settings
from spinney.flows.run_names import beginning, rename_run

pytestmark = pytest.mark.usefixtures("prefect_server")


class Asked(Settings):
    study: str | None = None


@flow(flow_run_name=beginning)
def begun(run: Asked = Asked()) -> str:  # noqa: ARG001, B008
    return runtime.flow_run.name


@pytest.mark.parametrize(
    ("asked", "name"), [(Asked(study="wood"), "wood, beginning"), (Asked(), "the study, beginning")]
)
def test_a_run_begins_under_the_name_of_its_study(asked: Asked, name: str):
    assert begun(asked) == name


def test_a_run_is_called_by_what_is_known_by_now():
    @flow(flow_run_name=beginning)
    def night(run: Asked) -> str:  # noqa: ARG001
        rename_run("wood", "round 7", "ash")
        return str(runtime.flow_run.id)

    begun = night(Asked(study="wood"))
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(begun).name == "wood, round 7, ash"
