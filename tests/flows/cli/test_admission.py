"""A model that waits for a steward: only a signed answer of a listed steward counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.configuration.site import read_site
from spinney.connectors.mlflow import CANDIDATE, CHAMPION, Registry
from spinney.demo.federation import Village
from spinney.flows.cli import main
from spinney.house.keys import KeyRing
from spinney.house.site_night import SiteNights
from tests.federations import breast_village, registered
from tests.nights import night

SITES = ("ash", "birch", "cedar")


@pytest.fixture
def village(tmp_path: Path) -> Village:
    """A night is over, and at ash the model waits."""
    village = breast_village(tmp_path, SITES, choice={"admission": "manual"})
    steward = KeyRing(tmp_path / "steward").create()
    path = village.site_file("ash")
    settings = yaml.safe_load(path.read_text()) | {"stewards": {"warden": steward.public.hex()}}
    path.write_text(yaml.safe_dump(settings))
    registered(village, "ash", night(village)[1]["ash"], admission="waiting")
    return village


def spinney(village: Village, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--site", str(village.site_file("ash"))])


def registry(village: Village) -> Registry:
    site = read_site(village.site_file("ash"))
    return Registry(site.home, site.registry)


def test_a_model_waits_as_a_candidate_until_a_steward_says_yes(village: Village, tmp_path: Path) -> None:
    assert "breast round 1: version 1" in spinney(village, "admission", "list").output
    assert registry(village).find("breast", CHAMPION) is None
    done = spinney(
        village,
        *("admission", "decide", "breast", "1", "--yes"),
        *("--steward", "warden", "--steward-home", str(tmp_path / "steward")),
    )
    assert done.output == "version 1 of breast: approved\n"
    assert registry(village).version("breast", CHAMPION).number == 1
    assert "nothing waits" in spinney(village, "admission", "list").output
    line = next(one for one in SiteNights(read_site(village.site_file("ash"))).audit.lines() if one.entry.signature)
    assert line.entry.words == "Decided by warden: the model of round 1 may be used here."


def test_after_a_no_the_model_stays_a_candidate(village: Village, tmp_path: Path) -> None:
    home = str(tmp_path / "steward")
    done = spinney(village, "admission", "decide", "breast", "1", "--no", "--steward", "warden", "--steward-home", home)
    assert done.output == "version 1 of breast: refused\n"
    assert registry(village).find("breast", CHAMPION) is None
    assert registry(village).version("breast", CANDIDATE).number == 1


def decide(village: Village, number: int, answer: str, home: Path) -> Result:
    words = ("admission", "decide", "breast", str(number), answer, "--steward", "warden", "--steward-home", str(home))
    return spinney(village, *words)


def test_a_late_yes_leaves_the_model_of_a_newer_round_in_use(village: Village, tmp_path: Path) -> None:
    registered(village, "ash", night(village)[1]["ash"], admission="waiting")
    assert decide(village, 2, "--yes", tmp_path / "steward").output == "version 2 of breast: approved\n"
    late = decide(village, 1, "--yes", tmp_path / "steward").output
    assert late.startswith("version 1 of breast: approved, but a later round's model came before it\n")
    assert "the model of round 2 has been put forward since" in late
    assert registry(village).version("breast", CHAMPION).number == 2
    assert "nothing waits" in spinney(village, "admission", "list").output
    audit = SiteNights(read_site(village.site_file("ash"))).audit
    audit.verify()
    signed, noted = [one.entry for one in audit.lines()][-2:]
    assert signed.words == "Decided by warden: the model of round 1 may be used here."
    assert signed.signature
    assert noted.words == late.splitlines()[1]
    assert (
        spinney(village, "model", "promote", "1", "--by", "warden").exit_code == 0
    )  # a person who wants it all the same
    assert registry(village).version("breast", CHAMPION).number == 1


def test_a_yes_to_an_older_round_leaves_a_newer_one_that_waits(village: Village, tmp_path: Path) -> None:
    registered(village, "ash", night(village)[1]["ash"], admission="waiting")
    assert "approved, but" in decide(village, 1, "--yes", tmp_path / "steward").output
    assert registry(village).find("breast", CHAMPION) is None
    assert registry(village).version("breast", CANDIDATE).number == 2
    assert "breast round 2: version 2" in spinney(village, "admission", "list").output


def test_after_a_no_to_the_newer_round_the_older_one_may_have_its_yes(village: Village, tmp_path: Path) -> None:
    registered(village, "ash", night(village)[1]["ash"], admission="waiting")
    decide(village, 2, "--no", tmp_path / "steward")
    assert decide(village, 1, "--yes", tmp_path / "steward").output == "version 1 of breast: approved\n"
    assert registry(village).version("breast", CHAMPION).number == 1


def test_a_second_answer_is_written_down_and_says_what_it_did_not_change(village: Village, tmp_path: Path) -> None:
    decide(village, 1, "--yes", tmp_path / "steward")
    second = decide(village, 1, "--no", tmp_path / "steward").output
    assert "version 1 of breast: approved\n" in second
    assert "it was approved before; see: spinney model rollback" in second
    assert registry(village).version("breast", CHAMPION).number == 1


def test_a_stranger_s_signature_does_not_count(village: Village, tmp_path: Path) -> None:
    KeyRing(tmp_path / "stranger").create()
    done = spinney(
        village,
        *("admission", "decide", "breast", "1", "--yes"),
        *("--steward", "warden", "--steward-home", str(tmp_path / "stranger")),
    )
    assert done.exit_code == 2
    assert "this is not the signature of warden under this answer" in done.output
    assert registry(village).find("breast", CHAMPION) is None


def test_a_signature_under_yes_is_none_under_no(village: Village, tmp_path: Path) -> None:
    words = ("admission", "sign", "breast", "1", "--steward-home", str(tmp_path / "steward"))
    yes, no = (spinney(village, *words, answer).output.strip() for answer in ("--yes", "--no"))
    assert len(yes) == len(no) == 128
    assert yes != no


def test_an_answer_that_comes_after_the_next_night_is_about_its_own(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spinney.flows.site_round import ended_before

    nights = SiteNights(read_site(village.site_file("ash")))
    first = {**(nights.result(1) or {}), "run": "the resumed one"}
    nights.keep(1, first)
    nights.keep(2, {**first, "round": 2, "run": "another"})
    monkeypatch.setenv("PREFECT__RUNTIME__FLOW_RUN__ID", "the resumed one")
    assert ended_before(nights, None) == first
    monkeypatch.setenv("PREFECT__RUNTIME__FLOW_RUN__ID", "a new one")
    assert ended_before(nights, None) is None


def test_a_steward_is_asked_because_of_the_study_or_the_site_or_the_form_also_after_a_restart(tmp_path: Path) -> None:
    from spinney.flows.site_round import ADMISSION, SiteRoundInput, is_manual

    path = breast_village(tmp_path, SITES).site_file("ash")
    nights = SiteNights(read_site(path))
    plain, wished = SiteRoundInput(), SiteRoundInput(admission="manual")
    assert not is_manual(nights, plain, 1)
    assert is_manual(nights, wished, 1)
    nights.memory(1)[ADMISSION] = "manual"
    assert is_manual(nights, plain, 1)
    assert not is_manual(nights, plain, 2)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"admission": "manual"}))
    assert is_manual(SiteNights(read_site(path)), plain, 2)
    study = breast_village(tmp_path / "strict", SITES, choice={"admission": "manual"})
    assert is_manual(SiteNights(read_site(study.site_file("ash"))), plain, 2)


def test_nobody_promotes_past_a_steward_who_was_asked_about_this_one_model(tmp_path: Path) -> None:
    village = breast_village(tmp_path, SITES)
    part = night(village)[1]["ash"]
    registered(village, "ash", part, admission="waiting")
    refused = spinney(village, "model", "promote", "1", "--by", "jo")
    assert (refused.exit_code, registry(village).find("breast", CHAMPION)) == (2, None)
    assert "has no steward's approval; get it first" in refused.output
    registered(village, "ash", part, admission="not needed")
    assert spinney(village, "model", "promote", "1", "--by", "jo").exit_code == 0
