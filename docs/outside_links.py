"""MkDocs hook: a link to a file outside docs/ has no page in the site, so its words stay and the file is named.

On a code host these links work, and `docs/check_links.py` checks that they lead somewhere.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page."""
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if target.startswith("docs/"):
            return link[0]
        return f"{link[1]} (`{target}`)" if target not in link[1] else f"`{target}`"

    return LINK.sub(named, markdown)
