"""How documents are read and cut, and what may follow when they are ready."""

from typing import Annotated

import pydantic
import pydantic_settings
from pydantic import Field, SecretStr


class DocumentSettings(pydantic.BaseModel):
    """How documents are read and cut, and what may follow when they are ready."""

    chunk_size: Annotated[int, Field(ge=16, le=100_000)] = Field(
        default=256, description="Tokens that a chunk holds at most, unless a collection says otherwise."
    )
    slice_pages: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=12, description="Pages of a PDF that are one task, unless a collection says otherwise."
    )
    slice_rows: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=3000, description="Rows of a sheet that are one task, unless a collection says otherwise."
    )
    most_bytes: Annotated[int, Field(ge=1024)] = Field(
        default=256 * 1024 * 1024, description="Bytes that a document may have."
    )
    most_import: Annotated[int, Field(ge=1024)] = Field(
        default=10 * 1024**3, description="Bytes that a bundle may have; unpacked, four times as many."
    )
    parse_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=60.0, description="Seconds that reading one slice of a document may take."
    )
    parse_memory: Annotated[int, Field(ge=64, le=65_536)] = Field(
        default=512, description="Mebibytes that the process which reads documents may use."
    )
    estimate_seconds: Annotated[float, Field(gt=0, le=300)] = Field(
        default=5.0, description="Seconds that an estimate over the API may take."
    )
    estimate_processes: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4,
        description="Processes of one API that read texts to be estimated; a tenant has half at a time.",
    )
    fetch_private: bool = Field(
        default=False, description="Allow documents from private, loopback and link-local addresses."
    )
    analysers: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Functions of your own that actions may run over documents: `module:name`, separated by commas."
        ),
    )
    webhook_private: bool = Field(
        default=False,
        description="Allow webhooks and callbacks to private, loopback and link-local addresses.",
    )
    webhook_key: Annotated[SecretStr, Field(min_length=32)] | None = Field(
        default=None, description="Makes the secrets drawn for webhooks, so that the database holds none."
    )
    webhook_seconds: Annotated[float, Field(gt=0, le=300)] = Field(
        default=15.0, description="Seconds that the receiver of a webhook has to answer."
    )
    webhook_give_up_after: Annotated[float, Field(gt=0, le=30 * 86_400)] = Field(
        default=86_400.0, description="Seconds for which a webhook that does not land is tried again."
    )
