"""What a simulation says, for people and for scripts: the verdict first, then the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

    from spinney.study.study import Study

WIDTH = 80
LONGEST_NAME = 16


def show(study: Study, report: Mapping[str, Any]) -> None:
    """The result for people."""
    from rich.console import Console

    from spinney.choice.personalise import DEFAULT_REASON
    from spinney.choice.verdict import MARKS

    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    splits = f"{report['repeats']} splits" if report["repeats"] > 1 else "one split, a throw of dice"
    click.echo(f"{study.name}: would {study.algorithm.name} help? ({splits})\n")
    for name, site in report["sites"].items():
        click.echo(f"{MARKS[site['verdict']['word']]} {name}: {site['verdict']['sentence']}.")
    console.print(sites_table(report))
    for table in also_tables(report):
        console.print(table)
    for name, site in report["sites"].items():
        for line in [site["choice"]["question"], *site["choice"]["notes"]]:
            if line:
                click.echo(f"{name}: {line}")
        if site["choice"]["reason"] != DEFAULT_REASON:
            click.echo(f"{name}: {site['choice']['reason']}")
    for line in clustering(study, report["clusters"]):
        click.echo(line)
    if study.privacy.warning:
        console.print(f"Know that with {study.privacy.warning}.", highlight=False)
    for name, reason in report["left_out"].items():
        click.echo(f"{name} was left out: {reason}")
    size = f"{report['bytes_between_sites'] / 1024:.0f} KiB of sealed parcels passed between sites"
    click.echo(f"model {report['model_digest'][:16] or '(none in common)'}; {size}.")


def sites_table(report: Mapping[str, Any]) -> Table:
    """A line per site: alone, together, and what that is worth."""
    pooled = any("pooled" in site["auroc"] for site in report["sites"].values())
    heads = ["rows", "positives", "alone", "together", *["pooled"] * pooled, "gain (95 %)"]
    table = _table("AUROC on test rows", ["site", *heads, "in use"])
    for name, site in report["sites"].items():
        auroc, gain = site["auroc"], site["gain"]["auroc"]
        names = ["local", "chosen", *["pooled"] * pooled]
        figures = ["" if auroc.get(one) is None else f"{auroc[one]:.3f}" for one in names]
        shown = "" if gain is None or gain["value"] is None else _interval(gain)
        kept = next(iter(site["choices"]))
        some = f" {site['choices'][kept]}/{site['splits']}" if len(site["choices"]) > 1 else ""
        table.add_row(short(name), f"{site['rows']:,}", f"{site['positives']:,}", *figures, shown, f"{kept}{some}")
    return table


def also_tables(report: Mapping[str, Any]) -> list[Table]:
    """What was asked for beside it."""
    tables = []
    if "newcomers" in report:
        tables.append(
            _table("What a hospital that brings nothing would get: ranking on all its rows", ["site", "AUROC"])
        )
        for name, figure in report["newcomers"].items():
            told = f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"
            tables[-1].add_row(short(name), told)
    for key, title in (("by_sites", "Gain over local by the number of sites"), ("by_trees", "Gain by trees per site")):
        if key in report:
            sizes = sorted({point["size"] for points in report[key].values() for point in points})
            tables.append(_table(f"{title}: mean (least to most)", ["site", *map(str, sizes)]))
            for name, points in report[key].items():
                spans = {
                    one["size"]: f"{one['mean']:+.3f} ({one['least']:+.2f} to {one['most']:+.2f})" for one in points
                }
                tables[-1].add_row(short(name), *(spans.get(size, "") for size in sizes))
    return tables


def clustering(study: Study, clusters: Sequence[Sequence[str]]) -> list[str]:
    """Who helped whom, where the study asks for clusters."""
    wanted = getattr(study.algorithm, "clusters", 1)
    lines = [f"cluster: {', '.join(members)}" for members in clusters] if wanted != 1 else []
    if wanted == "auto":
        return lines if len(clusters) > 1 else ["cluster: all together, because no grouping separates the sites"]
    if len(clusters) < wanted:
        fewest = study.privacy.fewest_scorers
        lines.append(
            f"{len(clusters)} instead of {wanted} clusters: one with fewer than {fewest} sites joins its nearest"
        )
    return lines


def short(name: str) -> str:
    """A site's name as far as a column has room."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _interval(gain: Mapping[str, float]) -> str:
    return f"{gain['value']:+.3f} ({gain['low']:+.2f} to {gain['high']:+.2f})"


def _table(title: str, heads: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0), pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, no_wrap=True, justify="left" if place == 0 or head == "in use" else "right")
    return table
