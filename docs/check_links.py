"""Check that every relative link in README.md and docs/**/*.md leads to a file that exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|#|//)", re.IGNORECASE)


def broken_links(root: Path) -> list[str]:
    """One line per link that leads nowhere."""
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md")]
    return [
        f"{page.relative_to(root)}: {link} does not exist"
        for page in sorted(pages)
        for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
        if not ELSEWHERE.match(link) and not (page.parent / unquote(link.partition("#")[0])).exists()
    ]


if __name__ == "__main__":
    broken = broken_links(Path(__file__).resolve().parent.parent)
    if broken:
        sys.exit("\n".join(broken))
    print("all links lead somewhere")
