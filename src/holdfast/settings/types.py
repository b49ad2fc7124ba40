"""Types of values that several settings share."""

from typing import Annotated

from pydantic import Field

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
