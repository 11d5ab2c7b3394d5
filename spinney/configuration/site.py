"""site.yaml: where a site's data are, and what its codes and units mean. Secrets are only named, never written."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from spinney.base import FileName, Settings
from spinney.cohort.accepted import Accepted, VolumeRules
from spinney.cohort.as_of import AsOf
from spinney.cohort.vault import Vault
from spinney.configuration.house import (
    AboutSettings,
    Admission,
    AlertSettings,
    ExchangeAccess,
    PrefectSettings,
    RegistrySettings,
    anchored_exchange,
)
from spinney.configuration.study_file import read_settings
from spinney.connectors.dask_cluster import DaskSettings
from spinney.connectors.fhir.check import Extent
from spinney.connectors.opt_out.consents import ConsentList
from spinney.connectors.opt_out.file_list import FileList
from spinney.connectors.opt_out.sql_list import SqlList
from spinney.connectors.sources import SourceSettings, Surroundings
from spinney.plugins import SOURCES
from spinney.scoring.settings import ScoresSettings, ScoresTable

if TYPE_CHECKING:
    from spinney.cohort.objections import OptOut
    from spinney.cohort.pull import PullPlan

PublicKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
AnyList = Annotated[FileList | SqlList | ConsentList, Field(discriminator="kind")]
AnySource: Any = Annotated[reduce(or_, SOURCES.values()), Field(discriminator="kind")]


class SiteSettings(Settings):
    """What only this site knows."""

    name: FileName = Field(description="The site's name in the study's roster.")
    home: Path = Field(Path("home"), description="The house's private folder; it holds everything that Spinney keeps.")
    timezone: str = Field("UTC", description="Of times that are written without one, such as Europe/Berlin.")
    as_of: AsOf | None = Field(
        None,
        description="What counts as now in the source, where its dates are shifted, such as 2131-05-01 (to its end) or "
        "2131-05-01T12:00; empty: the clock.",
    )
    source: AnySource = Field(description=f"Where the data are: kind {', '.join(SOURCES)}.")
    codes: dict[str, str] = Field({}, description="The site's codes, coded values and sexes in the study's words.")
    units: dict[str, str] = Field({}, description="The site's units in UCUM, such as mmHg: mm[Hg].")
    assumed_units: dict[str, str] = Field({}, description="Unit by the study's code, where the data have none.")
    group_names: dict[str, str] = Field(
        {},
        description="The site's groups in the study's words (system|value): id or identifier of a FHIR Group, word of "
        "the query `groups`, cohort_definition_id of OMOP.",
    )
    validation: Extent = Field("sample", alias="validate", description="How many FHIR resources are validated in full.")
    validation_sample: int = Field(500, ge=1, description="How many of each resource type a sample is.")
    largest_table_mib: int = Field(
        256,
        ge=1,
        description="A cohort that would be larger in memory is refused; every MiB costs a pull more than two.",
    )
    opt_out: tuple[AnyList, ...] = Field(
        (), description="Lists of patients who object, or who agree: kind file, sql or consent; read for every pull."
    )
    volume: VolumeRules = Field(VolumeRules(), description="How far a night may be from the accepted nights before.")
    accepted: Accepted = Field(
        Accepted(),
        description="What this site has nothing of, and somebody has looked why; else it stays out of rounds.",
    )
    lent_leaf: int | None = Field(
        None,
        ge=2,
        description="Fewest distinct patients in a leaf that this site lends, where it wants more than the study asks.",
    )
    dask: DaskSettings | None = Field(None, description="The cluster that grows the trees; empty: this machine.")
    exchange: ExchangeAccess | None = Field(None, description="The mailbox between the houses; empty: no rounds.")
    about: AboutSettings = Field(AboutSettings(), description="What catalogues should know about this house.")
    registry: RegistrySettings = Field(RegistrySettings(), description="Where this site's models are kept.")
    admission: Admission = Field(
        "auto", description="manual: a steward of this site decides before a federated model is used."
    )
    stewards: dict[str, PublicKey] = Field(
        {}, description="Who may decide that: name and public key, as `spinney keys show` prints it."
    )
    scores: ScoresSettings | None = Field(None, description="Where nightly scores of patients go; empty: nowhere.")
    alerts: AlertSettings = Field(AlertSettings(), description="Who is told when a night fails.")
    prefect: PrefectSettings = Field(PrefectSettings(), description="How Prefect runs this site's flows.")

    @property
    def vault(self) -> Vault:
        return Vault(self.home)

    def surroundings(self, study: str) -> Surroundings:
        """What the source may know of this site, for a study (by name)."""
        return Surroundings(self.timezone, lambda: self.vault.store(study))

    def pull_plan(self, study: str) -> PullPlan:
        """All that a pull for a study (by name) may touch."""
        from spinney.cohort.pull import PullPlan  # brings DuckDB, and most commands only read the settings
        from spinney.cohort.selected_events import Maps

        return PullPlan(
            source=self.source.open(self.surroundings(study)),
            table_columns=self.source.table_columns,
            vault=self.vault,
            timezone=self.timezone,
            maps=Maps(self.codes, self.units, self.assumed_units, self.group_names),
            validation=self.validation,
            validation_sample=self.validation_sample,
            largest_table=self.largest_table_mib << 20,
            opt_out=self.objections(),
            as_of=self.as_of,
        )

    def objections(self) -> OptOut:
        """The lists of those who object, and what they may know of this site."""
        from spinney.cohort.objections import OptOut

        around = Surroundings(self.timezone)  # without a store: a list is read anew every night
        lists = tuple(one.beside(self.source) for one in self.opt_out)
        return OptOut(lists, around, lambda: self.source.open(around), self.as_of)


def read_site(path: str | Path) -> SiteSettings:
    """The settings in a file, or StudyInvalid with every mistake in it. Paths in it are relative to its folder."""
    site = read_settings(path, SiteSettings)
    folder = Path(path).resolve().parent
    anchored: SiteSettings = _anchored(site, folder)
    return anchored


def _anchored(settings: Any, folder: Path) -> Any:
    """The same settings with every relative path below `folder`."""
    changes: dict[str, Any] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Path):
            changes[name] = folder / value
        elif isinstance(value, ExchangeAccess):
            changes[name] = anchored_exchange(value, folder)
        elif isinstance(value, SourceSettings | ScoresTable):
            changes[name] = value.anchored(folder)
        elif name == "opt_out":
            changes[name] = tuple(one.anchored(folder) for one in value)
        elif isinstance(value, BaseModel):
            changes[name] = _anchored(value, folder)
    return settings.model_copy(update=changes)
