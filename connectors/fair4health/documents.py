"""The JSON of a document, and in which line everything in it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spinney.errors import StudyInvalid

LARGEST_FILE = 50_000_000
# A string (with a colon behind it: the name of a member), a brace, or the end of a line. Nothing is tried twice.
_TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*:)?|[{}\n]')
Place = tuple[int, dict[str, int]]


class Block(dict[str, Any]):
    """A JSON object that knows the line in which it begins, and those of its members."""

    def __init__(self, members: list[tuple[str, Any]], place: Place) -> None:
        super().__init__(members)
        self.line, self._lines = place

    def line_of(self, member: str) -> int:
        """The line of a member, or of the object if it has none of that name."""
        return self._lines.get(member, self.line)


def read_fair4health(path: Path) -> Any:
    """What stands in a file, with Blocks as objects. Raises StudyInvalid for what is no JSON."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise StudyInvalid([f"{path}: larger than {LARGEST_FILE // 1_000_000} MB, so this is no feature set"])
        text = path.read_bytes().decode("utf-8-sig")
        places = _places(text)
        return json.loads(text, object_pairs_hook=lambda members: Block(members, next(places)))
    except OSError as error:
        raise StudyInvalid([f"{path}: cannot be read ({error.strerror})"]) from None
    except (ValueError, RecursionError):
        raise StudyInvalid([f"{path}: not JSON; export the feature set from the FAIR4Health platform"]) from None


def _places(text: str) -> Iterator[Place]:
    """Where each object and its members stand, in the order in which objects end, which is how they are parsed."""
    line, begun = 1, list[Place]()
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == "\n":
            line += 1
        elif word == "{":
            begun.append((line, {}))
        elif word == "}":
            yield begun.pop()
        elif token[2] is not None:
            begun[-1][1][json.loads(token[1])] = line
            line += token[2].count("\n")


def blocks(content: Any) -> Iterator[Block]:
    """All objects, in the order in which they begin."""
    waiting = [content]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Block):
            yield one
        inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting += reversed([*inside])


def member_objects(block: Block, member: str) -> list[Block]:
    """The objects in a list."""
    found = block.get(member)
    return [one for one in found if isinstance(one, Block)] if isinstance(found, list) else []


def member_text(block: Block, member: str) -> str:
    """A member that is text, or nothing."""
    found = block.get(member)
    return found if isinstance(found, str) else ""


def shown(words: object, longest: int = 80) -> str:
    """Words from outside, fit for a terminal and for a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in str(words)[:longest]).strip()
