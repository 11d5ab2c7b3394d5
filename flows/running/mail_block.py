"""E-mail as a Prefect notification: the server of the house loads this class and sends by itself.

Prefect finds it by the entry point `prefect.collections`, so the server has to run where Spinney is installed.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from prefect.blocks.abstract import NotificationBlock, NotificationError
from pydantic import Field, SecretStr

from spinney.configuration.house import secrets_for
from spinney.connectors.smtp import MailSettings, compose, send


class SpinneyMail(NotificationBlock):
    """Tells people of a house by e-mail."""

    _block_type_name = "Spinney Mail"
    _block_type_slug = "spinney-mail"

    settings: dict[str, Any] = Field(description="The mail server and the receivers, as in the house's settings.")
    password: SecretStr = Field(SecretStr(""), description="Of the mail server's user; kept encrypted.")

    @classmethod
    def of(cls, settings: MailSettings) -> SpinneyMail:
        """With the password from the environment variable that the settings name."""
        (password,) = secrets_for("e-mail", settings.password_env) if settings.password_env else [""]
        return cls(settings=settings.model_dump(mode="json"), password=SecretStr(password))

    async def notify(self, body: str, subject: str | None = None) -> None:
        """The same words have the same Message-ID: alerts arrive at least once."""
        settings = MailSettings.model_validate(self.settings)
        identity = hashlib.sha256(f"{subject}\n{body}".encode()).hexdigest()[:32]
        message = compose(settings, subject or "Spinney", body, identity)
        try:
            await asyncio.to_thread(send, settings, message, self.password.get_secret_value())
        except OSError as error:  # also every error of smtplib
            raise NotificationError(f"{settings.host}:{settings.port}: {type(error).__name__}") from None
