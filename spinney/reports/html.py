"""Pages made of elements, so that every text is escaped: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from xml.etree.ElementTree import Element, tostring

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b2733; background: #fff; margin: 0 auto; max-width: 72rem;
  padding: 1.5rem 1rem 3rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-bottom: 2px solid #1b2733; padding-bottom: .2rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
p, ul { max-width: 46rem; }
ul { padding-left: 1.2rem; }
.answers { list-style: none; margin: 1rem 0; padding: .6rem .9rem; border: 2px solid #1b2733; border-radius: .3rem; }
.answers li { margin: .15rem 0; }
.where { color: #44525f; margin: .2rem 0 1rem; }
.lead { font-size: 1.15rem; border-left: .3rem solid #0b5c8a; padding: .2rem 0 .2rem 1rem; margin: 1rem 0; }
.lead.warn { border-left-style: double; border-left-width: .5rem; border-color: #8a2b08; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 10.5rem), 1fr)); gap: .8rem;
  margin: 1rem 0; padding: 0; list-style: none; max-width: none; }
.tiles li { border: 1px solid #9aa7b2; border-radius: .3rem; padding: .6rem .8rem; }
.tiles b { display: block; font-size: 1.35rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.tiles b small { display: block; font-size: .85rem; font-weight: 400; }
.tiles span { color: #44525f; font-size: .9rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; break-inside: avoid; }
figure.alone { max-width: 26rem; }
figcaption { font-size: .9rem; color: #44525f; }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; }
.scroll { overflow-x: auto; margin: .5rem 0; background: linear-gradient(to right, #fff 40%, #fff0) 0 0 / 3rem 100%,
  linear-gradient(to left, #fff 40%, #fff0) 100% 0 / 3rem 100%,
  linear-gradient(to right, #0003, #0000) 0 0 / .8rem 100%, linear-gradient(to left, #0003, #0000) 100% 0 / .8rem 100%;
  background-repeat: no-repeat; background-attachment: local, local, scroll, scroll; } /* a shadow: there is more */
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #c5ced6; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #9aa7b2; }
.n { text-align: right; white-space: nowrap; }
.long { min-width: 14rem; }
.flow { list-style: none; margin: 1rem 0 .5rem; padding: 0; max-width: 46rem; }
.flow li { display: grid; grid-template-columns: 1fr 1fr; column-gap: 1.5rem; break-inside: avoid; }
.flow b, .flow span { display: block; }
.flow .left, .flow .lost { position: relative; border: 1px solid #44525f; border-radius: .3rem; padding: .3rem .7rem;
  font-variant-numeric: tabular-nums; }
.flow .left { grid-column: 1; text-align: center; }
.flow .lost { grid-column: 2; border-style: dashed; margin: .5rem 0; font-size: .92rem; }
.flow .stem { grid-column: 1; position: relative; }
.flow .stem::before { content: ""; position: absolute; left: 50%; top: 0; bottom: 0; border-left: 2px solid #44525f; }
.flow .stem::after { content: ""; position: absolute; left: 50%; right: -1.5rem; top: 50%;
  border-top: 2px solid #44525f; }
.flow .lost::before, .flow .stem + .lost + .left::before { content: ""; position: absolute;
  border: .35rem solid transparent; }
.flow .lost::before { left: -.4rem; top: calc(50% - .3rem); border-left-color: #44525f; border-right-width: 0; }
.flow .stem + .lost + .left::before { left: calc(50% - .3rem); top: -.4rem; border-top-color: #44525f;
  border-bottom-width: 0; }
.flow .parts { grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); column-gap: .8rem; row-gap: .8rem;
  margin-top: .8rem; border-top: 2px solid #44525f; padding-top: .8rem; }
.flow .parts .left { grid-column: auto; }
details { margin: .5rem 0; } summary { cursor: pointer; }
footer { margin-top: 3rem; color: #44525f; font-size: .85rem; }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  h2 { break-after: avoid; } tr, .tiles li { break-inside: avoid; } .scroll { overflow: visible; background: none; }
  .figures { grid-template-columns: repeat(3, 1fr); gap: .8rem; }
  @page { margin: 1.5cm; }
}
"""
LONG = 20  # letters from which on a column needs room
Child = Element | str | None


def el(tag: str, *children: Child, **attributes: object) -> Element:
    """An element; `class_` is class, and the `_` of other attributes is a hyphen. What is None is left out."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    made = Element(tag, {name: _text(value) for name, value in names.items() if value is not None})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif child is not None and last is None:
            made.text = (made.text or "") + child
        elif child is not None and last is not None:
            last.tail = (last.tail or "") + child
    return made


def page(title: str, *content: Child) -> str:
    """A whole page."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("title", title),
        el("style", STYLE),
    )
    html = el("html", head, el("body", el("main", el("h1", title), *content)), lang="en")
    return "<!DOCTYPE html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


def section(title: str, *content: Child) -> Element:
    name = "s-" + "".join(letter if letter.isalnum() else "-" for letter in title.lower())
    return el("section", el("h2", title, id=name), *content, aria_labelledby=name)


def table(head: Sequence[str], rows: Sequence[Sequence[Child]], name: str, numbers: Sequence[int] = ()) -> Element:
    """A table that scrolls by itself where it is wider than the page; `numbers` are the columns on the right."""

    long = {place for cells in rows for place, cell in enumerate(cells) if isinstance(cell, str) and len(cell) > LONG}

    def kind(place: int) -> str | None:
        return "n" if place in numbers else "long" if place in long else None

    def row(cells: Sequence[Child], tag: str, **more: object) -> Element:
        return el("tr", *(el(tag, cell, class_=kind(place), **more) for place, cell in enumerate(cells)))

    body = el("tbody", *(row(cells, "td") for cells in rows))
    inner = el("table", el("thead", row(head, "th", scope="col")), body, aria_label=name)
    return el("div", inner, class_="scroll", tabindex=0, role="region", aria_label=name)


def bullets(lines: Sequence[str]) -> Element:
    return el("ul", *(el("li", line) for line in lines))


def tiles(pairs: Sequence[tuple[str, str]]) -> Element:
    """Key figures: (figure, what it is). What stands in brackets behind a figure is set small."""

    def tile(told: str, words: str) -> Element:
        value, bracket, rest = told.partition(" (")
        small = el("small", f"({rest}") if bracket else None
        return el("li", el("b", value, " " if small is not None else None, small), el("span", words))

    return el("ul", *(tile(*pair) for pair in pairs), class_="tiles")


def figure(drawing: Element, caption: str, *more: Child, alone: bool = False) -> Element:
    return el("figure", drawing, el("figcaption", caption), *more, class_="alone" if alone else None)


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M %Z").strip()


def size(count: float) -> str:
    """Bytes as people say them."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _text(value: object) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
