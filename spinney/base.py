"""What every settings model is made from."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_FILE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)  # Windows opens these, not a file


def is_file_name(text: str) -> bool:
    """Whether a folder or a file can be called so everywhere; Windows knows no dot at the end."""
    return bool(_FILE.fullmatch(text)) and not _DEVICE.fullmatch(text) and not text.endswith(".")


def _file_name(text: str) -> str:
    if not is_file_name(text):
        raise ValueError("folders are called so: no dot at the end, and no device of Windows like con or nul")
    return text


Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
FileName = Annotated[Name, AfterValidator(_file_name)]
"""Of a study or a house: folders, files and addresses are called so."""
Share = Annotated[float, Field(ge=0, lt=1)]


class Settings(BaseModel):
    """Frozen, and a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
