"""Drawings for reports, as SVG that needs no colour: models differ in dash and mark, and names stand beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from xml.etree.ElementTree import Element

from spinney.choice.metrics import Figure
from spinney.reports.html import el

INK, QUIET, GRID = "#1b2733", "#44525f", "#d9dfe4"
WIDTH = 360


@dataclass(frozen=True)
class Pen:
    """How one model is drawn."""

    colour: str
    dash: str | None
    mark: str
    width: float = 1.8


PENS = (
    Pen("#0b5c8a", None, "disc", 2.6),
    Pen("#8a4b08", "7 4", "square"),
    Pen("#4b4b4b", "2 3", "triangle"),
    Pen("#6a2c8a", "8 3 2 3", "diamond"),
)
Points = Sequence[tuple[float, float]]
Box = tuple[float, float, float]  # height of a line of text, where it begins and where it ends
LETTER = 7.2  # width that a letter needs at most, on average
LONGEST_NAME = 22


def drawing(width: float, height: float, name: str, *children: Element | None) -> Element:
    """An SVG with an accessible name."""
    view = f"0 0 {width:.0f} {height:.0f}"
    title = el("title", name)
    return el("svg", title, *children, role="img", aria_label=name, viewBox=view, xmlns="http://www.w3.org/2000/svg")


def draw_curves(
    name: str, x: str, y: str, lines: Mapping[str, Points], guide: Points = (), marked: bool = False
) -> Element:
    """Lines in the unit square, with their names below. `guide` is what chance or perfection would draw."""
    left, top, side = 44, 10, 300
    below = top + side

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return left + side * point[0], below - side * point[1]

    parts: list[Element | None] = [*_unit_grid(left, top, side, x, y)]
    if guide:
        parts.append(path([at(point) for point in guide], Pen("#7a8893", "1 4", "", 1.5)))
    for (label, points), pen in reversed(list(zip(lines.items(), PENS, strict=False))):
        placed = [at(point) for point in points]
        parts.append(path(placed, pen))
        parts += [mark(*place, pen, label) for place in placed] if marked else []
    for row, (label, pen) in enumerate(zip(lines, PENS, strict=False)):
        level = below + 52 + 18 * row
        parts += [
            path([(left, level), (left + 34, level)], pen),
            mark(left + 17, level, pen, None) if marked else None,
        ]
        parts.append(words(left + 42, level + 4, label))
    return drawing(WIDTH, below + 52 + 18 * len(lines), name, *parts)


def draw_intervals(name: str, rows: Mapping[str, Figure], low: float, high: float, digits: int = 2) -> Element:
    """A value and its interval per row, on one scale from `low` to `high`."""
    left, right, step = 8, WIDTH - 8, 46

    def at(value: float) -> float:
        return left + (right - left) * (min(max(value, low), high) - low) / ((high - low) or 1)

    bottom = step * len(rows) + 6
    parts: list[Element | None] = []
    for tick in _ticks(low, high):
        parts.append(line(at(tick), 0, at(tick), bottom, GRID))
        parts.append(words(at(tick), bottom + 15, f"{tick:g}", anchor=_anchor(at(tick), left, right), fill=QUIET))
    for row, ((label, figure), pen) in enumerate(zip(rows.items(), cycle(PENS), strict=False)):
        level = step * row + 34
        told = f"{figure.value:.{digits}f} ({figure.low:.{digits}f} to {figure.high:.{digits}f})"
        parts.append(words(left, level - 14, label))
        parts.append(words(right, level - 14, told, anchor="end"))
        if math.isfinite(figure.low) and math.isfinite(figure.high):
            ends = (at(figure.low), level), (at(figure.high), level)
            parts.append(path(ends, Pen(pen.colour, None, "", 2)))
            parts += [line(x, level - 4, x, level + 4, pen.colour) for x, _ in ends]
        if math.isfinite(figure.value):
            parts.append(mark(at(figure.value), level, pen, f"{label}: {told}", 5))
    return drawing(WIDTH, bottom + 20, name, *parts)


def bars(name: str, rows: Mapping[str, tuple[float, str]], strong: str = "") -> Element:
    """A bar per row, from 0 to the largest; words at the right. `strong` is drawn filled, the others hatched."""
    largest = max([value for value, _ in rows.values()] or [1]) or 1
    step, parts = 38, [_hatch()]
    for row, (label, (value, told)) in enumerate(rows.items()):
        level = step * row
        fill = "#0b5c8a" if label == strong else "url(#hatch)"
        parts.append(words(4, level + 13, label, weight="bold" if label == strong else None))
        parts.append(words(WIDTH - 4, level + 13, told, anchor="end"))
        long = max((WIDTH - 8) * max(value, 0) / largest, 0.5)
        parts.append(el("rect", x=4, y=level + 18, width=float(long), height=12, fill=fill, stroke=INK))
    return drawing(WIDTH, step * len(rows) + 2, name, *parts)


def over_time(name: str, labels: Sequence[str], figures: Sequence[Figure], promise: Figure | None) -> Element:
    """Intervals side by side from the oldest to the newest, against a promise that is drawn across."""
    left, right, top, below = 36, WIDTH - 4, 24, 200
    bounds = [value for one in figures for value in (one.low, one.high)] + ([promise.value] if promise else [])
    low, high = scale(bounds)

    def level(value: float) -> float:
        return below - (below - top) * (value - low) / ((high - low) or 1)

    parts: list[Element | None] = []
    for tick in _ticks(low, high):
        parts += [line(left, level(tick), right, level(tick), GRID)]
        parts.append(words(left - 6, level(tick) + 4, f"{tick:g}", anchor="end", fill=QUIET))
    if promise is not None:
        parts.append(path([(left, level(promise.value)), (right, level(promise.value))], Pen(INK, "6 4", "", 1.5)))
        parts.append(words(right, level(promise.value) - 5, f"promised {promise.value:.2f}", anchor="end"))
    width = (right - left) / max(len(figures), 1)
    for place, (label, figure) in enumerate(zip(labels, figures, strict=True)):
        x = left + width * (place + 0.5)
        parts.append(path([(x, level(figure.low)), (x, level(figure.high))], Pen(PENS[0].colour, None, "", 2)))
        parts.append(mark(x, level(figure.value), PENS[0], f"{label}: {figure.value:.2f}", 5))
        if place in (0, len(figures) - 1):
            parts.append(words(x, below + 18, label, anchor=_anchor(x, left + 24, right - 24), fill=QUIET))
    return drawing(WIDTH, below + 24, name, *parts)


def cluster_letter(number: int) -> str:
    """What a cluster is called."""
    return chr(ord("A") + number % 26)


def draw_map(
    name: str, places: Mapping[str, tuple[float, float]], clusters: Sequence[Sequence[str]], strong: str = ""
) -> Element:
    """Sites in the plane: the mark says the cluster, the name stands beside it, that of `strong` in bold."""
    height, taken = 300, list[Box]()
    parts: list[Element | None] = [
        el("rect", x=1, y=1, width=WIDTH - 2, height=height - 2, fill="#fbfcfd", stroke="#9aa7b2")
    ]
    cluster_of = {site: number for number, members in enumerate(clusters) for site in members}
    spots = _spread(places, WIDTH - 160, height - 60, WIDTH / 2 - 30, height / 2)
    for site, (x, y) in spots.items():
        parts.append(mark(x, y, PENS[cluster_of.get(site, 0) % len(PENS)], site, 7))
        taken.append((y + 4, x - 9, x + 9))
    for site, (x, y) in spots.items():
        letter = f" ({cluster_letter(cluster_of.get(site, 0))})" if len(clusters) > 1 else ""
        label = site if len(site) <= LONGEST_NAME else f"{site[: LONGEST_NAME - 1]}…"
        start, level = _free_spot(x, y, LETTER * len(label + letter), taken, height)
        parts.append(words(start, level, label + letter, weight="bold" if site == strong else None))
    return drawing(WIDTH, height, name, *parts)


def _spread(
    places: Mapping[str, tuple[float, float]], width: float, height: float, x: float, y: float
) -> dict[str, tuple[float, float]]:
    """The same map, enlarged until it fills a box around a point."""
    axes = list(zip(*places.values(), strict=True)) or [(0.0,), (0.0,)]
    middle = [(max(axis) + min(axis)) / 2 for axis in axes]
    across, up = (max(max(axis) - min(axis), 1e-9) for axis in axes)
    larger = min(width / across, height / up)
    return {
        site: (x + (a - middle[0]) * larger, y - (b - middle[1]) * larger) for site, (a, b) in sorted(places.items())
    }


def scale(values: Sequence[float], smallest: float = 0.1) -> tuple[float, float]:
    """A round lower and upper end for these values, within 0..1."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = math.floor(min(known) * 20) / 20, math.ceil(max(known) * 20) / 20
    if high - low < smallest:
        low, high = low - smallest / 2, high + smallest / 2
    return max(0.0, low), min(1.0, max(high, low + smallest))


