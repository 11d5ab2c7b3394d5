"""The same table built in other ways: plain pandas, Polars, and a row per resource through FHIRPath."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.connectors_data import LOINC, RECIPES


def with_pandas(folder: Path) -> pd.DataFrame:
    """What one writes first: a dict per line, a data frame, a merge and a group-by per feature."""
    stays = pd.DataFrame(
        {"patient": _id(r["subject"]), "index_time": r["period"]["end"], "start": r["period"]["start"]}
        for r in _resources(folder / "Encounter.ndjson")
    )
    stays["index_time"] = pd.to_datetime(stays["index_time"], utc=True)
    stays = stays.drop_duplicates(["patient", "index_time"]).reset_index(drop=True)
    stays["row"] = stays.index
    events = pd.DataFrame(
        {
            "patient": _id(r["subject"]),
            "code": r["code"]["coding"][0]["code"],
            "time": r["effectiveDateTime"],
            "recorded": r["issued"],
            "value": r["valueQuantity"]["value"],
        }
        for r in _resources(folder / "Observation.ndjson")
    )
    for column in ("time", "recorded"):
        events[column] = pd.to_datetime(events[column], utc=True, format="ISO8601")
    table = stays[["patient", "index_time", "row"]].copy()
    for code, statistic, days in RECIPES:
        mine = events[events["code"] == code]
        both = stays.merge(mine, on="patient")
        seen = (both["time"] <= both["index_time"]) & (both["recorded"] <= both["index_time"])
        seen &= both["time"] >= both["index_time"] - pd.Timedelta(days=days)
        groups = both[seen].sort_values(["time", "recorded", "value"]).groupby("row")
        table[f"{statistic}_{code}"] = table["row"].map(_pandas_statistic(groups, statistic))
        if statistic == "count":
            table[f"{statistic}_{code}"] = table[f"{statistic}_{code}"].fillna(0)
    return table


def _pandas_statistic(groups: Any, statistic: str) -> pd.Series:
    values = groups["value"]
    if statistic == "slope":
        return groups.apply(_slope, include_groups=False)
    if statistic == "p90":
        return values.quantile(0.9)
    return getattr(values, statistic)()


def _slope(group: pd.DataFrame) -> float:
    days = (group["time"] - group["index_time"]).dt.total_seconds() / 86_400
    spread = days - days.mean()
    below = float((spread**2).sum())
    return float((spread * group["value"]).sum() / below) if below > 0 else float("nan")


def with_polars(folder: Path) -> pd.DataFrame:
    """Polars' lazy streaming engine over the same files."""
    import polars as pl

    coding = pl.List(pl.Struct({"system": pl.String, "code": pl.String}))
    subject = pl.Struct({"reference": pl.String})
    period = pl.Struct({"start": pl.String, "end": pl.String})

    def moment(column: pl.Expr) -> pl.Expr:
        return column.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)

    patient = pl.col("subject").struct.field("reference").str.split("/").list.last().alias("patient")
    stays = (
        pl.scan_ndjson(folder / "Encounter.ndjson", schema={"subject": subject, "period": period})
        .select(patient, moment(pl.col("period").struct.field("end")).alias("index_time"))
        .unique()
        .with_row_index("row")
        .collect()
    )
    first = pl.col("code").struct.field("coding").list.first()
    events = (
        pl.scan_ndjson(
            folder / "Observation.ndjson",
            schema={
                "subject": subject,
                "code": pl.Struct({"coding": coding}),
                "effectiveDateTime": pl.String,
                "issued": pl.String,
                "valueQuantity": pl.Struct({"value": pl.Float64, "code": pl.String}),
            },
        )
        .filter(first.struct.field("system") == LOINC)
        .select(
            patient,
            first.struct.field("code").alias("code"),
            moment(pl.col("effectiveDateTime")).alias("time"),
            moment(pl.col("issued")).alias("recorded"),
            pl.col("valueQuantity").struct.field("value").alias("value"),
        )
        .collect(engine="streaming")
    )
    table = stays
    day = (pl.col("time") - pl.col("index_time")).dt.total_microseconds() / 86_400e6
    for code, statistic, days in RECIPES:
        both = stays.lazy().join(events.lazy().filter(pl.col("code") == code), on="patient")
        seen = both.filter(
            pl.col("time") <= pl.col("index_time"),
            pl.col("recorded") <= pl.col("index_time"),
            pl.col("time") >= pl.col("index_time") - pl.duration(days=days),
        )
        value = pl.col("value")
        how = {
            "last": value.sort_by("time", "recorded", "value").last(),
            "slope": pl.cov(day, value) / day.var(),
            "p90": value.quantile(0.9, "linear"),
            "count": value.count(),
        }.get(statistic)
        figure = seen.group_by("row").agg(
            (getattr(value, statistic)() if how is None else how).alias(f"{statistic}_{code}")
        )
        table = table.join(figure.collect(engine="streaming"), on="row", how="left")
    frame = pd.DataFrame(table.to_dict(as_series=False))
    for code, statistic, _ in RECIPES:
        column = frame[f"{statistic}_{code}"].astype(float)
        frame[f"{statistic}_{code}"] = column.fillna(0) if statistic == "count" else column
    return frame


def with_fhirpath(folder: Path, most: int) -> int:
    """FHIR-PYrate's way: every column of every resource is an evaluated FHIRPath. Says how many rows it made."""
    import fhirpathpy

    paths = {
        "patient": "subject.reference.replace('Patient/', '')",
        "code": "code.coding.code",
        "time": "effectiveDateTime",
        "recorded": "issued",
        "value": "valueQuantity.value",
        "unit": "valueQuantity.code",
    }
    compiled = {column: fhirpathpy.compile(path) for column, path in paths.items()}
    rows = []
    for number, one in enumerate(_resources(folder / "Observation.ndjson")):
        if number >= most:
            break
        found = {column: evaluate(one) for column, evaluate in compiled.items()}
        rows.append({column: values[0] if values else None for column, values in found.items()})
    return len(pd.DataFrame(rows))


def _resources(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def _id(subject: dict[str, str]) -> str:
    return subject["reference"].rpartition("/")[2]
