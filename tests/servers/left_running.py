"""What is left of processes that should have ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def left_running(folder: Path) -> list[str]:
    """Processes that speak of this folder, or are in a session that was noted in it; the dead run no more."""
    noted = {path.read_text().split()[0] for path in folder.rglob("*.pid")} if folder.exists() else set()
    found = subprocess.run(["ps", "-eo", "pid,pgid,args"], capture_output=True, text=True, check=True)
    return [
        line
        for line in found.stdout.splitlines()
        if (str(folder) in line or line.split()[1] in noted)
        and str(os.getpid()) not in line.split()
        and not line.endswith("<defunct>")
    ]
