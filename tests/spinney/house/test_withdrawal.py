"""A house takes its trees back, and every other house obeys."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.connectors.exchange import Address, Exchange
from spinney.connectors.mlflow import Registry, lineage_of
from spinney.demo.federation import Village
from spinney.house.approvals import Approvals
from spinney.house.audit import Audit
from spinney.house.keys import Identity, KeyRing
from spinney.house.withdrawal import Withdrawal, obey_withdrawals, publish_withdrawal
from spinney.trial.simulate import Simulation
from tests.federations import breast_study, breast_village, simulated
from tests.servers.migrated import registry_in

SITES = ("ash", "birch", "cedar")


@pytest.fixture(scope="module")
def round_one(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    return simulated(breast_village(tmp_path_factory.mktemp("reference"), SITES), breast_study())


@pytest.fixture
def village(tmp_path: Path, round_one: Simulation) -> Village:
    """Ash has the model of round 1 in use."""
    made = breast_village(tmp_path, SITES)
    register(registry_in(made.home("ash")), round_one, 1)
    return made


def register(registry: Registry, result: Simulation, round_: int) -> None:
    outcome = result.outcomes["ash"]
    version = registry.register(breast_study(), outcome, lineage_of(breast_study(), "ash", outcome.model, round_))
    registry.promote("breast", version.number)


def exchange_of(village: Village) -> Exchange:
    return Exchange.open(str(village.folder / "exchange"))


def take_back(village: Village, site: str = "birch", round_: int = 1) -> Withdrawal:
    home = village.home(site)
    return publish_withdrawal(Approvals(home, "breast"), exchange_of(village), site, round_, KeyRing(home).identity())


def obey(village: Village, site: str = "ash") -> list[str]:
    home = village.home(site)
    return obey_withdrawals(Approvals(home, "breast"), exchange_of(village), registry_in(home), site)


def owners(village: Village) -> set[str]:
    return set(registry_in(village.home("ash")).champion("breast")[1].owners_)


def test_the_trees_leave_the_others_models(village):
    assert "birch" in owners(village)
    take_back(village)
    assert obey(village) == ["birch took its trees back: version 2 goes on without them"]
    assert owners(village) == {"ash", "cedar"}
    assert [one.number for one in registry_in(village.home("ash")).versions("breast")] == [2]


def test_without_a_withdrawal_nothing_happens(village):
    assert obey(village) == []
    assert "birch" in owners(village)


def test_obeying_twice_changes_nothing_more(village):
    take_back(village)
    obey(village)
    assert obey(village) == []
    assert owners(village) == {"ash", "cedar"}


def test_said_twice_about_the_same_rounds_it_is_one_document(village):
    assert take_back(village) == take_back(village)
    assert take_back(village, round_=2).number == 2


def test_trees_of_later_rounds_are_given_anew(village, round_one):
    take_back(village, round_=1)
    obey(village)
    register(registry_in(village.home("ash")), round_one, 2)
    assert obey(village) == []
    assert "birch" in owners(village)


def test_it_holds_after_it_has_gone_from_the_exchange(village, round_one):
    take_back(village)
    obey(village)
    (village.folder / "exchange" / "breast" / "birch" / "0" / "withdrawal.1").unlink()
    register(registry_in(village.home("ash")), round_one, 1)  # somebody brought an old model back
    assert len(obey(village)) == 1
    assert owners(village) == {"ash", "cedar"}


def test_a_withdrawal_in_somebody_elses_name_is_refused_and_said(village):
    forged = Withdrawal(study="breast", site="birch", number=1, round=1).signed(Identity.new())
    exchange_of(village).put(Address("breast", "birch", 0, "withdrawal", 1), forged.model_dump_json().encode())
    words = "the withdrawal 1 of birch is refused: it is not signed by birch"
    assert obey(village) == [words]
    assert "birch" in owners(village)
    noted = [line.entry for line in Audit(village.home("ash") / "audit.jsonl").lines()]
    refused = [(one.kind, one.peer, one.words) for one in noted if one.direction == "refused"]
    assert refused == [("RosterRefused", "birch", words)]


def test_a_withdrawal_of_another_site_at_this_one_s_address_is_refused(village):
    document = take_back(village, "cedar")
    exchange_of(village).put(Address("breast", "birch", 0, "withdrawal", 1), document.model_dump_json().encode())
    assert "the withdrawal 1 of birch is refused: it was made for another place" in obey(village)
    assert owners(village) == {"ash", "birch"}


def test_the_audit_log_of_both_houses_tells_of_it(village):
    take_back(village)
    obey(village)
    sent = [line.entry.words for line in Audit(village.home("birch") / "audit.jsonl").lines()]
    came = [line.entry.words for line in Audit(village.home("ash") / "audit.jsonl").lines()]
    assert "Sent to everybody: birch takes back its trees of rounds up to 1." in sent
    assert "Received from birch: it takes back its trees of rounds up to 1." in came


@pytest.mark.parametrize("planted", ["noise", "a forged one", "too much"])
def test_what_somebody_plants_in_its_place_does_not_stop_a_house_from_taking_its_trees_back(village, planted):
    forged = (
        Withdrawal(study="breast", site="birch", number=1, round=999).signed(Identity.new()).model_dump_json().encode()
    )
    raw = {"noise": b"noise", "a forged one": forged, "too much": bytes(20_000)}[planted]
    exchange_of(village).put(Address("breast", "birch", 0, "withdrawal", 1), raw)
    assert take_back(village).number == 2
    assert take_back(village).number == 2
    notes = obey(village)
    assert notes[0].startswith("the withdrawal 1 of birch is refused")
    assert notes[1] == "birch took its trees back: version 2 goes on without them"
    assert owners(village) == {"ash", "cedar"}
