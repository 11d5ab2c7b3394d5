"""What Windows refuses in names of files and folders."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')
DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
LONGEST = 200  # of 260, below a folder of somebody's own


def refused_by_windows(folder: Path) -> list[str]:
    """Names below a folder that Windows can't hold: characters, devices, twins that differ in case, long paths."""
    wrong = []
    for place, folders, files in os.walk(folder):
        names = [*folders, *files]
        times = Counter(name.lower() for name in names)
        wrong += [
            str(Path(place, name).relative_to(folder))
            for name in names
            if REFUSED.search(name)
            or DEVICE.fullmatch(name)
            or times[name.lower()] > 1
            or len(str(Path(place, name).relative_to(folder))) > LONGEST
        ]
    return wrong
