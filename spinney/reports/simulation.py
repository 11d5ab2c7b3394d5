"""The page of a simulation, would it help us? Every site's verdict, its gain as a picture, and what else was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, tostring

from spinney.choice.metrics import Figure
from spinney.choice.verdict import MARKS
from spinney.reports import svg
from spinney.reports.html import bullets, el, figure, page, section, table


def simulation_page(report: Mapping[str, Any]) -> str:
    """The whole page, from the same data as `--json`."""
    title = f"{report['study']}: would {report['algorithm']} help?"
    splits = (
        f"{report['repeats']} splits of the same patients" if report["repeats"] > 1 else "one split of the patients"
    )
    where = f"{len(report['sites'])} sites · {splits} · study {report['study_digest'][:16]}"
    said = [
        f"{MARKS[site['verdict']['word']]} {name}: {site['verdict']['sentence']}."
        for name, site in report["sites"].items()
    ]
    words = (
        "All sites were in one process and nothing was sent. Choices were made on training rows, figures on test rows."
    )
    return page(title, el("p", where, class_="where"), bullets(said), *_sections(report), el("footer", el("p", words)))


def _sections(report: Mapping[str, Any]) -> Iterator[Element]:
    yield _gains(report["sites"])
    if "newcomers" in report:
        found = {name: Figure(**one) for name, one in report["newcomers"].items()}
        low, high = svg.scale([bound for one in found.values() for bound in (one.low, one.high)])
        drawn = svg.draw_intervals(_alt("AUROC of the others' trees", found), found, low, high)
        caption = "AUROC on all rows of a site, of what the others make without it, uncalibrated."
        yield section("A hospital that brings nothing", figure(drawn, caption, alone=True))
    for key, head, caption in (
        ("by_sites", "With fewer sites", "Gain over local by the number of sites: mean, least and most over groups."),
        ("by_trees", "With fewer and more trees", "Gain over local by trees of each site: mean, least and most."),
    ):
        if key in report:
            yield section(head, _curves(report[key], caption))


def _gains(sites: Mapping[str, Any]) -> Element:
    drawn = _drawn_gains(sites)
    caption = "Gain in AUROC over the site's own forest, with an interval over patients and splits."
    names = list(dict.fromkeys(name for site in sites.values() for name in site["auroc"]))
    rows = [
        [name, f"{site['rows']:,}", f"{site['positives']:,}", *(_told(site["auroc"].get(one)) for one in names)]
        for name, site in sites.items()
    ]
    shown = table(["Site", "Rows", "Positives", *names], rows, "AUROC by site", tuple(range(1, len(names) + 3)))
    return section("What each site gains", figure(drawn, caption, alone=True), shown)


def gains_drawing(sites: Mapping[str, Any]) -> str:
    """The picture of every site's gain, as SVG."""
    return tostring(_drawn_gains(sites), encoding="unicode")


def _drawn_gains(sites: Mapping[str, Any]) -> Element:
    gains = {name: Figure(**one["gain"]["auroc"]) for name, one in sites.items() if _known(one["gain"]["auroc"])}
    bounds = [0.0, *(bound for one in gains.values() for bound in (one.low, one.high))]
    return svg.draw_intervals(_alt("Gain in AUROC", gains), gains, min(bounds), max(bounds), digits=3)


def _curves(points: Mapping[str, Any], caption: str) -> Element:
    drawings = []
    for name, found in points.items():
        rows = {str(one["size"]): Figure(one["mean"], one["least"], one["most"]) for one in found}
        bounds = [0.0, *(bound for one in rows.values() for bound in (one.low, one.high))]
        drawn = svg.draw_intervals(_alt(name, rows), rows, min(bounds), max(bounds), digits=3)
        drawings.append(figure(drawn, f"{name}. {caption}"))
    return el("div", *drawings, class_="figures")


def _alt(what: str, rows: Mapping[str, Figure]) -> str:
    return f"{what}: " + "; ".join(f"{name} {one.value:.3f}" for name, one in rows.items())


def _known(gain: Mapping[str, float | None] | None) -> bool:
    return gain is not None and gain["value"] is not None


def _told(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
