"""What a night came to in sentences and key figures: for the top of a report, and for people who look at a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from spinney.choice.metrics import Figure
from spinney.choice.personalise import DEFAULT_REASON, Outcome
from spinney.connectors.great_expectations.quality import RuleResult
from spinney.house.audit import Line
from spinney.reports.answers import answers_markdown, night_answers
from spinney.reports.facts import NightFacts, RoundFacts, of_round, steps_in
from spinney.reports.html import size
from spinney.rows.floors import FEWEST, few
from spinney.scoring.monitor import Watch

CANDIDATES = {
    "local": "local forest",
    "fedrf": "equal votes of all trees",
    "local linear": "local logistic regression",
    "local blend": "local forest with local logistic regression",
    "linear": "common logistic regression",
    "blend": "forest with common logistic regression",
    "bofrf": "federated forest (BOFRF)",
    "bofrf own trees": "own trees, weighed by all sites",
    "personalised": "personalised selection",
    "champion": "champion so far",
    "incumbent": "champion so far",
    "chosen": "chosen model",
}
METRICS = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "brier": "Brier score",
    "mcc": "MCC",
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
    "ppv": "PPV",
    "npv": "NPV",
    "accuracy": "Accuracy",
    "f1": "F1",
}
LOWER_IS_BETTER = frozenset({"brier"})
Rows = list[dict[str, str]]


def candidate(name: str) -> str:
    """A candidate's name for people."""
    return CANDIDATES.get(name, name)


def metric(name: str) -> str:
    return METRICS.get(name, name)


def signed(value: float, digits: int = 3) -> str:
    """A difference; one that rounds to nothing has no sign."""
    return f"{round(value, digits) + 0.0:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def told(figure: Figure | None, digits: int = 2, sign: str = "") -> str:
    """A figure with its interval."""
    if figure is None or not math.isfinite(figure.value):
        return "not known"
    value = f"{figure.value:{sign}.{digits}f}"
    if not (math.isfinite(figure.low) and math.isfinite(figure.high)):
        return value
    return f"{value} ({figure.low:{sign}.{digits}f} to {figure.high:{sign}.{digits}f})"


def over_local(name: str, difference: Figure) -> str:
    """Chosen less local, so that better is better whichever way the figure counts."""
    gain = difference
    if name in LOWER_IS_BETTER:
        gain = Figure(-difference.value, -difference.high, -difference.low)
    word = "better" if gain.value > 0 else "worse" if gain.value < 0 else "as good"
    return f"{word[:1].upper()}{word[1:]} than local by {told(gain, 3, '+')}" if gain.value else "As good as local"


def decision_words(facts: NightFacts) -> tuple[str, str]:
    """Two sentences: what was decided, and why."""
    outcome, standing = facts.outcome, facts.standing
    kept = f"{facts.site} keeps version {standing.champion}" if standing.champion else f"{facts.site} has no model yet"
    if outcome is None:
        return f"There is no new model tonight; {kept}.", f"The reason: {facts.missed.rstrip('.') or 'not known'}."
    model = outcome.model
    owners = len({*model.owners_})
    of = "its own trees" if {*model.owners_} == {facts.site} else f"trees of {owners} sites"
    what = f"{facts.site} chose the {candidate(outcome.decision.name)}"
    if model.linear_ is None or model.linear_.forest:
        what += f": {len(model.owners_):,} {of}"
    if standing.version and standing.version == standing.champion:
        what += f", in use from now on as version {standing.version}"
    elif standing.version:
        use = f"version {standing.champion} stays in use" if standing.champion else "no version is in use yet"
        what += f", registered as version {standing.version} while {use}"
    return f"{what}.", f"The reason: {'; '.join(filter(None, _reasons(facts, outcome)))}."


