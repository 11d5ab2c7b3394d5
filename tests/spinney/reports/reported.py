"""Facts for reports: a small federation in one process, and what a site has besides it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from spinney.choice.metrics import Figure
from spinney.choice.outcome import Newest, Subgroup, Succession
from spinney.cohort.attrition import Attrition, Division, Loss
from spinney.cohort.drift import Drift, Shift
from spinney.cohort.pull_report import PullReport
from spinney.connectors.great_expectations.quality import QualityReport, RuleResult
from spinney.federation.messages import Description
from spinney.house.audit import START, AuditEntry, Head, Line
from spinney.reports.facts import NightFacts, RoundFacts, Standing
from spinney.rows.describe import characteristic_vector
from spinney.rows.parts import Part
from spinney.scoring.monitor import Watch, Window
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.spinney.in_process import cohort, study

SITES = ("ash", "beech", "cedar", "elm", "hornbeam", "juniper")
AT = datetime(2026, 3, 14, 2, 30, tzinfo=UTC)


OF_A_CHAMPION: dict[str, Any] = {
    "succession": Succession("3", True, "it is not worse beyond noise", 0.84, 0.86, 212),
    "gain_over_champion": {"auroc": Figure(0.012, -0.008, 0.03)},
    "newest": Newest(0.1, {"auroc": Figure(0.88, 0.8, 0.93)}),
    "subgroups": (
        Subgroup("sex: female", 110, {"auroc": Figure(0.9, 0.84, 0.95)}, 0.51, 0.5),
        Subgroup("sex: male", 90, {"auroc": Figure(0.87, 0.8, 0.93)}, 0.49, 0.5),
        Subgroup("age: 18 to 39", 40, {"auroc": Figure(0.86, 0.72, 0.96)}, 0.4, 0.44),
        Subgroup("age: 40 to 64", 80, {"auroc": Figure(0.91, 0.85, 0.96)}, 0.52, 0.5),
        Subgroup("age: 65 to 79", 70, {"auroc": Figure(0.89, 0.8, 0.95)}, 0.55, 0.53),
        Subgroup("age: 80 and over"),
    ),
}


def wood(**sections: Any) -> Study:
    return study(privacy={"share_metrics": True}, **sections)


def logged(*entries: AuditEntry) -> list[Line]:
    head, lines = Head(0, 0, START), []
    for number, entry in enumerate(entries):
        lines.append(Line.after(head, entry, AT + timedelta(seconds=7 * number)))
        head = head.past(lines[-1])
    return lines


def letter(direction: str, kind: str, step: str, peer: str, size: int = 2048) -> AuditEntry:
    digest = f"{kind}{step}{peer}".encode().hex().ljust(64, "0")[:64]
    plain = {"direction": direction, "kind": kind, "step": step, "peer": peer, "bytes": size, "digest": digest}
    return AuditEntry.model_validate({**plain, "study": "wood", "round": 7})


def watch(falling: float = 0.02) -> Watch:
    windows = []
    for month in range(1, 7):
        value = 0.9 - falling * month
        figure = Figure(value, value - 0.06, value + 0.05)
        windows.append(Window(date(2025, month, 1), date(2025, month, 27), 214, figure, 0.31, 0.3, False))
    return Watch("3", Figure(0.9, 0.86, 0.93), tuple(windows), 1284, 341)


def attrition(rows: int, patients: int) -> Attrition:
    """Whatever comes out: rules that leave nobody out, few, many, and many of few."""
    losses = (
        Loss("no index event of the study", 1305, 310, 600),
        Loss("age", 122, 100, 110),
        Loss("no heart failure before", 0, 0, 0),
        Loss("died before prediction time", 3, 2, 3),
        Loss("prediction time not reached", 12, 1, 2),
        Loss("died before the outcome could happen", 9, 4, 9),
        Loss("the outcome is still open", 61, 20, 55),
    )
    return Attrition("Encounter", losses, rows, patients)


def night_facts(wood: Study, rows: int = 400, **changes: Any) -> NightFacts:
    people = {name: cohort(wood, rows, seed) for seed, name in enumerate(SITES)}
    outcome = replace(simulate(wood, people, round=7).outcomes["ash"], **OF_A_CHAMPION)
    training = people["ash"].rows(Part.TRAINING)
    vector = characteristic_vector(training, wood.privacy)
    pulled = PullReport(
        read=Counter({"Observation": 10_412, "Encounter": 2210}),
        quarantined=Counter({("Observation", "no unit"): 31, ("Encounter", "broken date"): 2}),
        attrition=attrition(rows, people["ash"].patient_count),
        rows=rows,
        positive=rows // 2,
        unripe=61,
        watermark=AT,
    )
    results = [RuleResult(f"x{place} is between 0 and 1", "critical", rows, 0, True) for place in range(4)]
    results.append(RuleResult("x2 is missing in at most 10% of the rows", "warning", rows, 92, False))
    facts: dict[str, Any] = {
        "outcome": outcome,
        "standing": Standing("4", "4"),
        "pulled": pulled,
        "division": Division.of(people["ash"].part, people["ash"].patients),
        "quality": QualityReport(tuple(results)),
        "drift": Drift((Shift("x0", 0.31, 0.05), Shift("x1", 0.02, 0.05), Shift("y", 0.01, 0.05)), 0.02),
        "lines": logged(
            letter("received", "Opening", "opening", "coordinator"),
            letter("sent", "Description", "join", "coordinator", 611),
            letter("sent", "Parcel", "parcel-1", "beech, cedar, elm, hornbeam, juniper", 14_201),
            letter("sent", "MaskedCounts", "score", "coordinator", 3310),
        ),
        "vector": {column.name: float(one) for column, one in zip(training.columns, vector, strict=True)},
        "peers": SITES[1:],
        "watch": watch(),
        **changes,
    }
    return NightFacts(wood, "ash", 7, AT, **facts)


def round_facts(wood: Study, **changes: Any) -> RoundFacts:
    described = {}
    for seed, name in enumerate(SITES):
        training = cohort(wood, 300, seed, shift=0.3 * (seed % 2)).rows(Part.TRAINING)
        vector = characteristic_vector(training, wood.privacy)
        described[name] = Description(200 + 10 * seed, vector, np.ones(len(vector), dtype=bool), b"", b"")
    asks = [
        one
        for number, step in enumerate(("join", "grow", "check", "score", "finish"), start=1)
        for one in (
            letter("sent", "Ask", f"ask00{number}-{step}", "everybody", 900),
            *(letter("received", f"answer to {step}", step, name, 700 * number) for name in SITES),
        )
    ]
    facts: dict[str, Any] = {
        "model": "ab12" * 16,
        "described": described,
        "absent": {"juniper": "no answer to grow in time", "larch": "fewer patients than the smallest cohort of 30"},
        "figures": {name: {"auroc": 0.8, "auprc": 0.61, "brier": 0.14, "mcc": 0.4} for name in SITES[:4]},
        "lines": logged(*asks),
        **changes,
    }
    return RoundFacts(wood, "coordinator", 7, AT, **facts)


def texts(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL))
