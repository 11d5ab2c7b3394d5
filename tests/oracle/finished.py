"""Finished tables: nasty ones, and what of them is a row, by what the tutorial and the settings say of tables."""

from __future__ import annotations

import csv
import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spinney.study.study import Study
from tests.oracle.events import Site
from tests.oracle.records import ZONES
from tests.oracle.reference import Expected

YES, NO = ("1", "1.0", "true", "True", "yes", "YES", " 1"), ("0", "0.0", "false", "False", "no", "No", "0 ")
NUMBERS = ("70", "70.5", " 71.25 ", "-3", "1e2", "0", "", "?")
WORDS = ("never", "current", "former", "", "?")

Row = dict[str, str]


@dataclass(frozen=True)
class FinishedCase:
    """A table with a row per index event."""

    study: Study
    timezone: str
    rows: list[Row]
    form: str

    def told(self) -> Expected:
        """Rows that have an outcome are ripe; a row with a broken cell is none."""
        site, found = Site(self.timezone), Expected([], [], [])
        for row in self.rows:
            try:
                made: dict[str, Any] = {"patient": row["patient"].strip(), "index_time": _time(row["index_time"], site)}
                for feature in self.study.features:
                    text = row[feature.name].strip()
                    made[feature.name] = None if text in ("", "?") else text if feature.categories else float(text)
                    if feature.categories and text not in feature.categories:
                        made[feature.name] = None
            except ValueError:
                found.left_out.append("broken")
                continue
            if not made["patient"]:
                found.left_out.append("no subject")
            elif row["outcome"].strip() in ("", "?"):
                found.still_open.append(made | {"outcome": None})
            else:
                made["outcome"] = int(row["outcome"].strip().lower() in {word.strip().lower() for word in YES})
                found.ripe.append(made)
        return found

    def laid(self, folder: Path) -> dict[str, Any]:
        if self.form == "sql":
            with closing(sqlite3.connect(folder / "his.db")) as his:
                names = list(self.rows[0])
                his.execute(f"CREATE TABLE c ({', '.join(f'{name} TEXT' for name in names)})")
                his.executemany(
                    f"INSERT INTO c VALUES ({', '.join('?' for _ in names)})",
                    [[None if text in ("", "?") else text for text in row.values()] for row in self.rows],
                )
                his.commit()
            return {"kind": "sql", "url": f"sqlite:///{folder / 'his.db'}", "table": "SELECT * FROM c"}
        with (folder / "cohort.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, list(self.rows[0]), delimiter=";" if self.form == "semicolons" else ",")
            table.writeheader()
            for row in self.rows:
                comma = (
                    {one.name for one in self.study.features if not one.categories}
                    if self.form == "semicolons"
                    else set()
                )
                table.writerow({name: text.replace(".", ",") if name in comma else text for name, text in row.items()})
        return {"kind": "files", "table": folder / "cohort.csv"}


def _time(text: str, site: Site) -> datetime:
    return site.read(text).first


def finished_case(seed: int) -> FinishedCase:
    chance = random.Random(seed)
    features = [{"name": f"x{n}", "kind": "continuous", "range": [-1e3, 1e3]} for n in range(chance.randint(1, 4))]
    smoking: Any = {"name": "smoking", "kind": "categorical", "categories": ["never", "current"]}
    study = Study.model_validate({"name": "nasty", "features": [*features, smoking], "label": {"name": "outcome"}})
    rows = [_row(chance, study) for _ in range(chance.randint(5, 40))]
    rows += [{**row} for row in rows if chance.random() < 0.1]
    rows += [
        {
            **rows[0],
            "patient": "sure",
            "index_time": "2023-01-01",
            "outcome": word,
            **{one["name"]: "1" for one in features},
        }
        for word in ("1", "0")
    ]
    return FinishedCase(study, chance.choice(ZONES), rows, chance.choice(("commas", "semicolons", "sql")))


def _row(chance: random.Random, study: Study) -> Row:
    moment = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(minutes=chance.randint(0, 500_000))
    times = (
        moment.date().isoformat(),
        moment.isoformat(),
        moment.replace(tzinfo=None).isoformat(sep=" "),
        "31.2.2023",
        "2023-02-30",
    )
    row = {"patient": chance.choice(("ann", "Ann", "ann 2", "b-3", "4", "04")), "surname": "Meier"}
    row["index_time"] = chance.choices(times, (4, 4, 4, 0.2, 0.2))[0]
    for one in study.features:
        row[one.name] = (
            chance.choice(WORDS)
            if one.categories
            else chance.choices((*NUMBERS, "heavy"), (*[3] * len(NUMBERS), 0.3))[0]
        )
    row["outcome"] = chance.choices((chance.choice(YES), chance.choice(NO), ""), (3, 6, 1))[0]
    if chance.random() < 0.03:
        row["patient"] = ""
    return row
