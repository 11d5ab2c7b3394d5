"""A study whose permit has ended: no house goes on with it, and what a site keeps of its patients is deleted."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spinney.cohort.purge import forget_study
from spinney.configuration.house import read_coordinator
from spinney.configuration.site import SiteSettings, read_site
from spinney.connectors.exchange import SystemClock
from spinney.demo.federation import Village
from spinney.doctor.findings import check_permits
from spinney.errors import PermitExpired
from spinney.flows.cli import main
from spinney.flows.cli.site_join import show_study
from spinney.flows.site_check import SiteCheckInput, site_check
from spinney.flows.site_monitor import SiteMonitorInput, site_monitor
from spinney.flows.site_round import SiteRoundInput, site_round
from spinney.flows.site_score import SiteScoreInput, site_score
from spinney.house.approvals import Approvals
from spinney.house.audit import Audit
from spinney.house.coordinator_night import CoordinatorNights
from spinney.house.site_night import SiteNights
from spinney.study.study import Study
from spinney.tasks.site import keep_to_permit, score_night_of
from tests.federations import breast_study, breast_village
from tests.made_up import pull_at
from tests.nights import served

ENDED = {"reference": "EK 17/2019", "granted_by": "the ethics committee", "expires": "2020-03-31"}
STUDY = breast_study(permit=ENDED)
SOON = datetime(2020, 3, 31, 23, 59, 59, tzinfo=UTC)


class StoppedClock(SystemClock):
    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return breast_village(tmp_path, ("ash", "birch", "cedar"), permit=ENDED)


def of_patients(home: Path) -> list[Path]:
    kept = [path for what in ("vault", "predictions") for path in (home / what).rglob("*") if path.is_file()]
    return [path for path in kept if path.name != "key" and path.suffix != ".lock"]


def with_patients(village: Village, name: str = "ash") -> SiteSettings:
    """A site that has pulled while it might."""
    site = read_site(village.site_file(name))
    before = STUDY.model_copy(update={"permit": None})
    cohort = pull_at(before, site).cohort
    for folder in (site.home / "predictions/breast", site.vault.folder / "grown/breast"):
        folder.mkdir(parents=True, mode=0o700)
        (folder / "1-1.parquet").write_bytes(b"patients")
    assert cohort.path.exists()
    return site


@pytest.mark.parametrize(
    ("now", "over"),
    [
        (SOON, False),
        (SOON + timedelta(seconds=1), True),
        (datetime.fromisoformat("2020-04-01T01:59:59+02:00"), False),
        (datetime.fromisoformat("2020-04-01T02:00:00+02:00"), True),
    ],
)
def test_a_permit_ends_with_its_last_day(now: datetime, over: bool) -> None:
    assert STUDY.permit is not None
    assert STUDY.permit.is_over(now) is over


def test_another_permit_is_another_study() -> None:
    later = Study.model_validate({**STUDY.model_dump(mode="json"), "permit": {**ENDED, "expires": "2031-03-31"}})
    assert later.digest != STUDY.digest
    later.require_permit(datetime(2031, 3, 31, tzinfo=UTC))


def test_no_house_opens_or_enters_a_round_any_more(village: Village) -> None:
    coordinator = CoordinatorNights(read_coordinator(village.coordinator_file))
    with coordinator.alone(), pytest.raises(PermitExpired, match="EK 17/2019 of breast ended on 2020-03-31"):
        coordinator.run(1)
    assert coordinator.exchange.rounds("breast", coordinator.name) == ()
    nights = SiteNights(read_site(village.site_file("ash")))
    with nights.alone(), pytest.raises(PermitExpired, match="and approve"):
        nights.await_opening()


def test_until_its_last_moment_a_round_is_waited_for(village: Village) -> None:
    nights = SiteNights(read_site(village.site_file("ash")), clock=StoppedClock(SOON))
    nights.require_permit()
    with pytest.raises(PermitExpired):
        SiteNights(
            read_site(village.site_file("ash")), clock=StoppedClock(SOON + timedelta(seconds=1))
        ).require_permit()


def test_a_round_that_was_begun_ends_with_it(village: Village) -> None:
    nights = SiteNights(read_site(village.site_file("ash")))
    nights.rounds.enter(1, "opening")
    nights.memory(1)["epoch"] = "1"
    with pytest.raises(PermitExpired):
        nights.require_permit()
    assert nights.rounds.unfinished is None
    assert not (nights.home / "rounds/breast/1").exists()


def test_nobody_pulls_any_more(village: Village) -> None:
    with pytest.raises(PermitExpired):
        pull_at(STUDY, read_site(village.site_file("ash")))


def test_all_that_is_kept_of_its_patients_goes_and_the_log_tells_it_once(village: Village) -> None:
    site = with_patients(village)
    assert of_patients(site.home)
    told: list[str] = []
    for _ in range(2):
        with pytest.raises(PermitExpired):
            keep_to_permit(site, STUDY, told.append)
    assert of_patients(site.home) == []
    assert len(told) == 2
    lines = [line.entry for line in Audit(site.home / "audit.jsonl").lines() if line.entry.kind == "Permit"]
    assert [one.digest for one in lines] == [STUDY.digest]
    assert "files about its patients were deleted here" in lines[0].words


def test_other_studies_keep_their_patients(village: Village) -> None:
    site = with_patients(village)
    other = pull_at(breast_study(name="other"), site).cohort
    forget_study(site.vault, "breast")
    assert other.path.exists()
    assert {path.parent.name for path in of_patients(site.home)} == {"other"}


@pytest.mark.parametrize(
    ("flow", "form"),
    [
        (site_round, SiteRoundInput),
        (site_check, SiteCheckInput),
        (site_score, SiteScoreInput),
        (site_monitor, SiteMonitorInput),
    ],
)
def test_whatever_runs_next_deletes_and_says_why(flow: Any, form: Any, village: Village) -> None:
    site = with_patients(village)
    with served(village), pytest.raises(PermitExpired, match="EK 17/2019"):
        flow.fn(form(site="ash", study="breast"))
    assert of_patients(site.home) == []


def test_its_champion_scores_nobody_any_more(village: Village) -> None:
    site = with_patients(village)
    with pytest.raises(PermitExpired):
        score_night_of(site)
    assert of_patients(site.home) == []


def test_site_check_says_what_to_do(village: Village) -> None:
    (village.folder / "study.yaml").write_text(STUDY.model_dump_json())
    asked = ["site", "check", str(village.folder / "study.yaml"), "--site", str(village.site_file("ash"))]
    answer = CliRunner().invoke(main, asked)
    assert answer.exit_code == 2
    assert "the permit EK 17/2019 of breast ended on 2020-03-31" in answer.output
    assert "Traceback" not in answer.output


def test_whoever_approves_reads_what_for_and_until_when(capsys: pytest.CaptureFixture[str], village: Village) -> None:
    study = breast_study(permit=ENDED, purpose="Biopsies spared.", legal_basis="GDPR Art. 9(2)(j)")
    show_study(study, Approvals(village.home("ash"), "breast"))
    shown = capsys.readouterr().out
    assert "  purpose: Biopsies spared.\n  legal basis: GDPR Art. 9(2)(j)\n" in shown
    assert "  permit: EK 17/2019 of the ethics committee, until 2020-03-31\n" in shown


@pytest.mark.parametrize(
    ("today", "state"), [(date(2020, 2, 28), "ok"), (date(2020, 3, 15), "warning"), (date(2020, 4, 1), "wrong")]
)
def test_the_doctor_warns_in_time(village: Village, today: date, state: str) -> None:
    now = datetime(today.year, today.month, today.day, tzinfo=UTC)
    found = check_permits(village.home("ash"), now)
    assert found.state == state
    assert "EK 17/2019 of breast ends on 2020-03-31" in found.words