def _free_spot(x: float, y: float, long: float, taken: list[Box], height: float) -> tuple[float, float]:
    """Where a mark's name overlaps nothing: at its right, below or above it, or as near to that as there is room."""
    rightmost = WIDTH - 6 - long
    middle = min(max(x - long / 2, 6), rightmost)
    near = [(middle, y + 4 + offset * sign) for offset in range(18, 400, 4) for sign in (1, -1)]
    for start, level in [(x + 12, y + 4), *near]:
        free = all(abs(level - other) >= 15 or start > end or start + long < begin for other, begin, end in taken)
        if free and 6 <= start <= rightmost and 14 <= level <= height - 6:
            taken.append((level, start, start + long))
            return start, level
    return middle, y + 4


def _unit_grid(left: float, top: float, side: float, x: str, y: str) -> list[Element]:
    parts = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        across, up = left + side * tick, top + side * (1 - tick)
        parts += [line(across, top, across, top + side, GRID), line(left, up, left + side, up, GRID)]
        parts.append(words(across, top + side + 15, f"{tick:g}", anchor="middle", fill=QUIET))
        parts.append(words(left - 5, up + 4, f"{tick:g}", anchor="end", fill=QUIET))
    parts.append(words(left + side / 2, top + side + 33, x, anchor="middle"))
    upright = words(12, top + side / 2, y, anchor="middle")
    upright.set("transform", f"rotate(-90 12 {top + side / 2:g})")
    return [*parts, upright]


