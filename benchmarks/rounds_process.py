"""Nights of a village in a process of its own: `python -m benchmarks.rounds_process FOLDER STUDY NIGHTS SITE...`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from spinney.demo.federation import Village
from spinney.flows.demo.houses import run_houses


def main(folder: str, study: str, nights: str, *sites: str) -> None:
    """Says of each night when it ended, by the machine's clock."""
    for night in range(1, int(nights) + 1):
        failed = run_houses(Village(Path(folder), study, sites), night)
        if failed:
            sys.exit(f"night {night}: {failed} houses failed")
        print(time.monotonic(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
