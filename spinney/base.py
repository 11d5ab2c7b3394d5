"""What every settings model is made from."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
Share = Annotated[float, Field(ge=0, lt=1)]


class Settings(BaseModel):
    """Frozen, and a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
