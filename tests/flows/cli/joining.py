"""A coordinator, a site that it invites, and the commands of both."""

from __future__ import annotations

import shlex
from pathlib import Path

from click.testing import CliRunner, Result

from spinney.flows.cli import main
from spinney.house.approvals import Approvals

STUDY = """\
name: wood
features:
  - {name: age, kind: continuous, range: [0, 120]}
label: {name: died}
"""


def spinney(line: str, answer: str = "y\n") -> Result:
    return CliRunner().invoke(main, shlex.split(line), input=answer)


def done(line: str) -> str:
    result = spinney(line)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.stdout


def refused(line: str) -> str:
    result = spinney(line)
    assert result.exit_code == 2, f"{line}\n{result.output}"
    return result.stderr


def found_wood(folder: Path) -> Path:
    """A coordinator, and a site that is invited."""
    for house in ("exchange", "oak", "ash"):
        (folder / house).mkdir()
    (folder / "study.yaml").write_text(STUDY)
    done("coordinator init -o oak/coordinator.yaml --name oak --exchange ../exchange --study study.yaml")
    done("coordinator invite ash --coordinator oak/coordinator.yaml")
    done("site init --name ash --kind files --path fhir --exchange ../exchange -o ash/site.yaml")
    return folder


def joined(wood: Path) -> Approvals:
    done("site join invite-ash.json --site ash/site.yaml")
    done("site approve wood --site ash/site.yaml --by officer")
    done("coordinator admit joining.json --coordinator oak/coordinator.yaml")
    done("site approve-roster --site ash/site.yaml")
    return Approvals(wood / "ash/home", "wood")
