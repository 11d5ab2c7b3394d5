"""What a house says about itself besides its data: where exchange and registry are. Secrets are only named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from spinney.base import FileName, Name, Settings
from spinney.configuration.study_file import read_settings
from spinney.connectors.exchange import Exchange
from spinney.connectors.smtp import MailSettings
from spinney.errors import SpinneyError

Admission = Literal["auto", "manual"]


class SecretMissing(SpinneyError):
    """An environment variable that a settings file names is not set."""


def secrets_for(who: str, *variables: str) -> list[str]:
    """What these environment variables hold, or SecretMissing with all that are not set."""
    missing = sorted(variable for variable in variables if variable not in os.environ)
    if missing:
        raise SecretMissing(f"{who} needs {', '.join(missing)} in the environment; set it and try again")
    return [os.environ[variable] for variable in variables]


class ExchangeAccess(Settings):
    """The mailbox between the houses, and how this house gets at it."""

    url: str = Field(description="A folder, s3://bucket/prefix or sftp://user@host:port/path.")
    options: dict[str, str | int | bool] = Field(
        {}, description="For s3: endpoint_url and others of s3fs; for sftp: known_hosts and others of paramiko."
    )
    secrets: dict[str, str] = Field(
        {}, description="Option -> environment variable that holds it, such as secret: EXCHANGE_SECRET."
    )

    def open(self) -> Exchange:
        """The exchange; nothing is connected before the first message."""
        given = dict(zip(self.secrets, secrets_for("the exchange", *self.secrets.values()), strict=True))
        return Exchange.open(self.url, {**self.options, **given})


class AboutSettings(Settings):
    """What only people know about a house, for catalogues and records. Nothing is sent by it; it stands in exports."""

    organisation: str = Field("", max_length=200, description="The hospital, as it is called in public.")
    url: str = Field("", max_length=500, description="Its page, or that of the data's keeper.")
    contact: str = Field("", max_length=200, description="An e-mail address for questions about data and models.")
    licence: str = Field("", max_length=500, description="Address of the licence under which a model may be used.")
    applies: str = Field("", max_length=500, description="Address of the law under which data may be asked for.")


class RegistrySettings(Settings):
    """Where models are kept."""

    tracking: str = Field("", description="Address of the hospital's MLflow server; empty: SQLite in the home folder.")
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{0,64}$")] = Field(
        "", description="Before every model's name, where several sites share a server."
    )


class AlertSettings(Settings):
    """Who is told when a night fails or does not happen. They hold names, states and a link, never a reason."""

    webhook: str = Field("", description="Address that gets a JSON object by POST; empty: none.")
    webhook_env: str = Field("", description="Environment variable that holds the address, where it is a secret.")
    mail: MailSettings | None = Field(None, description="Mail server and receivers; empty: no e-mail.")
    silent_hours: float = Field(26, gt=0, description="Tell when no round has completed for so long.")
    lost_seconds: int = Field(
        300, ge=90, description="A run whose process has been silent for so long is taken for lost and ended."
    )


class PrefectSettings(Settings):
    """How Prefect runs the flows of this house."""

    schedule: Literal["study", "none"] = Field(
        "study", description="none: somebody else starts the rounds, such as a coordinator with `start_sites`."
    )
    pool: str = Field("", description="Work pool of the hospital's own workers; empty: `serve` runs the flows.")


class CoordinatorSettings(Settings):
    """Who opens the rounds, and where the exchange is."""

    name: FileName = Field(description="The coordinator's name in the study's roster.")
    home: Path = Field(Path("home"), description="The house's private folder; it holds everything that Spinney keeps.")
    exchange: ExchangeAccess = Field(description="The mailbox between the houses.")
    start_sites: dict[Name, str] = Field(
        {}, description="Site -> its deployment on a Prefect server that all share, such as ash: site-round/ash-heart."
    )
    alerts: AlertSettings = Field(AlertSettings(), description="Who is told when a night fails.")
    prefect: PrefectSettings = Field(PrefectSettings(), description="How Prefect runs this house's flows.")


def read_coordinator(path: str | Path) -> CoordinatorSettings:
    """The settings in coordinator.yaml. Paths in it are relative to its folder."""
    return anchored_house(read_settings(path, CoordinatorSettings), Path(path).resolve().parent)


def anchored_house(settings: CoordinatorSettings, folder: Path) -> CoordinatorSettings:
    """The same settings with relative paths below a folder."""
    exchange = anchored_exchange(settings.exchange, folder)
    return settings.model_copy(update={"home": folder / settings.home, "exchange": exchange})


def anchored_exchange(access: ExchangeAccess, folder: Path) -> ExchangeAccess:
    """A folder's relative path is meant relative to the settings file."""
    if "://" in access.url:
        return access
    return access.model_copy(update={"url": str(folder / access.url)})
