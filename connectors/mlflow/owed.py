"""Models that rounds have made and that are not in the registry yet, kept whole: any later run can register them.

registry/owed/STUDY/N/    of round N; gone when its version is there and settled
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.connectors.mlflow.lineage import Lineage
from spinney.connectors.mlflow.loader import read_model, write_model
from spinney.connectors.mlflow.store import RegistryFailed
from spinney.errors import Refused
from spinney.storage.files import room_in, sync_folder, sync_tree
from spinney.storage.private import private_folder

if TYPE_CHECKING:
    from spinney.choice.model import FederatedForest

MODEL, WORDS = "model", "owed.json"


@dataclass(frozen=True)
class OwedModel:
    """What a registry needs to make a version."""

    model: FederatedForest
    lineage: Lineage
    evidence: Mapping[str, Any]
    figures: Mapping[str, float]
    precision: float
    promote: bool | None  # None: a steward decides

    def put_by(self, folder: Path) -> None:
        """Whole or not at all, and on the disk."""
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        plain = {
            "lineage": self.lineage.model_dump(mode="json"),
            "evidence": self.evidence,
            "figures": self.figures,
            "precision": self.precision,
            "promote": self.promote,
        }
        with room_in(private_folder(folder.parent)):
            write_model(self.model, self.precision, private_folder(partial) / MODEL)
            (partial / WORDS).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")
            sync_tree(partial)
            partial.rename(folder)
            sync_folder(folder.parent)

    @classmethod
    def read(cls, folder: Path) -> OwedModel:
        """What was put by, checked."""
        try:
            plain = json.loads((folder / WORDS).read_bytes())
            model, lineage = read_model(folder / MODEL), Lineage.model_validate(plain["lineage"])
            told = plain["evidence"], plain["figures"], plain["precision"], plain["promote"]
        except (OSError, ValueError, KeyError, Refused):
            raise RegistryFailed(f"{folder} is damaged: the model of that round is lost; delete the folder") from None
        if model.digest != lineage.model_digest:
            raise RegistryFailed(f"{folder} holds another model than it says; delete the folder")
        return cls(model, lineage, *told)


def owed_rounds(folder: Path) -> list[int]:
    """Rounds whose models wait, the oldest first."""
    return sorted(int(one.name) for one in folder.glob("*") if one.name.isdecimal()) if folder.exists() else []
