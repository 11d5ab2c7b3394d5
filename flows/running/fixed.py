"""What a run does is fixed by the process that serves it, whatever has become of its deployment in Prefect.

Whoever reaches Prefect's API can rewrite a deployment: another entry point, or steps before it that run any command. So
the flows of this house's deployments are noted when its owner types `serve`, and travel to the processes of runs in
their environment. What is named there goes before what the deployment says, and no step of a deployment is run.
"""

from __future__ import annotations

import json
import os
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.flows import Flow, load_flow_from_entrypoint

VARIABLE = "SPINNEY_FLOWS"
OF_PREFECT = "PREFECT__FLOW_ENTRYPOINT"  # read by the process of a run before it looks at the deployment
ASKED = "asked"


def fix_flow(deployment: UUID, entrypoint: str) -> None:
    """Let runs of a deployment, in processes that this one starts, be runs of this flow and no other."""
    os.environ[VARIABLE] = json.dumps({**_fixed(), str(deployment): entrypoint})
    os.environ[OF_PREFECT] = f"{__name__}.{ASKED}"


def flow_of(deployment: UUID | None) -> Flow[..., Any]:
    """The flow of a deployment that is served here; LookupError if it is none."""
    return load_flow_from_entrypoint(_fixed()[str(deployment)])


def __getattr__(name: str) -> Flow[..., Any]:
    """`asked`: the flow that this process was started for."""
    if name != ASKED:
        raise AttributeError(name)
    with get_client(sync_client=True) as client:
        return flow_of(client.read_flow_run(UUID(os.environ["PREFECT__FLOW_RUN_ID"])).deployment_id)


def _fixed() -> dict[str, str]:
    found: dict[str, str] = json.loads(os.environ.get(VARIABLE, "{}"))
    return found
