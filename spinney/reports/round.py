"""The coordinator's report of one round: who took part, what it cost, who is like whom, and what sites share."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from spinney.reports import svg as svg
from spinney.reports.facts import RoundFacts, of_round, steps_in
from spinney.reports.html import el, figure, moment, page, section, size, table, tiles
from spinney.reports.map import map_figure
from spinney.reports.words import METRICS, metric, round_ended, round_figures
from spinney.rows.plane import site_map


def round_page(facts: RoundFacts) -> str:
    """The whole page."""
    where = f"{facts.study.name} · round {facts.round} · {moment(facts.at)} · as {facts.coordinator} saw it"
    lead = el("p", " ".join(round_ended(facts)), class_="lead warn" if facts.void else "lead")
    words = "Made from what the sites told the coordinator; their models and their patients are not known to it."
    footer = el("footer", el("p", f"{words} Study digest {facts.study.digest[:16]}."))
    title = f"Round {facts.round} of {facts.study.name}"
    return page(title, el("p", where, class_="where"), lead, tiles(round_figures(facts)), *_sections(facts), footer)


def _sections(facts: RoundFacts) -> Iterator[Element]:
    yield _sites(facts)
    if facts.described:
        yield _map(facts)
    yield _steps(facts)
    yield _figures(facts)


def _sites(facts: RoundFacts) -> Element:
    letters = {site: svg.cluster_letter(number) for number, members in enumerate(facts.clusters) for site in members}
    rows = []
    for site in sorted({*facts.described, *facts.absent}):
        told = facts.described.get(site)
        fate = f"left out: {facts.absent[site]}" if site in facts.absent else "took part"
        features = f"{int(told.present.sum())} of {len(told.present)}" if told else ""
        rows.append([site, fate, letters.get(site, ""), f"{told.rows:,}" if told else "", features])
    head = ["Site", "Part", "Cluster", "Training rows (rounded)", "Columns"]
    return section("Who took part, and who did not", table(head, rows, "Sites of the round", (3, 4)))


def _map(facts: RoundFacts) -> Element:
    vectors = {site: description.vector for site, description in facts.described.items()}
    drawn = site_map(vectors, facts.clusters, facts.study.algorithm)
    return section("Who is like whom", map_figure(drawn, facts.study))


def _steps(facts: RoundFacts) -> Element:
    steps = steps_in(of_round(facts.lines, facts.study.name, facts.round))
    if not steps:
        return section("What it cost", el("p", "The audit log has no step of this round."))
    rows = [[one.name, f"{one.answers}", f"{one.seconds:.1f}", size(one.bytes)] for one in steps]
    drawn = {f"{one.name}": (one.seconds, f"{one.seconds:.1f} s, {size(one.bytes)}") for one in steps}
    alt = "Seconds per step: " + "; ".join(f"{one.name} {one.seconds:.1f}" for one in steps)
    caption = "Seconds from the question to the last answer that counted."
    shown = table(["Step", "Answers", "Seconds", "Bytes"], rows, "Steps of the round", (1, 2, 3))
    return section("What it cost", figure(svg.bars(alt, drawn), caption, alone=True), shown)


def _figures(facts: RoundFacts) -> Element:
    if not facts.figures:
        share = facts.study.privacy.share_metrics
        words = "No site has told its figures." if share else "This study's sites keep their figures to themselves."
        return section("What the sites share", el("p", words))
    names = [name for name in METRICS if any(name in one for one in facts.figures.values())]
    rows = [
        [site, *(f"{one[name]:.2f}" if name in one else "" for name in names)]
        for site, one in sorted(facts.figures.items())
    ]
    numbers = range(1, len(names) + 1)
    words = "Figures of each site's chosen model on its own test patients, rounded by the site."
    return section(
        "What the sites share",
        el("p", words),
        table(["Site", *map(metric, names)], rows, "Figures that the sites share", tuple(numbers)),
    )