def _reasons(facts: NightFacts, outcome: Outcome) -> Iterable[str]:
    reason = outcome.decision.reason.rstrip(".")
    yield f"{reason}, and the local forest is not better beyond noise" if reason == DEFAULT_REASON else reason
    if outcome.succession is not None:
        yield f"held against version {outcome.succession.champion}, {outcome.succession.reason.rstrip('.')}"
    yield facts.standing.words.rstrip(".")
    chosen, local = outcome.auroc.get("chosen"), outcome.auroc.get("local")
    if chosen is not None and local is not None and outcome.decision.name != "local":
        yield f"on test patients its AUROC is {chosen.value:.2f} against {local.value:.2f} of the local forest"


def sent(lines: Sequence[Line]) -> list[Line]:
    """What left the house."""
    return [line for line in lines if line.entry.direction == "sent"]


def night_figures(facts: NightFacts) -> list[tuple[str, str]]:
    """The night's key figures: (figure, what it is)."""
    pairs: list[tuple[str, str]] = []
    outcome = facts.outcome
    if outcome is not None:
        pairs.append((told(outcome.auroc.get("chosen")), "AUROC of the chosen model on test patients"))
        if outcome.newest is not None and "auroc" in outcome.newest.figures:
            pairs.append((told(outcome.newest.figures["auroc"]), "the same on the newest index events"))
        pairs.append((told(outcome.auroc.get("local")), "AUROC of the local forest"))
        if outcome.strongest_alone != "local" and "auroc" in outcome.gain_over_alone:
            strongest = candidate(outcome.strongest_alone)
            gain = told(outcome.gain_over_alone["auroc"], 3, "+")
            pairs.append((gain, f"gain in AUROC over the strongest that there is here alone, the {strongest}"))
        if "auroc" in outcome.gain:
            pairs.append((told(outcome.gain["auroc"], 3, "+"), "gain in AUROC over the local forest"))
        if "auroc" in outcome.gain_over_champion:
            words = f"gain in AUROC over version {outcome.succession.champion if outcome.succession else 'in use'}"
            pairs.append((told(outcome.gain_over_champion["auroc"], 3, "+"), words))
        foreign = sum(credit["weight"] for site, credit in outcome.credit.items() if site != facts.site)
        pairs.append((f"{foreign:.0%}", "of the vote comes from other sites' trees"))
        pairs.append((f"{outcome.patients:,}", f"patients, {outcome.rows:,} rows"))
    if facts.quality is not None:
        failed, every = len(facts.quality.failures("critical")) + len(facts.quality.failures("warning")), facts.quality
        pairs.append((f"{len(every.results) - failed} of {len(every.results)}", "quality rules kept"))
    letters = sent(of_round(facts.lines, facts.study.name, facts.round))
    pairs.append((size(sum(line.entry.bytes for line in letters)), f"left the house in {len(letters)} messages"))
    return pairs


def round_figures(facts: RoundFacts) -> list[tuple[str, str]]:
    """The round's key figures: (figure, what it is)."""
    steps = steps_in(of_round(facts.lines, facts.study.name, facts.round))
    took_part = [site for site in facts.described if site not in facts.absent]
    return [
        (f"{len(took_part)} of {len({*facts.described, *facts.absent})}", "sites took part to the end"),
        (f"{len(facts.clusters)}", "clusters of sites that learned together"),
        (f"{sum(step.seconds for step in steps):,.0f} s", f"in {len(steps)} steps"),
        (size(sum(step.bytes for step in steps)), "between coordinator and sites; trees go from site to site"),
    ]


def round_ended(facts: RoundFacts) -> tuple[str, str]:
    """Two sentences: how the round ended, and who was in it."""
    if facts.void:
        what = f"Round {facts.round} is void: {facts.void.rstrip('.')}."
    else:
        what = f"Round {facts.round} ended with the common model {facts.model[:12]}."
    there = sorted(site for site in facts.described if site not in facts.absent)
    who = f"{len(there)} sites took part ({', '.join(there)})" if there else "No site took part to the end"
    away = f"; {len(facts.absent)} did not ({', '.join(sorted(facts.absent))})" if facts.absent else ""
    return what, f"{who}{away}."


def markdown(title: str, sentences: Sequence[str], figures: Sequence[tuple[str, str]]) -> str:
    """The top of a report as Markdown."""
    rows = "\n".join(f"| {_cell(what)} | {_cell(figure)} |" for figure, what in figures)
    return f"# {_cell(title)}\n\n{_cell(' '.join(sentences))}\n\n| | |\n|---|---:|\n{rows}\n"


