"""E-mail as Prefect sends it: by the house's settings, with copies that are known as such."""

from __future__ import annotations

import asyncio
from importlib.metadata import entry_points

import pytest
from prefect.blocks.abstract import NotificationError

from spinney.configuration.house import SecretMissing
from spinney.connectors.smtp import MailSettings
from spinney.flows.running.mail_block import SpinneyMail
from tests.servers.sinks import MailSink


def settings(port: int = 25, **changes: str) -> MailSettings:
    words = {"host": "127.0.0.1", "port": port, "sender": "spinney@hospital.example", "to": ["night@hospital.example"]}
    return MailSettings.model_validate({**words, "encryption": "none", **changes})


def tell(block: SpinneyMail, body: str, subject: str | None = "A night failed") -> None:
    asyncio.run(block.notify(body, subject))


def test_what_prefect_tells_arrives_and_a_second_copy_is_the_same_message():
    with MailSink() as mail:
        block = SpinneyMail.of(settings(mail.port))
        for body in ("run: wood, round 7", "run: wood, round 7", "run: wood, round 8"):
            tell(block, body)
    one, copy, other = mail.received
    assert one["Subject"] == "A night failed"
    assert one.get_payload().strip() == "run: wood, round 7"
    assert one["Message-ID"] == copy["Message-ID"] != other["Message-ID"]


def test_the_password_is_taken_from_the_environment_and_shown_to_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAIL_PASSWORD", "hunter2")
    block = SpinneyMail.of(settings(user="spinney", password_env="MAIL_PASSWORD"))
    assert block.password.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(block) + str(block.model_dump())


def test_a_password_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MAIL_PASSWORD", raising=False)
    with pytest.raises(SecretMissing, match="e-mail needs MAIL_PASSWORD"):
        SpinneyMail.of(settings(user="spinney", password_env="MAIL_PASSWORD"))


def test_a_server_that_is_away_is_named_without_what_was_to_be_said():
    with MailSink() as mail:
        gone = settings(mail.port)
    with pytest.raises(NotificationError, match=rf"127\.0\.0\.1:{gone.port}: ConnectionRefusedError") as failed:
        tell(SpinneyMail.of(gone), "run: wood, round 7")
    assert "wood" not in str(failed.value)


def test_a_prefect_server_finds_the_block_by_itself():
    (found,) = (one.load() for one in entry_points(group="prefect.collections") if one.name == "spinney")
    assert found.SpinneyMail is SpinneyMail
