"""What a release is made of: a CycloneDX bill of materials with licences, and the licences as a table to read.

    uv export --frozen --no-dev --all-extras --format cyclonedx1.5 | python docs/make_bill.py dist

The same lock file gives the same bytes: the export's time and random number are left out.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

LONGEST = 60
NOT_HERE = "not installed on this machine"


def licence_of(package: str) -> str:
    """In the words of its own metadata, the clearest first."""
    try:
        said = metadata(package)
    except PackageNotFoundError:
        return NOT_HERE
    classified = [one.split("::")[-1].strip() for one in said.get_all("Classifier") or [] if one.startswith("License")]
    written = (said.get("License") or "").strip()
    short = written if len(written) <= LONGEST and "\n" not in written and written.upper() != "UNKNOWN" else ""
    return said.get("License-Expression") or short or " / ".join(classified) or "see its files"


def bill(exported: dict[str, Any]) -> dict[str, Any]:
    """The export with licences, and without what differs from one export to the next."""
    parts = [{**part, "licenses": [{"license": {"name": licence_of(part["name"])}}]} for part in others(exported)]
    kept = {name: value for name, value in exported.items() if name != "serialNumber"}
    told = {name: value for name, value in exported["metadata"].items() if name != "timestamp"}
    return {**kept, "metadata": told, "components": parts}


def others(exported: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Everything that is not the product itself."""
    own = exported["metadata"]["component"]["name"]
    return (part for part in exported["components"] if part["name"] != own)


def table(bill_of: dict[str, Any]) -> str:
    """For people: how many of which licence, then each."""
    found = [(part["name"], part["version"], part["licenses"][0]["license"]["name"]) for part in bill_of["components"]]
    counted = Counter(licence for _, _, licence in found)
    lines = [f"# Licences of the {len(found)} packages that every option together needs", ""]
    lines += [f"- {count} {licence}" for licence, count in sorted(counted.items(), key=lambda one: (-one[1], one[0]))]
    lines += ["", "| package | version | licence |", "|---|---|---|"]
    lines += [f"| {name} | {version} | {licence.replace('|', '/')} |" for name, version, licence in found]
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    made = bill(json.load(sys.stdin))
    name = f"spinney-{made['metadata']['component']['version']}"
    (folder / f"{name}.cdx.json").write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    (folder / f"{name}-licences.md").write_text(table(made), encoding="utf-8")
    print(f"{len(made['components'])} packages in {folder / name}.cdx.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
