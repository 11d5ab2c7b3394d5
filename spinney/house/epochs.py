"""What a house keeps of the epoch that is open: its own trees, those that it was lent, and how much they count.

    epochs/<study>/<n>/      of the epoch that was opened in round n; the one before goes when it is whole

Keys, masks and what else belongs to one round are not in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spinney.federation.epochs import Release
from spinney.house import encoding as wire
from spinney.house.round_messages import KeptRelease, orders_of
from spinney.storage.files import RoundState, StateDamaged, sync_folder
from spinney.storage.private import private_folder
from spinney.study.study import Study

RELEASE, MEANS, STUDY = "release", "means", "study"


class Epochs:
    """The epochs of one study in one house."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.folder, self.study = folder, study

    @property
    def newest(self) -> int:
        """The round that opened the epoch of which this house has something; 0: it has nothing."""
        return max((int(path.name) for path in self._folders() if self.read(int(path.name))), default=0)

    def of_round(self, number: int) -> int:
        """The round that opened the epoch of a round: that round itself, when the epoch before is over."""
        newest = self.newest
        return newest if newest and newest <= number < self.next_after(newest) else number

    def next_after(self, epoch: int) -> int:
        """The round that opens the next epoch."""
        return epoch + self.study.epoch_nights

    def read(self, epoch: int) -> dict[str, Any]:
        """What was kept; nothing at a house that was away, or has lost it."""
        path = self.folder / str(epoch)
        kept = dict(RoundState(path)) if path.is_dir() else {}
        return kept if kept.pop(STUDY, "") == self.study.digest else {}  # a study that was changed begins anew

    def keep(self, epoch: int, told: Mapping[str, Any]) -> None:
        """Keep it whole or not at all, and forget the epochs before."""
        if dict(told).keys() == self.read(epoch).keys():
            return
        partial = private_folder(self.folder) / f"{epoch}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        state = RoundState(partial)
        for name, value in {**told, STUDY: self.study.digest}.items():
            state[name] = value
        shutil.rmtree(self.folder / str(epoch), ignore_errors=True)
        partial.rename(self.folder / str(epoch))
        sync_folder(self.folder)
        for path in self._folders():
            if path.name != str(epoch):
                shutil.rmtree(path)

    def _folders(self) -> list[Path]:
        return [path for path in self.folder.glob("*") if path.name.isdecimal()] if self.folder.exists() else []


def written_release(release: Release) -> dict[str, Any]:
    """As a coordinator keeps it."""
    kept = KeptRelease(release.model, orders_of(release.orders))
    return {RELEASE: wire.pack(kept), MEANS: np.asarray(release.means, dtype=np.float64)}


def read_release(kept: Mapping[str, Any], epoch: int) -> Release:
    """What a coordinator has kept; StateDamaged if it is gone."""
    if not {RELEASE, MEANS} <= {*kept}:
        raise StateDamaged(
            f"what the epoch of round {epoch} has told is not in this home any more; restore epochs/ from the backup "
            "and start again"
        )
    told = wire.unpack(kept[RELEASE], KeptRelease)
    orders = {site: wire.decode_message(order.content) for order in told.orders for site in order.sites}
    return Release(told.model, orders, kept[MEANS])
