"""Who is like whom: the sites of a round on a map, in the coordinator's report and in every site's."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from spinney.reports import svg as svg
from spinney.reports.html import bullets, figure
from spinney.rows.plane import SiteMap
from spinney.study.study import Study


def map_figure(drawn: SiteMap, study: Study, home: str = "") -> Element:
    """The map with its clusters in words; `home` is the site that looks at it."""
    words = [
        f"Cluster {svg.cluster_letter(number)}: {', '.join(sorted(members))}"
        for number, members in enumerate(drawn.groups)
    ]
    if len(words) == 1:
        words = [f"One cluster, all learn together: {', '.join(drawn.sites)}"]
    alt = f"Map of {len(drawn)} sites by their characteristic vectors. {'. '.join(words)}"
    kind = getattr(study.algorithm, "distance", "euclidean")
    share = "all" if drawn.shown >= 0.995 else f"{drawn.shown:.0%}"
    approximate = "" if share == "all" else ", so distances are approximate"
    near = f"Near means alike: {kind} distance of the characteristic vectors, rounded to 0.01."
    caption = f"{near} Two dimensions show {share} of the spread{approximate}."
    return figure(svg.draw_map(alt, drawn.place_of, drawn.groups, home), caption, bullets(words), alone=True)