def _ticks(low: float, high: float) -> list[float]:
    step = next(one for one in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1) if (high - low) / one <= 6)
    first = math.ceil(round(low / step, 6))
    return [round(number * step, 4) for number in range(first, math.floor(round(high / step, 6)) + 1)]


def _anchor(x: float, left: float, right: float) -> str:
    return "start" if x - left < 12 else "end" if right - x < 12 else "middle"


def path(points: Points, pen: Pen) -> Element:
    """A line through points, as the pen draws."""
    way = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))
    return el("path", d=way, fill="none", stroke=pen.colour, stroke_width=float(pen.width), stroke_dasharray=pen.dash)


def mark(x: float, y: float, pen: Pen, name: str | None, r: float = 3.5) -> Element:
    """The pen's mark, with a name for who points at it."""
    title = el("title", name) if name else None
    if pen.mark == "disc":
        return el("circle", title, cx=float(x), cy=float(y), r=float(r), fill=pen.colour)
    corners: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "triangle": [(0, -1.3), (1.2, 1), (-1.2, 1)],
        "diamond": [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
    }
    points = " ".join(f"{x + r * across:.1f},{y + r * down:.1f}" for across, down in corners[pen.mark])
    return el("polygon", title, points=points, fill="#fff", stroke=pen.colour, stroke_width=2)


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> Element:
    """A straight thin line."""
    return el("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=colour)


def words(x: float, y: float, words: str, anchor: str = "start", fill: str = INK, weight: str | None = None) -> Element:
    """Text at a point."""
    return el("text", words, x=float(x), y=float(y), text_anchor=anchor, fill=fill, font_weight=weight)


def _hatch() -> Element:
    stripe = el("path", d="M0 6L6 0", stroke="#8a4b08", stroke_width=1)
    tile = el("rect", width=6, height=6, fill="#fff")
    pattern = el("pattern", tile, stripe, id="hatch", width=6, height=6, patternUnits="userSpaceOnUse")
    return el("defs", pattern)
