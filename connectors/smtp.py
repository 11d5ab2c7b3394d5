"""E-mail over SMTP: a few lines of plain text to the people of this house."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from typing import Literal

from pydantic import Field

from spinney.base import Settings

PATIENCE = 30.0


class MailSettings(Settings):
    """The hospital's mail server, and who is told."""

    host: str = Field(description="Name of the mail server.")
    port: int = Field(587, ge=1, le=65535, description="Usually 587 for starttls, 465 for tls, 25 for none.")
    encryption: Literal["starttls", "tls", "none"] = Field("starttls", description="How the connection is protected.")
    user: str = Field("", description="Empty: the server asks nobody who he is.")
    password_env: str = Field("", description="Environment variable that holds the user's password.")
    sender: str = Field(description="Whom the message comes from, such as spinney@hospital.example.")
    to: tuple[str, ...] = Field(min_length=1, description="Who is told.")


def compose(settings: MailSettings, subject: str, text: str, identity: str = "") -> EmailMessage:
    """A message. The same identity gives the same Message-ID, so that a second copy is known as one."""
    message = EmailMessage()
    message["From"], message["To"] = settings.sender, ", ".join(settings.to)
    message["Subject"], message["Date"] = " ".join(subject.split()), formatdate()
    message["Auto-Submitted"] = "auto-generated"
    if identity:
        message["Message-ID"] = f"<{identity}@{settings.sender.rpartition('@')[2]}>"
    message.set_content(text)
    return message


def send(settings: MailSettings, message: EmailMessage, password: str = "") -> None:
    """Hand a message to the server; certificates are those that this machine trusts."""
    context = ssl.create_default_context()
    if settings.encryption == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(settings.host, settings.port, timeout=PATIENCE, context=context)
    else:
        server = smtplib.SMTP(settings.host, settings.port, timeout=PATIENCE)
    with server:
        if settings.encryption == "starttls":
            server.starttls(context=context)
        if settings.user:
            server.login(settings.user, password)
        server.send_message(message)
