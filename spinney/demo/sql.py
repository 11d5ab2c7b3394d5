"""A made-up history in a database with the tables of an ordinary hospital system, and the queries that read it.

Times are local to the hospital and have no zone, as such systems have it.
"""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
from sqlalchemy import URL, Engine, create_engine, make_url, text

from spinney.demo.history import MadeUpHistory

TABLES = {
    "person": "pid VARCHAR(40), born DATE, sex VARCHAR(10), died TIMESTAMP",
    "stay": "pid VARCHAR(40), class VARCHAR(10), state VARCHAR(20), admitted TIMESTAMP, discharged TIMESTAMP",
    "result": "pid VARCHAR(40), code VARCHAR(120), measured TIMESTAMP, released TIMESTAMP, "
    "number DOUBLE PRECISION, answer VARCHAR(120), unit VARCHAR(20)",
    "diagnosis": "pid VARCHAR(40), code VARCHAR(120), since TIMESTAMP, entered TIMESTAMP",
    "prescription": "pid VARCHAR(40), code VARCHAR(120), ordered TIMESTAMP",
}
PATIENTS = "SELECT pid AS patient, born AS birth, sex, died FROM person"
QUERIES = {
    "Encounter": "SELECT pid AS patient, admitted AS time, discharged AS until, class, state AS status FROM stay\n"
    "WHERE admitted >= :since AND admitted <= :until",
    "Observation": "SELECT pid AS patient, code, measured AS time, released AS recorded, number AS value,\n"
    "       answer AS text, unit\n"
    "FROM result WHERE measured >= :since AND measured <= :until",
    "Condition": "SELECT pid AS patient, code, since AS time, entered AS recorded FROM diagnosis",
    "MedicationRequest": "SELECT pid AS patient, code, ordered AS time, ordered AS recorded FROM prescription\n"
    "WHERE ordered >= :since AND ordered <= :until",
}


def write_sql(history: MadeUpHistory, url: URL | str) -> None:
    """Write a history into a database; tables of these names are replaced."""
    engine = create_engine(make_url(url))
    try:
        with engine.begin() as connection:
            for table, columns in TABLES.items():
                connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
                connection.execute(text(f"CREATE TABLE {table} ({columns})"))
        for table, rows in _tables(history).items():
            fill(engine, table, rows.astype({"pid": str}))
    finally:
        engine.dispose()


def _tables(history: MadeUpHistory) -> dict[str, pd.DataFrame]:
    zone, events = history.hospital.timezone, history.events
    sexes = {"female": "F", "male": "M"} if history.hospital.habits.letters_for_sex else {}
    people, stays, results = history.patients, events["Encounter"], events["Observation"]
    diagnoses, orders = events["Condition"], events["MedicationRequest"]
    return {
        "person": pd.DataFrame(
            {
                "pid": people["patient"],
                "born": people["birth"].dt.strftime("%Y-%m-%d"),
                "sex": people["sex"].replace(sexes),
                "died": local_times(people["died"], zone),
            }
        ),
        "stay": pd.DataFrame(
            {
                "pid": stays["patient"],
                "class": stays["class"],
                "state": stays["status"],
                "admitted": local_times(stays["time"], zone),
                "discharged": local_times(stays["until"], zone),
            }
        ),
        "result": pd.DataFrame(
            {
                "pid": results["patient"],
                "code": results["code"],
                "measured": local_times(results["time"], zone),
                "released": local_times(results["recorded"], zone),
                "number": results["value"],
                "answer": results["text"],
                "unit": results["unit"],
            }
        ),
        "diagnosis": pd.DataFrame(
            {
                "pid": diagnoses["patient"],
                "code": diagnoses["code"],
                "since": local_times(diagnoses["time"], zone),
                "entered": local_times(diagnoses["recorded"], zone),
            }
        ),
        "prescription": pd.DataFrame(
            {"pid": orders["patient"], "code": orders["code"], "ordered": local_times(orders["time"], zone)}
        ),
    }


def local_times(times: pd.Series, zone: str) -> pd.Series:
    """Moments as a hospital's clocks have them."""
    local: pd.Series[str] = times.dt.tz_localize("UTC").dt.tz_convert(zone).dt.strftime("%Y-%m-%d %H:%M:%S")
    return local


def fill(engine: Engine, table: str, rows: pd.DataFrame) -> None:
    """Append rows to a table."""
    if engine.dialect.name != "postgresql":
        rows.to_sql(table, engine, if_exists="append", index=False, chunksize=50_000)
        return
    with engine.begin() as connection:  # COPY is many times faster than INSERT
        cursor: Any = connection.connection.cursor()
        with cursor.copy(f"COPY {table} ({', '.join(rows.columns)}) FROM STDIN (FORMAT csv)") as copy:
            buffer = io.StringIO()
            rows.to_csv(buffer, index=False, header=False)
            copy.write(buffer.getvalue())
