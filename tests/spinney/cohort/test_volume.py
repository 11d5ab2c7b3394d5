"""How much there is tonight: half of it, all of it twice and the year 2099 keep a site out; slow growth does not."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spinney.cohort.accepted import VolumeRules
from spinney.cohort.check_result import AS_USUAL, check_cohort
from spinney.cohort.pull_report import PullReport
from spinney.cohort.vault import Vault
from spinney.cohort.volume import NIGHTS, NightVolume, Volumes, volume_rules
from spinney.connectors.great_expectations.quality import RuleResult
from spinney.study.study import Study

# Great Expectations imports modules that Python has deprecated
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

NOW = datetime(2026, 5, 1, tzinfo=UTC)
STUDY = Study.model_validate(
    {
        "name": "volumes",
        "features": [{"name": name, "kind": "continuous", "range": [0, 100]} for name in ("age", "glucose")],
        "label": {"name": "died"},
    }
)


def rows(patients: int = 400, *, night: int = 0, share: float = 0.25, drift: float = 0.0) -> pa.Table:
    rng = np.random.default_rng(night)
    return pa.table(
        {
            "patient": [f"p{number}" for number in range(patients)],
            "index_time": [NOW - timedelta(hours=number) for number in range(patients)],
            "age": rng.uniform(20, 80, patients),
            "glucose": rng.normal(50 + drift, 5, patients).clip(0, 100),
            "died": (np.arange(patients) % 100 < 100 * share).astype(np.int64),
        }
    )


def in_2099() -> pa.Table:
    return rows().set_column(1, "index_time", pa.array([datetime(2099, 1, 1, tzinfo=UTC)] * 400))


def volume(table: pa.Table) -> NightVolume:
    return NightVolume.of(table, STUDY, PullReport(read=Counter(Observation=10 * table.num_rows)))


def found(before: list[pa.Table], tonight: pa.Table, rules: VolumeRules = AS_USUAL) -> dict[str, list[str]]:
    results = [*volume_rules(tonight, [volume(one) for one in before], volume(tonight), rules, NOW)]
    failed: list[RuleResult] = [one for one in results if not one.passed]
    return {level: [one.rule for one in failed if one.severity == level] for level in ("critical", "warning")}


USUAL = [rows(400 + 3 * night, night=night) for night in range(5)]


def test_a_night_like_those_before_says_nothing_and_the_first_has_nothing_to_be_held_against() -> None:
    assert found(USUAL, rows(420)) == found([], rows()) == {"critical": [], "warning": []}


@pytest.mark.parametrize(
    ("tonight", "rule"),
    [
        (rows(200), "about as many patients as in the 5 accepted nights before: 406"),
        (rows(200), "about as many Observation read as in the 5 accepted nights before: 4,060"),
        (pa.concat_tables([rows(), rows()]), "about as many rows as in the 5 accepted nights before: 406"),
        (pa.concat_tables([rows(), rows()]), "no row is there twice"),
        (
            rows().set_column(1, "index_time", pa.array([datetime(2099, 1, 1, tzinfo=UTC)] * 400)),
            "no index time is in the future",
        ),
    ],
    ids=["half of the patients", "a file cut in half", "everything twice", "every row twice", "the year 2099"],
)
def test_what_no_hospital_does_in_a_night_keeps_it_out(tonight: pa.Table, rule: str) -> None:
    assert rule in found(USUAL, tonight)["critical"]


def test_an_inverted_outcome_and_a_third_of_the_patients_more_are_warned_of() -> None:
    assert found(USUAL, rows(share=0.75))["warning"] == [
        "about the share of outcomes of the 5 accepted nights before: 26.1%"
    ]
    warned = found(USUAL, rows(550))
    assert warned["critical"] == []
    assert "about as many patients as in the 5 accepted nights before: 406" in warned["warning"]


def test_a_hospital_that_says_why_is_let_in_and_is_held_against_that_night_then() -> None:
    larger = rows(900)
    assert found(USUAL, larger)["critical"]
    assert found(USUAL, larger, VolumeRules(refuse=3))["critical"] == []
    assert found([*USUAL, larger], rows(910))["critical"] == []


def test_slow_growth_is_never_refused() -> None:
    nights = [rows(400 + 20 * night) for night in range(40)]
    for night in range(1, 40):
        assert found(nights[max(0, night - NIGHTS) : night], nights[night])["critical"] == []


def test_as_many_nights_are_kept_as_are_looked_at_and_damage_stops_nothing(tmp_path: Path) -> None:
    volumes = Volumes(Vault(tmp_path), STUDY)
    for night in range(NIGHTS + 3):
        volumes.keep(volume(rows(100 + night)))
    assert [one.rows for one in volumes.read()] == [100 + night for night in range(3, NIGHTS + 3)]
    (tmp_path / "vault" / "volumes" / "volumes.json").write_bytes(b"{")
    assert volumes.read() == []


def test_half_a_percent_a_night_is_seen_after_sixty_nights(tmp_path: Path) -> None:
    vault, notes = Vault(tmp_path), list[tuple[str, ...]]()
    for night in (0, 20, 40, 59, 60):
        ref = vault.write(rows(night=night, drift=0.1 * night), STUDY, None)
        champion = vault.cohorts("volumes")[0].digest if night < 60 else vault.cohorts("volumes")[1].digest
        notes.append(check_cohort(tmp_path, STUDY, ref, PullReport(), champion=champion).notes)
    assert notes[0] == ()
    assert any(
        one.startswith("since the first accepted cohort that is kept: glucose: a large shift") for one in notes[-1]
    )
    assert any(one.startswith("since the cohort that the model in use was chosen on: glucose") for one in notes[-1])
