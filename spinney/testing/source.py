"""What every source of patients' data promises. A test class inherits it and says, by a `place`, over what.

A source is told what is wanted and leaves it in its staging folder. The folder is there, private, and empty, or holds
what an earlier pull left that failed or was killed. It may bring more than was asked for (later stages look again), and
never less without an error. What a person can mend is said in one line; what heals by itself is transient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq
import pytest

from spinney.cohort.events import stage
from spinney.connectors.duck import open_bench
from spinney.connectors.sources import TABLE, Pulled, SourceSettings, Surroundings, Wanted
from spinney.errors import SourceFailed

START = datetime(2023, 1, 1, 6, tzinfo=UTC)
CODE, OTHER_CODE = "http://loinc.org|29463-7", "http://loinc.org|8867-4"
MARK = "canary-50917"
SINCE, UNTIL = START - timedelta(days=1), START + timedelta(days=365)


@dataclass(frozen=True, order=True)
class Reading:
    """Something that was measured."""

    patient: str
    code: str
    time: datetime
    value: float


PATIENTS = tuple(f"p{number:03d}" for number in range(40))
READINGS = tuple(  # more than one page, and so many at one time that a listing by time alone would lose some
    Reading(PATIENTS[at % 40], CODE if at % 3 else OTHER_CODE, START + timedelta(hours=at // 40), at / 4)
    for at in range(1_200)
)
WANTED = (Wanted("Patient"), Wanted("Observation", (CODE, OTHER_CODE), SINCE, UNTIL))


class SourcePlace(Protocol):
    """One kind of source, with what it holds."""

    settings: SourceSettings
    wrong: SourceSettings
    """Settings that no waiting mends: a wrong password, a wrong path."""
    secrets: tuple[str, ...]
    """What no error may say."""

    def hold(self, patients: Sequence[str], readings: Sequence[Reading]) -> None:
        """Have these and no others; values are in kg, and every record was entered when it happened."""

    def away(self) -> AbstractContextManager[object] | None:
        """Out of reach for a while; None where that can't be."""


class Stopped(BaseException):
    """Somebody ends a pull."""


def quiet(kind: str, read: int, total: int | None) -> None:
    """Nobody looks."""


