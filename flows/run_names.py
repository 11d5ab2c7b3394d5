"""What a run is called: study, house and round, never a patient. The round is known only once it has opened."""

from __future__ import annotations

from prefect import runtime
from prefect.client.orchestration import get_client


def beginning() -> str:
    """A name for a run that has just begun, from the only parameter that our flows have."""
    study = getattr(runtime.flow_run.parameters.get("run"), "study", None)
    return f"{study or 'the study'}, beginning"


def rename_run(*words: str) -> None:
    """Call this run by what is known by now."""
    with get_client(sync_client=True) as client:
        client.update_flow_run(runtime.flow_run.id, name=", ".join(words))
