"""What many splits say together: means of every figure, a gain with its interval, a verdict per site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spinney.choice.evidence import evidence_of, plain
from spinney.choice.outcome import Outcome
from spinney.choice.split_votes import gain_over_splits
from spinney.choice.verdict import GainVerdict, verdict_of
from spinney.trial.simulate import Simulation

if TYPE_CHECKING:
    from spinney.study.study import Study

ALONE = "alone"  # the strongest that a site could have without the others


def verdicts_of(simulations: Sequence[Simulation]) -> dict[str, GainVerdict]:
    """Would it help? By site, over all splits in which the site took part."""
    return {site: _verdict(outcomes) for site, outcomes in outcomes_of(simulations).items()}


def outcomes_of(simulations: Sequence[Simulation]) -> dict[str, list[Outcome]]:
    """Every site's outcomes, split after split."""
    sites = sorted({site for one in simulations for site in one.outcomes})
    return {site: [one.outcomes[site] for one in simulations if site in one.outcomes] for site in sites}


def _verdict(outcomes: Sequence[Outcome]) -> GainVerdict:
    tested = [one.tested for one in outcomes if one.tested is not None]
    return verdict_of(gain_over_splits(tested, "chosen", ALONE), outcomes[0].patients)


def evidence_over(simulations: Sequence[Simulation]) -> dict[str, dict[str, Any]]:
    """By site the same keys as of one split, every number the mean over splits, and the verdict beside them.

    The interval of the gain in AUROC is over patients and splits; those of other figures are means of each split's
    own, so they are rather too wide.
    """
    verdicts, result = verdicts_of(simulations), {}
    for site, outcomes in outcomes_of(simulations).items():
        evidence = mean_of([{**evidence_of(one), "answers": None} for one in outcomes])
        del evidence["answers"]  # of one night each; the verdict is over all
        verdict = verdicts[site]
        evidence["gain"] = {**evidence["gain"], "auroc": plain(verdict.gain)}
        evidence["verdict"] = {
            "word": verdict.word,
            "sentence": verdict.sentence,
            "more_patients": verdict.more_patients or None,
        }
        evidence["splits"] = len(outcomes)
        evidence["choices"] = dict(Counter(one.decision.name for one in outcomes).most_common())
        result[site] = evidence
    return result


def mean_of(values: Sequence[Any]) -> Any:
    """Means of numbers, the commonest of words, all different lines of lists; None only where all are."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    first = known[0]
    if isinstance(first, Mapping):
        names = dict.fromkeys(name for value in known for name in value)
        return {name: mean_of([value.get(name) for value in known]) for name in names}
    if isinstance(first, (list, tuple)):
        if all(isinstance(value, str) for one in known for value in one):
            return list(dict.fromkeys(value for one in known for value in one))
        return (
            list(first)
            if any(len(one) != len(first) for one in known)
            else [mean_of(one) for one in zip(*known, strict=True)]
        )
    if isinstance(first, bool) or not isinstance(first, (int, float)):
        return Counter(known).most_common(1)[0][0]
    mean = sum(known) / len(known)
    return round(mean) if all(isinstance(value, int) for value in known) else mean


def report_of(study: Study, results: Sequence[Simulation], also: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The whole result as plain data: figures are means over splits, the model's digest is the first split's."""
    first, sites, asked = results[0], evidence_over(results), also or {}
    for site, figure in asked.get("pooled", {}).items():
        if site in sites:
            sites[site]["auroc"]["pooled"] = figure
    report = {
        "study": study.name,
        "study_digest": study.digest,
        "algorithm": study.algorithm.name,
        "secure_sum": study.privacy.secure_sum,
        "seed": study.split.seed,
        "repeats": len(results),
        "model_digest": first.model_digest,
        "bytes_between_sites": first.parcel_bytes,
        "clusters": sorted({tuple(sorted(outcome.credit)) for outcome in first.outcomes.values()}),
        "left_out": {site: reason for one in reversed(results) for site, reason in one.left_out.items()},
        "sites": sites,
    }
    return report | {name: plain(found) for name, found in asked.items() if name != "pooled"}