def night_markdown(facts: NightFacts) -> str:
    """A night's decision and key figures as Markdown."""
    which = f"round {facts.round}" if facts.round else "no round"
    title, words = f"{facts.study.name}, {which} at {facts.site}", decision_words(facts)
    top, _, rest = markdown(title, words, night_figures(facts)).partition("\n\n")
    return (
        f"{top}\n\n{answers_markdown([one._replace(words=_cell(one.words)) for one in night_answers(facts)])}\n\n{rest}"
    )


def round_markdown(facts: RoundFacts) -> str:
    """A round's end and key figures as Markdown."""
    return markdown(f"{facts.study.name}, round {facts.round}", round_ended(facts), round_figures(facts))


def scores_markdown(study: str, result: Mapping[str, int | str]) -> str:
    """A night of scoring as Markdown: counts only, and a handful is told as a handful."""
    told = [
        (few(value) if isinstance(value, int) and name != "version" else str(value), name)
        for name, value in result.items()
    ]
    return markdown(f"{study}: tonight's scores", [], told)


def watch_markdown(study: str, watch: Watch) -> str:
    """The model in use as Markdown."""
    if watch.alerts:
        words = ["A round with new data is wished: " + "; ".join(watch.alerts) + "."]
    elif watch.windows:
        words = [f"Version {watch.version} keeps its promise."]
    else:
        words = [f"Too few outcomes are known to judge version {watch.version}."]
    figures = [
        (few(watch.known), "predictions whose outcome is known"),
        (few(watch.waiting), "predictions that wait for it"),
        (told(watch.promise), "AUROC when it was registered"),
    ]
    if watch.windows:
        figures.append((told(watch.windows[-1].auroc), f"AUROC since {watch.windows[-1].first}"))
    return markdown(f"{study}: the model in use", words, figures)


def watch_rows(watch: Watch) -> Rows:
    """The model in use over time, a row per window."""
    return [
        {
            "from": str(one.first),
            "to": str(one.last),
            "rows": f"{one.rows:,}",
            "AUROC": told(one.auroc),
            "predicted": f"{one.predicted:.0%}",
            "observed": f"{one.observed:.0%}",
        }
        for one in watch.windows
    ]


def failed_words(rule: RuleResult) -> str:
    """How often a rule was not kept. Of how many is told if it is all: else it may be all that was read."""
    everything = rule.failed == rule.checked and rule.failed >= FEWEST
    return f"all {rule.failed:,}" if everything else few(rule.failed)


def comparison_rows(outcome: Outcome) -> Rows:
    """Every candidate's figures on test patients, a row each."""
    names = ("auroc", "auprc", "brier")
    return [
        {"model": candidate(label), **{metric(name): told(figures.get(name)) for name in names}}
        for label, figures in outcome.compared.items()
    ]


def credit_rows(outcome: Outcome) -> Rows:
    """Where the vote comes from, a row per site."""
    by_weight = sorted(outcome.credit.items(), key=lambda one: (-one[1]["weight"], one[0]))
    return [
        {
            "site": site,
            "share of the vote": f"{credit['weight']:.0%}",
            "AUROC lost without it": signed(credit["gain"]),
        }
        for site, credit in by_weight
    ]


def odds_rows(outcome: Outcome) -> Rows:
    """What the logistic regression says, a row per column."""
    part = outcome.model.linear_
    found = () if part is None else part.odds_ratios(outcome.model.columns_)
    return [
        {
            "variable": one.name,
            "odds ratio per standard deviation": f"{one.ratio:.2f}",
            "standard deviation": f"{one.deviation:.3g}",
        }
        for one in found
    ]


def _cell(words: str) -> str:
    """Names come from other houses: nothing in them may become markup."""
    for sign in ("\\", "|", "<", "[", "`", "*", "_"):
        words = words.replace(sign, f"\\{sign}")
    return " ".join(words.split())
