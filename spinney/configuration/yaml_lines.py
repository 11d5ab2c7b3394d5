"""YAML for files that people sign: every value knows its line, and nothing can mean two things.

Stricter than PyYAML's safe loader: no tags, no aliases, no key twice. Only true and false are yes-or-no values, and a
number has no leading zero, so that `no`, `12:30`, `2024-01-31` and `007` stay the text that somebody wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

Place = tuple[str | int, ...]

_BOOL = re.compile(r"^(?:true|True|false|False)$")
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"^[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[1-9][0-9]*[eE][-+]?[0-9]+)$")
_NULL = re.compile(r"^(?:null|~|)$")
PLAIN_SCALARS = (
    ("bool", _BOOL, "tTfF"),
    ("int", _INT, "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("null", _NULL, ["n", "~", ""]),
)


class _NotAllowed(yaml.MarkedYAMLError):
    """YAML, but not the part of it that a settings file may use."""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's way to leave the inherited ones out)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        mark: yaml.Mark | None = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            raise _NotAllowed(problem="aliases (*name) are not allowed; write it out", problem_mark=mark)
        if getattr(event, "tag", None) is not None:
            raise _NotAllowed(problem=f"the tag {event.tag} is not allowed", problem_mark=mark)
        return super().compose_node(parent, index)


for _name, _pattern, _first in PLAIN_SCALARS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _pattern, list(_first))


@dataclass
class YamlDocument:
    """Plain values, the line of each of them, and what is wrong with the writing as (line, words)."""

    data: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    mistakes: list[tuple[int, str]] = field(default_factory=list)


def parse(text: str) -> YamlDocument:
    """Read one YAML document. Mistakes are collected, never raised."""
    document = YamlDocument()
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            document.data = _value(node, (), loader, document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        document.mistakes.append((mark.line + 1 if mark else 1, _in_words(error)))
    except yaml.YAMLError:
        document.mistakes.append((1, "the file holds characters that YAML does not allow"))
    except RecursionError:
        document.mistakes.append((1, "the file is nested too deeply"))
    return document


def _value(node: yaml.Node, place: Place, loader: _Loader, document: YamlDocument) -> Any:
    document.lines.setdefault(place, node.start_mark.line + 1)  # a mapping's value keeps the line of its key
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*place, number), loader, document) for number, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, place, loader, document)
    return loader.construct_object(node)


def _mapping(node: yaml.MappingNode, place: Place, loader: _Loader, document: YamlDocument) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            document.mistakes.append((line, "a key must be one word"))
        elif key.value in values:
            first = document.lines[(*place, key.value)]
            document.mistakes.append((line, f"{key.value} is given twice, first on line {first}"))
        else:
            document.lines[(*place, key.value)] = line
            values[key.value] = _value(value, (*place, key.value), loader, document)
    return values


def _in_words(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "this is not YAML"
    if isinstance(error, _NotAllowed):
        return problem
    if "\\t" in problem:
        return "a tab cannot indent YAML; use spaces"
    if "mapping values are not allowed" in problem:
        return "a colon where none can be: check the indentation, or put the text in quotes"
    return f"not readable as YAML: {problem}"
