"""Every kind of message: what it may not be, and what it is called."""

from __future__ import annotations

import numpy as np
import pytest

from spinney.errors import Refused
from spinney.federation.messages import Manifest
from spinney.federation.seam import Parcel


@pytest.mark.parametrize("senders", [(), ("ash",), ("ash", "ash"), ("elm", "ash")])
def test_a_manifest_names_every_owner_once_and_in_order(senders) -> None:
    parcels = tuple(Parcel(sender, "0" * 64, 1) for sender in senders)
    with pytest.raises(Refused, match="of each forest once"):
        Manifest(parcels, (np.ones(2, dtype=bool), np.ones(2, dtype=bool)))
