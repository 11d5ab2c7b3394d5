"""The algorithms, one file each. A new file here is a new algorithm; nothing else changes.

Every file offers one `ALGORITHM`: its settings (with a `name`), its site's part and its coordinator's program.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from operator import or_
from pkgutil import iter_modules
from typing import Annotated, Any

from pydantic import Field

from spinney.federation.seam import Algorithm

_FOUND: list[Algorithm] = [import_module(f"{__name__}.{module.name}").ALGORITHM for module in iter_modules(__path__)]

ALGORITHMS: dict[str, Algorithm] = {found.settings.model_fields["name"].default: found for found in _FOUND}

AnySettings: Any = Annotated[reduce(or_, (found.settings for found in _FOUND)), Field(discriminator="name")]
