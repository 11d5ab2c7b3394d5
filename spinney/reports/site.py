"""A site's report of one night: what was decided and why, how good it is, where it comes from, what left the house."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from spinney.choice.curves import Curve
from spinney.choice.outcome import Outcome, OutOfBag
from spinney.reports import svg as svg
from spinney.reports.answers import answers_list, night_answers
from spinney.reports.data import attrition_section, letters_section, quality_section
from spinney.reports.facts import NightFacts
from spinney.reports.html import bullets, el, figure, moment, page, section, table, tiles
from spinney.reports.map import map_figure
from spinney.reports.words import (
    LOWER_IS_BETTER,
    METRICS,
    candidate,
    decision_words,
    metric,
    night_figures,
    odds_rows,
    over_local,
    signed,
    told,
)
from spinney.rows.plane import SiteMap

NO_PATIENT = "Aggregates only: no point, bin or group on this page rests on fewer than five patients."


def site_page(facts: NightFacts) -> str:
    """The whole page."""
    which = f"round {facts.round}" if facts.round else "no round"
    where = f"{facts.study.name} · {which} · {moment(facts.at)}"
    warn = facts.outcome is None or facts.outcome.decision.question is not None
    lead = el("p", " ".join(decision_words(facts)), class_="lead warn" if warn else "lead")
    answers = answers_list(night_answers(facts))
    footer = el("footer", el("p", f"{NO_PATIENT} Study digest {facts.study.digest[:16]}."))
    title = f"The night at {facts.site}"
    return page(
        title, el("p", where, class_="where"), answers, lead, tiles(night_figures(facts)), *_sections(facts), footer
    )


def _sections(facts: NightFacts) -> Iterator[Element]:
    if facts.outcome is not None:
        yield from _notes(facts.outcome)
        yield from _measured(facts.outcome)
        if facts.outcome.credit:
            yield _credit(facts, facts.outcome)
        yield from _odds(facts.outcome)
    yield from _in_use(facts)
    yield from _place(facts)
    flow = attrition_section(facts)
    if flow is not None:
        yield flow
    yield quality_section(facts)
    yield letters_section(facts)


def _notes(outcome: Outcome) -> Iterator[Element]:
    words = [*filter(None, [outcome.decision.question]), *outcome.decision.notes]
    if words:
        yield section("To look at", bullets([word[:1].upper() + word[1:] for word in words]))


# ---------------------------------------------------------------------------------------------------------------
# How good it is


def _measured(outcome: Outcome) -> Iterator[Element]:
    if not outcome.figures:
        yield section("How good it is", *_out_of_bag(outcome.out_of_bag))
        return
    yield section(
        "Local against federated",
        el("p", "Measured on test patients that no choice has seen; the line is the 95 % interval over patients."),
        *([el("p", f"Chosen by {outcome.decision.judged_by}.")] if outcome.decision.judged_by else []),
        el("div", *_comparisons(outcome), class_="figures"),
        _every_figure(outcome),
    )
    yield section("Curves", el("div", *_curves(outcome), class_="figures"), _points(outcome.curves))
    yield from _newest(outcome)
    yield from _subgroups(outcome)


def _out_of_bag(found: OutOfBag | None) -> Iterator[Element]:
    """What can be said without test patients."""
    if found is None:
        yield el("p", "There are too few test patients for figures and curves; the model was chosen by the default.")
        return
    yield el(
        "p",
        "There are too few test patients for figures. These are out of bag, on the patients who train: no own tree "
        "judges a patient that it was grown on, but the model was chosen by these votes.",
    )
    names = [name for name in METRICS if name in found.figures["chosen"]]
    rows = [
        [
            metric(name),
            *(told(found.figures[one][name]) for one in ("local", "chosen")),
            told(found.gain[name], 3, "+") if name in found.gain else "",
        ]
        for name in names
    ]
    yield table(["Figure", candidate("local"), candidate("chosen"), "Gain"], rows, "Figures out of bag")


def _side_by_side(outcome: Outcome) -> dict[str, str]:
    """Candidates to draw, with their names: the chosen one first, and not a second time under its own name."""
    others = [name for name in ("local", *outcome.curves) if name not in ("chosen", outcome.decision.name)]
    return {"chosen": f"{candidate(outcome.decision.name)}, chosen", **{name: candidate(name) for name in others}}


def _comparisons(outcome: Outcome) -> Iterator[Element]:
    for name in ("auroc", "auprc", "brier"):
        rows = {words: outcome.compared[label][name] for label, words in _side_by_side(outcome).items()}
        low, high = svg.scale([value for one in rows.values() for value in (one.low, one.high)])
        better = "lower is better" if name in LOWER_IS_BETTER else "higher is better"
        alt = f"{metric(name)}, {better}: " + "; ".join(f"{label} {told(one)}" for label, one in rows.items())
        gain = outcome.gain.get(name)
        caption = f"{metric(name)}, {better}." + (f" {over_local(name, gain)}." if gain else "")
        yield figure(svg.draw_intervals(alt, rows, low, high), caption)


def _every_figure(outcome: Outcome) -> Element:
    names = [name for name in METRICS if any(name in one for one in outcome.compared.values())]
    rows = [
        [candidate(label), *(told(one[name]) if name in one else "" for name in names)]
        for label, one in outcome.compared.items()
    ]
    shown = table(["Model", *map(metric, names)], rows, "Figures of every model on test patients")
    threshold = f"A patient counts as called from a probability of {outcome.decision.threshold:.2f} on."
    return el("details", el("summary", "All figures as a table"), shown, el("p", threshold))


def _newest(outcome: Outcome) -> Iterator[Element]:
    newest = outcome.newest
    if newest is None:
        return
    if not newest.share:
        yield section("The newest patients", el("p", f"No newest index events were kept aside: {newest.note}."))
        return
    aside = f"The newest {newest.share:.0%} of the index events were kept aside"
    words = f"{aside}; their patients are in no other part but test."
    if not newest.figures:
        yield section("The newest patients", el("p", f"{words} {newest.note[:1].upper()}{newest.note[1:]}."))
        return
    rows = [[metric(name), told(figure), told(outcome.figures.get(name))] for name, figure in newest.figures.items()]
    shown = table(["Figure", "Newest index events", "Random test patients"], rows, "Figures on the newest index events")
    yield section("The newest patients", el("p", words), shown)


def _subgroups(outcome: Outcome) -> Iterator[Element]:
    known = {one.name: one for one in outcome.subgroups if one.figures}
    small = [one.name for one in outcome.subgroups if not one.figures]
    if not outcome.subgroups:
        return
    parts: list[Element] = []
    if known:
        spans = {name: one.figures["auroc"] for name, one in known.items()}
        low, high = svg.scale([value for one in spans.values() for value in (one.low, one.high)])
        alt = "AUROC by group of patients: " + "; ".join(f"{name} {told(one)}" for name, one in spans.items())
        parts.append(
            figure(svg.draw_intervals(alt, spans, low, high), "AUROC of the chosen model, by group.", alone=True)
        )
        rows = [
            [name, f"{one.patients:,}", told(one.figures["auroc"]), f"{one.predicted:.0%}", f"{one.observed:.0%}"]
            for name, one in known.items()
        ]
        head = ["Group", "Patients (rounded)", "AUROC", "Predicted", "Observed"]
        parts.append(table(head, rows, "Groups of test patients", (1, 2, 3, 4)))
    if small:
        parts.append(el("p", f"Too few test patients to tell: {', '.join(small)}."))
    yield section("Groups of patients", *parts)


def _curves(outcome: Outcome) -> Iterator[Element]:
    drawn = {words: outcome.curves[name] for name, words in _side_by_side(outcome).items() if name in outcome.curves}
    known = {words: one for words, one in drawn.items() if one.recall}
    if not known:
        yield el("p", "There are too few test patients for curves.")
        return
    names = ", ".join(known)
    base = next(iter(known.values())).precision[-1]
    roc = {name: [(0.0, 0.0), *zip(one.alarms, one.recall, strict=True)] for name, one in known.items()}
    yield figure(
        svg.draw_curves(f"ROC curves of {names}", "false alarms", "events found", roc, [(0, 0), (1, 1)]),
        "ROC: the share of events found against the share of false alarms. The fine dots are chance.",
    )
    recall = {name: list(zip(one.recall, one.precision, strict=True)) for name, one in known.items()}
    yield figure(
        svg.draw_curves(
            f"Precision-recall curves of {names}",
            "events found",
            "alarms that are right",
            recall,
            [(0, base), (1, base)],
        ),
        "Precision and recall: how many alarms are right. The fine dots are the share of events.",
    )
    bins = {name: [(bin.predicted, bin.observed) for bin in one.bins] for name, one in known.items()}
    yield figure(
        svg.draw_curves(f"Calibration curves of {names}", "predicted", "observed", bins, [(0, 0), (1, 1)], marked=True),
        "Calibration: what was predicted and what happened, in groups of patients. The fine dots are perfect.",
    )


def _points(curves: Mapping[str, Curve]) -> Element:
    rows = [
        [candidate(name), f"{alarms:.2f}", f"{recall:.2f}", f"{precision:.2f}"]
        for name, one in curves.items()
        for alarms, recall, precision in zip(one.alarms, one.recall, one.precision, strict=True)
    ]
    head = ["Model", "False alarms", "Events found", "Alarms that are right"]
    return el(
        "details",
        el("summary", "Points of the curves as a table"),
        table(head, rows, "Points of the curves", (1, 2, 3)),
    )


# ---------------------------------------------------------------------------------------------------------------
# Where it comes from, and how it does


def _credit(facts: NightFacts, outcome: Outcome) -> Element:
    by_weight = sorted(outcome.credit.items(), key=lambda one: (-one[1]["weight"], one[0]))
    trees = list(outcome.model.owners_)
    rows = {
        site: (one["weight"], f"{one['weight']:.0%} of the vote, {trees.count(site)} trees, {signed(one['gain'])}")
        for site, one in by_weight
    }
    alt = "Share of the vote by site: " + "; ".join(f"{site} {one['weight']:.0%}" for site, one in by_weight)
    caption = "The last number is the AUROC that the vote would lose here without that site's trees."
    return section("Where the useful trees come from", figure(svg.bars(alt, rows, facts.site), caption, alone=True))


def _odds(outcome: Outcome) -> Iterator[Element]:
    rows, part = odds_rows(outcome), outcome.model.linear_
    if not rows or part is None:
        return
    whose = "all hospitals" if part.common else "this hospital"
    words = f"Fitted on the patients of {whose}, all other variables alike; a ratio says nothing about causes."
    head = [*rows[0]]
    shown = table(head, [[*one.values()] for one in rows], "Odds ratios of the logistic regression", (1, 2))
    yield section("What the logistic regression says", el("p", words), shown)


def _in_use(facts: NightFacts) -> Iterator[Element]:
    watch = facts.watch
    if watch is None:
        return
    known = f"{watch.known:,} can be held against what happened, {watch.waiting:,} wait for their outcome"
    parts: list[Element] = [el("p", f"Predictions of version {watch.version}: {known}.")]
    if watch.alerts:
        parts.append(el("p", "A round with new data is wished: " + "; ".join(watch.alerts) + ".", class_="lead warn"))
    if watch.windows:
        labels = [str(one.last) for one in watch.windows]
        alt = "AUROC over time: " + "; ".join(f"until {one.last} {told(one.auroc)}" for one in watch.windows)
        drawn = svg.over_time(alt, labels, [one.auroc for one in watch.windows], watch.promise)
        parts.append(figure(drawn, "AUROC on patients whose outcome is known by now, oldest to newest.", alone=True))
        rows = [
            [
                f"{one.first} to {one.last}",
                f"{one.rows:,}",
                told(one.auroc),
                f"{one.predicted:.0%}",
                f"{one.observed:.0%}",
            ]
            for one in watch.windows
        ]
        head = ["Index events", "Rows", "AUROC", "Predicted", "Observed"]
        parts.append(table(head, rows, "The model in use over time", (1, 2, 3, 4)))
    if watch.drift is not None and watch.drift.warnings:
        parts += [el("h3", "Patients scored now, against those it learned from"), bullets(watch.drift.warnings)]
    yield section("In use", *parts)


def _place(facts: NightFacts) -> Iterator[Element]:
    """Where the site lies among the others, with whom it learns, and its own vector; other vectors nobody tells it."""
    drawn = facts.outcome.map if facts.outcome is not None else SiteMap()
    if not (facts.vector or facts.peers or drawn.sites):
        return
    together = f"The coordinator put {facts.site} together with {', '.join(facts.peers)}." if facts.peers else ""
    words = "Other sites' vectors are known to the coordinator only"
    words += ", which has drawn this map." if drawn.sites else ", whose report has the map of all sites."
    parts: list[Element] = [el("p", f"{together} {words}".strip())]
    if drawn.sites:
        parts.append(map_figure(drawn, facts.study, facts.site))
    if facts.vector:
        rows = [[name, f"{value:.3f}" if value == value else "not told"] for name, value in facts.vector.items()]
        shown = table(["Variable", "Mean on the study's scale, or share"], rows, "Characteristic vector", (1,))
        parts.append(el("details", el("summary", f"What {facts.site} told about itself: {len(rows)} numbers"), shown))
    yield section("Place among the sites", *parts)