class SourceContract:
    """The tests."""

    where = Surroundings("UTC")

    @pytest.fixture
    def full(self, place: SourcePlace) -> SourcePlace:
        """With all patients and readings in it."""
        place.hold(PATIENTS, READINGS)
        return place

    @pytest.fixture
    def staging(self, tmp_path: Path) -> Path:
        """As the vault makes it."""
        folder = tmp_path / "contract-staging"
        folder.mkdir(mode=0o700)
        return folder

    def test_everything_that_is_wanted_arrives_once(self, full: SourcePlace, staging: Path) -> None:
        pulled = self.pulled(full, staging)
        assert readings_in(pulled, staging) == Counter(READINGS)
        assert patients_in(pulled, staging) == sorted(PATIENTS)

    def test_a_second_pull_brings_the_same(self, full: SourcePlace, staging: Path) -> None:
        first = readings_in(self.pulled(full, staging), staging)
        again = staging / "again"
        again.mkdir()
        assert readings_in(self.pulled(full, again), again) == first

    def test_what_nobody_asked_for_is_not_handed_on(self, full: SourcePlace, staging: Path) -> None:
        pulled = full.settings.open(self.where).pull([Wanted("Patient")], staging, quiet)
        assert set(pulled.files) <= {"Patient"}

    def test_nothing_is_lost_inside_of_the_window(self, full: SourcePlace, staging: Path) -> None:
        first, last = START + timedelta(hours=5), START + timedelta(hours=20)
        asked = [Wanted("Patient"), Wanted("Observation", (CODE,), first, last)]
        pulled = full.settings.open(self.where).pull(asked, staging, quiet)
        wanted = Counter(one for one in READINGS if first <= one.time <= last and one.code == CODE)
        assert wanted <= readings_in(pulled, staging)

    def test_a_kind_that_the_source_does_not_have_is_no_error(self, full: SourcePlace, staging: Path) -> None:
        pulled = full.settings.open(self.where).pull([*WANTED, Wanted("Immunization")], staging, quiet)
        assert readings_in(pulled, staging) == Counter(READINGS)

    def test_a_pull_that_was_stopped_can_be_done_again_in_the_same_folder(
        self, full: SourcePlace, staging: Path
    ) -> None:
        def stop(kind: str, read: int, total: int | None) -> None:  # noqa: ARG001
            raise Stopped

        try:
            full.settings.open(self.where).pull(WANTED, staging, stop)
        except Stopped:
            (staging / "left.partial").write_bytes(b"half")
        assert readings_in(self.pulled(full, staging), staging) == Counter(READINGS)

    def test_how_far_it_is_only_grows(self, full: SourcePlace, staging: Path) -> None:
        told: list[tuple[str, int]] = []

        def tell(kind: str, read: int, total: int | None) -> None:  # noqa: ARG001
            told.append((kind, read))

        full.settings.open(self.where).pull(WANTED, staging, tell)
        for kind in {kind for kind, _ in told}:
            steps = [read for one, read in told if one == kind]
            assert steps == sorted(steps)

    def test_opening_connects_nothing_and_an_absence_is_transient(self, full: SourcePlace, staging: Path) -> None:
        gone = full.away()
        if gone is None:
            return
        with gone:
            source = full.settings.open(self.where)
            with pytest.raises(SourceFailed) as caught:
                source.pull(WANTED, staging, quiet)
            assert caught.value.transient
            self.is_fit_to_be_shown(full, caught.value)
        assert readings_in(self.pulled(full, staging), staging) == Counter(READINGS)

    def test_what_no_waiting_mends_is_said_so(self, full: SourcePlace, staging: Path) -> None:
        with pytest.raises(SourceFailed) as caught:
            full.wrong.open(self.where).pull(WANTED, staging, quiet)
        assert not caught.value.transient
        self.is_fit_to_be_shown(full, caught.value)

    def test_a_finished_table_is_not_made_of_events(self, full: SourcePlace, staging: Path) -> None:
        assert full.settings.table_columns is None
        with pytest.raises(SourceFailed, match="this site needs"):
            full.settings.open(self.where).pull([Wanted(TABLE, ("patient", "index_time"))], staging, quiet)

    def test_an_error_quotes_no_patient(self, place: SourcePlace, staging: Path) -> None:
        place.hold([*PATIENTS[:3], MARK], [Reading(MARK, CODE, START, 1.5)])
        with pytest.raises(SourceFailed) as caught:
            place.wrong.open(self.where).pull(WANTED, staging, quiet)
        assert MARK not in str(caught.value)

    def test_a_look_at_it_is_one_line(self, full: SourcePlace) -> None:
        assert len(full.settings.reach(self.where).splitlines()) == 1
        gone = full.away()
        if gone is not None:
            with gone, pytest.raises(SourceFailed):
                full.settings.reach(self.where)

    def test_its_questions_are_keys_of_the_first_settings_file(self, full: SourcePlace) -> None:
        kind = type(full.settings)
        answers = {"kind": full.settings.kind, **{ask.name: ask.default or "what-was-answered" for ask in kind.asks}}
        written = kind.starter(answers)
        assert written.splitlines()[-1]
        assert "source:\n" in written
        assert f"kind: {full.settings.kind}" in written.replace('"', "")

    def pulled(self, place: SourcePlace, staging: Path) -> Pulled:
        """What the source brings of all that is wanted."""
        return place.settings.open(self.where).pull(WANTED, staging, quiet)

    def is_fit_to_be_shown(self, place: SourcePlace, error: Exception) -> None:
        """One line, without secrets, and nothing of a library behind it."""
        assert len(str(error).splitlines()) == 1
        assert not any(secret in str(error) for secret in place.secrets)
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None


def readings_in(pulled: Pulled, staging: Path) -> Counter[Reading]:
    """What later stages read in the files that a source left."""
    rows = _rows(pulled, staging, "Observation")
    return Counter(Reading(row["patient"], row["code"], row["time"].replace(tzinfo=UTC), row["value"]) for row in rows)


def patients_in(pulled: Pulled, staging: Path) -> list[str]:
    """Who is described."""
    return sorted(row["patient"] for row in _rows(pulled, staging, "Patient"))


def _rows(pulled: Pulled, staging: Path, kind: str) -> list[dict[str, Any]]:
    work = staging.with_name(f"{staging.name}-read")
    work.mkdir(exist_ok=True)
    with open_bench(work, "UTC") as bench:
        staged = stage(bench, pulled, work)
    file = staged.patients if kind == "Patient" else staged.events.get(kind)
    rows: list[dict[str, Any]] = [] if file is None else pq.read_table(file).to_pylist()
    return [row for row in rows if row["reason"] is None]
