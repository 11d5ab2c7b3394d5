"""What differs between two versions of a study, setting by setting, for people who approve it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def study_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Lines like `privacy.smallest_leaf: 5 -> 3`; of settings as plain data."""
    before, after = dict(_settings(old)), dict(_settings(new))
    lines = []
    for place in dict.fromkeys((*before, *after)):
        if place not in after:
            lines.append(f"{place}: {_words(before[place])} is gone")
        elif place not in before:
            lines.append(f"{place}: {_words(after[place])} is new")
        elif before[place] != after[place]:
            lines.append(f"{place}: {_words(before[place])} -> {_words(after[place])}")
    return lines


def _settings(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every single setting and its place; items of a list that have names go by them, so that order doesn't matter."""
    named = isinstance(value, list) and value and all(isinstance(one, Mapping) and "name" in one for one in value)
    if named:
        value = {one["name"]: {key: item for key, item in one.items() if key != "name"} for one in value}
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _settings(item, f"{place}.{key}" if place else str(key))
    else:
        yield place, value


def _words(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
