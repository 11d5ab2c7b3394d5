"""E-mail as a real mail server gets it."""

from __future__ import annotations

import pytest

from spinney.connectors.smtp import MailSettings, compose, send
from tests.servers.sinks import MailSink


def settings(port: int, **changes: str) -> MailSettings:
    return MailSettings(
        host="127.0.0.1",
        port=port,
        sender="spinney@hospital.example",
        to=("steward@hospital.example", "night@hospital.example"),
        **{"encryption": "none", **changes},
    )


def test_a_message_arrives_whole():
    with MailSink() as mail:
        here = settings(mail.port)
        send(here, compose(here, "A night failed", "Line one\n.\nLine three\n"))
    (letter,) = mail.received
    assert (letter["From"], letter["Subject"]) == ("spinney@hospital.example", "A night failed")
    assert letter["To"] == "steward@hospital.example, night@hospital.example"
    assert letter.get_payload().splitlines() == ["Line one", ".", "Line three"]


def test_copies_of_an_alert_have_the_same_message_id():
    here = settings(25)
    first, second = (compose(here, "A night failed", "words", identity="4711") for _ in range(2))
    assert first["Message-ID"] == second["Message-ID"] == "<4711@hospital.example>"


def test_a_subject_can_bring_no_header_of_its_own():
    letter = compose(settings(25), "A night\r\nBcc: everybody@elsewhere.example", "words")
    assert letter["Bcc"] is None


def test_nothing_is_sent_in_clear_to_a_server_that_offers_no_encryption():
    with MailSink() as mail:
        here = settings(mail.port, encryption="starttls")
        with pytest.raises(OSError, match="STARTTLS"):
            send(here, compose(here, "A night failed", "words"))
    assert mail.received == []
