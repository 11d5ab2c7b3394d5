"""Small charts side by side as one SVG: readable without colour, named and described for who can't see them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, indent, tostring

from spinney.reports.html import el
from spinney.reports.svg import GRID, INK, PENS, QUIET, Pen, drawing, line, mark, path, words

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
BESIDE = 2  # panels in a row, at most
HEIGHT, GAP = 230.0, 20.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 10.0, 34.0, 30.0
LEGEND_LINE = 24.0
Span = tuple[float, float, float]  # a value and its interval


@dataclass(frozen=True)
class Panel:
    """One chart: a series of spans per model, over settings that stand side by side."""

    title: str
    settings: Sequence[str]
    series: Mapping[str, Sequence[Span]]

    @property
    def scale(self) -> tuple[float, float]:
        """From the lowest to the highest, with 0 and a little room."""
        values = [value for spans in self.series.values() for span in spans for value in span]
        low, high = min(0.0, *values), max(0.0, *values)
        return low - 0.04 * (high - low), high + 0.04 * (high - low)


@dataclass(frozen=True)
class Look:
    """How the panels of one picture are drawn."""

    pens: Mapping[str, Pen]
    width: float
    joined: bool  # whether a line leads from setting to setting
    form: str


def save(
    name: str,
    title: str,
    description: str,
    panels: Sequence[Panel],
    *,
    joined: bool,
    one_scale: bool = True,
    wide: float = 1.0,
    form: str = "+.2f",
) -> None:
    """Draw the panels with one legend into docs/pictures. Models have their pens in the order of their names."""
    models = [*dict.fromkeys(model for panel in panels for model in panel.series)]
    look = Look(dict(zip(models, PENS, strict=False)), 360.0 * wide, joined, form)
    beside = min(BESIDE, len(panels))
    width = beside * look.width + (beside - 1) * GAP
    legend, top = _legend(look, width)
    scales = [panel.scale for panel in panels]
    together = (min(low for low, _ in scales), max(high for _, high in scales))
    drawn = []
    for place, (panel, scale) in enumerate(zip(panels, scales, strict=True)):
        x, y = (place % beside) * (look.width + GAP), top + (place // beside) * (HEIGHT + GAP)
        parts = _drawn(panel, look, *(together if one_scale else scale))
        drawn.append(el("g", *parts, transform=f"translate({x:g} {y:g})"))
    height = top + math.ceil(len(panels) / beside) * (HEIGHT + GAP) - GAP
    paper = el("rect", width="100%", height="100%", fill="#fff")
    picture = drawing(width, height, title, el("desc", description), paper, *legend, *drawn)
    picture.set("font-family", "system-ui, sans-serif")
    picture.set("font-size", "12")
    indent(picture, " ")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.svg").write_text(_text(picture), encoding="utf-8")


def _text(picture: Element) -> str:
    return tostring(picture, encoding="unicode") + "\n"


def _legend(look: Look, width: float) -> tuple[list[Element], float]:
    """What each pen means, and where the panels may begin."""
    parts, x, y = list[Element](), 8.0, 18.0
    for model, pen in look.pens.items():
        long = 66 + 7 * len(model)
        if x + long > width and x > 8:
            x, y = 8.0, y + LEGEND_LINE
        parts += [path([(x, y), (x + 34, y)], pen)] if look.joined else []
        parts += [mark(x + 17, y, pen, None, 4.5), words(x + 42, y + 4, model)]
        x += long
    return parts, y + LEGEND_LINE


def _drawn(panel: Panel, look: Look, low: float, high: float) -> list[Element]:
    below, right = HEIGHT - BOTTOM, look.width - RIGHT
    step = (right - LEFT) / len(panel.settings)

    def level(value: float) -> float:
        return below - (below - TOP) * (value - low) / (high - low)

    parts = [words(LEFT, TOP - 14, panel.title, weight="bold")]
    for tick in _ticks(low, high):
        parts.append(line(LEFT, level(tick), right, level(tick), GRID if tick else INK))
        told = f"{tick:{look.form}}" if tick else "0"
        parts.append(words(LEFT - 6, level(tick) + 4, told, anchor="end", fill=QUIET))
    for place, setting in enumerate(panel.settings):
        parts.append(words(LEFT + step * (place + 0.5), below + 20, setting, anchor="middle", fill=QUIET))
    apart = step / (len(look.pens) + 3)  # marks of one setting stand beside each other
    for number, (model, spans) in reversed([*enumerate(panel.series.items())]):
        start = LEFT + step / 2 + (number - (len(panel.series) - 1) / 2) * apart
        spots = [(start + step * place, *(level(value) for value in span)) for place, span in enumerate(spans)]
        parts += _series(model, spots, look)
        told = (_told(model, setting, span, look.form) for setting, span in zip(panel.settings, spans, strict=True))
        parts += [mark(x, y, look.pens[model], words, 4) for (x, y, *_), words in zip(spots, told, strict=True)]
    return parts


def _series(model: str, spots: Sequence[tuple[float, ...]], look: Look) -> list[Element]:
    pen = look.pens[model]
    bars = [
        path([(x, least), (x, most)], Pen(pen.colour, None, "", 1.4)) for x, _, least, most in spots if least != most
    ]
    return [path([(x, y) for x, y, *_ in spots], pen), *bars] if look.joined else bars


def _told(model: str, setting: str, span: Span, form: str) -> str:
    value, low, high = (f"{one:{form}}" for one in span)
    return f"{model}, {setting}: {value}" + (f" ({low} to {high})" if low != high else "")


def _ticks(low: float, high: float) -> list[float]:
    step = next(one for one in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1) if (high - low) / one <= 7)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]
