"""What every flow has in common: it starts quickly, and nobody looks through its imports for garbage."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.places import ROOT

TABLES = {"pandas", "duckdb", "pint", "lark", "scipy", "prefect"}
MODELS = {"sklearn", "great_expectations", "mlflow"}


@pytest.mark.parametrize(
    ("module", "heavy"),
    [("spinney.configuration.site", TABLES | MODELS), ("spinney.flows.site_round", MODELS)],
    ids=["read", "serve"],
)
def test_whoever_only_reads_site_yaml_or_serves_flows_does_not_wait_for_what_a_night_needs(
    module: str, heavy: set[str]
) -> None:
    code = f"import sys, {module}\nprint(sorted({heavy!r} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout == "[]\n"


def test_what_imports_make_is_not_looked_through_for_garbage_again_and_again() -> None:
    code = "import gc, spinney.flows.site_round\nprint(gc.get_stats()[2]['collections'])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout == "0\n"
