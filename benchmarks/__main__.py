"""All parts, one after another, each in a process of its own.

    python -m benchmarks --data DIR              # everything; DIR holds the public data sets that README.md names
    python -m benchmarks --quick                 # does it run, and roughly? under three minutes
    python -m benchmarks core speed --write      # some parts, and their tables into README.md

In the folder of results there is a JSON file and the printed tables per part, and `all.json` with all of them, which
`python -m benchmarks.compare` reads. A part whose data or peers are not here is named and does not stop the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import CANNOT_RUN, hardware, machine

PACKAGE = "benchmarks"
STARTS = 'if __name__ == "__main__":'
NO_PARTS = ("__main__", "compare", "harness", "rounds_process", "speed_peers")
RESULTS = Path("build/bench")
TOGETHER = "all.json"


def parts(folder: Path = Path(__file__).parent) -> list[str]:
    """Every module that can be run."""
    found = sorted(path.stem for path in folder.glob("*.py") if STARTS in path.read_text(encoding="utf-8"))
    return [name for name in found if name not in NO_PARTS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, show, and keep; 1 if a part crashed."""
    asked = _options(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    whole: dict[str, Any] = {"machine": machine(), "hardware": hardware(), "quick": asked.quick}
    measured, unable, crashed = {}, {}, {}
    began = time.monotonic()
    for number, part in enumerate(asked.parts, start=1):
        print(f"[{number}/{len(asked.parts)}] {part} ...", file=sys.stderr, flush=True)
        started = time.monotonic()
        code, reason = run(part, asked)
        if code == 0:
            measured[part] = json.loads(_json(asked.out, part).read_text(encoding="utf-8"))
            print(f"\n## {part}\n\n{_told(asked.out, part).read_text(encoding='utf-8')}", flush=True)
        else:
            (unable if code == CANNOT_RUN else crashed)[part] = reason
        took = time.monotonic() - started
        print(
            f"[{number}/{len(asked.parts)}] {part}: {reason or 'measured'}, {took:.0f} s", file=sys.stderr, flush=True
        )
    whole |= {"parts": measured, "unable": unable, "crashed": crashed}
    (asked.out / TOGETHER).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(summary(whole, time.monotonic() - began), file=sys.stderr)
    print(f"Every run of every figure is in {asked.out / TOGETHER}.", file=sys.stderr)
    return 1 if crashed else 0


def run(part: str, asked: argparse.Namespace) -> tuple[int, str]:
    """One part in a process of its own: its exit code, and why it has no result."""
    words = [sys.executable, "-m", f"{PACKAGE}.{part}", "--json", str(_json(asked.out, part))]
    words += ["--quick"] if asked.quick else []
    words += ["--write"] if asked.write else []
    words += ["--data", str(asked.data)] if asked.data else []
    _json(asked.out, part).unlink(missing_ok=True)  # an old one would pass for the new one
    last = ""
    with (
        _told(asked.out, part).open("w", encoding="utf-8") as told,
        subprocess.Popen(words, stdout=told, stderr=subprocess.PIPE, text=True, errors="replace") as process,
    ):
        for line in process.stderr or ():
            sys.stderr.write(line)
            last = line.strip() or last
    code = process.returncode
    if code == 0 and not _json(asked.out, part).exists():
        return 1, "crashed: it wrote no JSON"
    if code == CANNOT_RUN:
        return code, last
    return code, "" if code == 0 else f"crashed with {code}: {last}"


def summary(whole: Mapping[str, Any], seconds: float) -> str:
    """What was measured and what was not, part by part."""
    lines = [f"\n{len(whole['parts'])} parts measured in {seconds:.0f} s."]
    lines += [f"Not measured: {reason}" for reason in whole["unable"].values()]
    lines += [f"Not measured by {part}: {one}" for part, found in whole["parts"].items() for one in found["missing"]]
    lines += [f"{part} {reason}" for part, reason in whole["crashed"].items()]
    return "\n".join(lines)


def _json(folder: Path, part: str) -> Path:
    return folder / f"{part}.json"


def _told(folder: Path, part: str) -> Path:
    return folder / f"{part}.md"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = parts()
    parser = argparse.ArgumentParser(
        prog="benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(known)}  [default: all]")
    parser.add_argument("--data", type=Path, help="folder with public data sets")
    parser.add_argument("--quick", action="store_true", help="every part at its smallest")
    parser.add_argument("--write", action="store_true", help="replace the tables in README.md")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"folder of results  [default: {RESULTS}]")
    asked = parser.parse_args(arguments)
    if unknown := [part for part in asked.parts if part not in known]:
        parser.error(f"{', '.join(unknown)} is no part; there are {', '.join(known)}")
    if asked.write and asked.quick:
        parser.error("--write is for the whole run")
    asked.parts = asked.parts or known
    return asked


if __name__ == "__main__":
    sys.exit(main())
