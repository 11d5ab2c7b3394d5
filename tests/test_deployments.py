"""What deployments/ holds can be read, is complete, and opens nothing to the outside."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from spinney.configuration.house import CoordinatorSettings, read_coordinator
from spinney.configuration.site import AnySource, SiteSettings, read_site
from spinney.connectors.fhir.server import FhirServer
from spinney.connectors.fhir.smart import AnyAuth
from tests.places import ROOT

DEPLOYMENTS = ROOT / "deployments"
UNITS = sorted((DEPLOYMENTS / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOYMENTS / "container/compose.yaml").read_text())


EXAMPLES = DEPLOYMENTS / "examples"
FURTHER = {f"scores.fhir.{name}" for name in FhirServer.model_fields}  # the example of a source has them


def example(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / file).read_text())
    return found


def planned(role: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((DEPLOYMENTS / f"{role}.yaml").read_text())["deployments"]
    return found


@pytest.mark.parametrize("role", ["site", "coordinator"])
def test_every_deployment_runs_alone_and_keeps_the_next_one_waiting(role: str):
    assert {str(one["concurrency_limit"]) for one in planned(role)} == {
        str({"limit": 1, "collision_strategy": "ENQUEUE"})
    }
    assert all("{{ tag }}" in one["tags"] for one in planned(role))


@pytest.mark.parametrize("words", [one for role in ("site", "coordinator") for one in planned(role)])
def test_every_entry_point_is_a_flow_that_takes_these_parameters(words: dict[str, Any]):
    from prefect.flows import load_flow_from_entrypoint

    flow = load_flow_from_entrypoint(words["entrypoint"])
    ((name, fields),) = words["parameters"].items()
    assert (
        fields.keys()
        <= flow.parameters.model_dump()["definitions"][flow.parameters.properties[name]["$ref"].rpartition("/")[2]][
            "properties"
        ].keys()
    )


def test_every_flow_of_the_package_has_a_deployment():
    flows = {path.stem for role in ("site", "coordinator") for path in (ROOT / "flows").glob(f"{role}_*.py")}
    assert {one["entrypoint"].split(".")[2] for role in ("site", "coordinator") for one in planned(role)} == flows


@pytest.mark.parametrize(
    ("file", "read", "settings"),
    [("site.yaml", read_site, SiteSettings), ("coordinator.yaml", read_coordinator, CoordinatorSettings)],
)
def test_the_examples_are_valid_and_show_every_setting(file: str, read: Any, settings: type[BaseModel]):
    read(EXAMPLES / file)
    assert missing(settings, [example(file)]) == set()


def test_the_example_sources_are_valid_and_show_every_setting_of_every_kind():
    sources = example("sources.yaml").values()
    for one in sources:
        SiteSettings.model_validate({"name": "north", "source": one})
    kinds = {kind.model_fields["kind"].default: kind for kind in get_args(get_args(AnySource)[0])}
    logins = {get_args(kind.model_fields["kind"].annotation)[0]: kind for kind in get_args(get_args(AnyAuth)[0])}
    for name, kind in kinds.items():
        assert missing(kind, [one for one in sources if one["kind"] == name]) == set()
    for name, kind in logins.items():
        assert missing(kind, [one["auth"] for one in sources if one.get("auth", {}).get("kind") == name]) == set()


def missing(settings: type[BaseModel], shown: list[dict[str, Any]]) -> set[str]:
    """Settings that are in none of the examples, also of sections; of what may be of several kinds, one is enough."""
    found = set()
    for name, field in settings.model_fields.items():
        key = field.alias or name
        values = [one[key] for one in shown if key in one]
        sections = [one for one in (field.annotation, *get_args(field.annotation)) if is_settings(one)]
        if not values:
            found.add(key)
        elif len(sections) == 1 and values != [None]:
            found |= {f"{key}.{inner}" for inner in missing(sections[0], values)}
    return found - FURTHER


def is_settings(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def test_the_example_environment_has_every_variable_that_the_examples_name():
    text = (EXAMPLES / "house.env").read_text()
    known = {line.partition("=")[0] for line in text.splitlines() if line and not line.startswith("#")}
    for file in ("site.yaml", "sources.yaml", "coordinator.yaml"):
        assert named_variables(example(file)) - {""} <= known


def named_variables(settings: Any, inside_secrets: bool = False) -> set[str]:
    if isinstance(settings, list):
        return {name for one in settings for name in named_variables(one)}
    if isinstance(settings, dict):
        found: set[str] = set()
        for key, value in settings.items():
            if isinstance(value, str) and (inside_secrets or str(key).endswith("_env")):
                found.add(value)
            found |= named_variables(value, key == "secrets")
        return found
    return set()


def test_containers_open_their_ports_on_this_machine_only():
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_containers_see_no_folder_of_the_machine_but_their_own():
    mounts = [mount for service in COMPOSE["services"].values() for mount in service.get("volumes", [])]
    sources = {mount.partition(":")[0] for mount in mounts}
    assert sources == {*COMPOSE["volumes"], "./house"}


def test_only_the_worker_is_handed_the_secrets_of_the_house():
    secrets = named_variables([example(file) for file in ("site.yaml", "sources.yaml", "coordinator.yaml")]) - {""}
    handed = {name for name, service in COMPOSE["services"].items() if "env_file" in service}
    assert handed == {"worker"}
    for name, service in COMPOSE["services"].items():
        told = {*service.get("environment", {})} | set(re.findall(r"\$\{([A-Z_]+)", str(service)))
        assert not told & secrets, name
    assert "environment" not in COMPOSE["services"]["mlflow"]


def test_the_prefect_server_asks_for_a_login_and_the_worker_has_it():
    services = COMPOSE["services"]
    asked = services["prefect"]["environment"]["PREFECT_SERVER_API_AUTH_STRING"]
    assert (
        services["worker"]["environment"]["PREFECT_API_AUTH_STRING"] == asked == "${PREFECT_SERVER_API_AUTH_STRING:?}"
    )


def test_the_unit_of_the_prefect_server_reads_none_of_the_house_s_secrets():
    read = {unit.stem: re.findall(r"^EnvironmentFile=(\S+)", unit.read_text(), re.MULTILINE) for unit in UNITS}
    assert read.pop("spinney-prefect") == ["/etc/spinney/prefect.env"]
    assert {*map(tuple, read.values())} == {("/etc/spinney/house.env",)}
    secrets = named_variables([example(file) for file in ("site.yaml", "sources.yaml", "coordinator.yaml")])
    assert not {line.partition("=")[0] for line in (EXAMPLES / "prefect.env").read_text().splitlines()} & (
        secrets - {""}
    )


@pytest.mark.parametrize("file", ["container/Containerfile", "examples/house.env", "examples/prefect.env"])
def test_servers_and_clients_of_a_house_tell_their_makers_nothing(file: str):
    lines = (DEPLOYMENTS / file).read_text().replace("ENV ", "").splitlines()
    said = dict(line.strip(" \\").split("=", 1) for line in lines if re.match(r" *[A-Z_]+=", line))
    asked = (
        "from mlflow.telemetry.utils import _IS_IN_CI_ENV_OR_TESTING, is_telemetry_disabled\n"
        "from prefect._internal.analytics.enabled import is_telemetry_enabled\n"
        "from prefect.settings import get_current_settings\n"
        "assert not _IS_IN_CI_ENV_OR_TESTING  # where they would be silent anyway\n"
        "print(is_telemetry_disabled(), is_telemetry_enabled(), get_current_settings().server.analytics_enabled)"
    )
    environment = {name: said[name] for name in said if "TRACK" in name or "TELEMETRY" in name or "ANALYTICS" in name}
    answer = subprocess.run(
        [sys.executable, "-c", asked], env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True
    )
    assert answer.stdout.split() == ["True", "False", "False"], answer.stderr


def test_the_prefect_container_unpacks_its_pages_into_its_volume_because_all_else_is_read_only():
    server = COMPOSE["services"]["prefect"]
    (volume,) = (mount.partition(":")[2] for mount in server["volumes"])
    assert server["read_only"]
    assert Path(server["environment"]["PREFECT_SERVER_UI_STATIC_DIRECTORY"]).is_relative_to(volume)


def test_no_password_is_written_down():
    database = COMPOSE["services"]["database"]["environment"]["POSTGRES_PASSWORD"]
    assert database == "${POSTGRES_PASSWORD:?}"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_start_again_and_are_understood_by_systemd(unit: Path, tmp_path: Path):
    assert "\nRestart=always\n" in unit.read_text()
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    for one in UNITS:
        lines = one.read_text().splitlines()
        here = ["ExecStart=/bin/true" if line.startswith("ExecStart=") else line for line in lines]
        (tmp_path / one.name).write_text("\n".join(here))
    answer = subprocess.run(["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_wheel_has_the_deployments():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["spinney"]
    assert (ROOT / "spinney" / "deployments").resolve() == DEPLOYMENTS
