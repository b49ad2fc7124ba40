"""Parsing, chunking, and what may run once a document is ready."""

from typing import Annotated, Literal

import pydantic
import pydantic_settings
from pydantic import Field, SecretStr


class DocumentSettings(pydantic.BaseModel):
    """Parsing, chunking, and what may run once a document is ready."""

    chunk_size: Annotated[int, Field(ge=16, le=100_000)] = Field(
        default=256, description="Maximum tokens per chunk; a collection may override it."
    )
    slice_pages: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=12, description="PDF pages per task; a collection may override it."
    )
    slice_rows: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=3000, description="Spreadsheet rows per task; a collection may override it."
    )
    ocr: Literal["auto", "on", "off"] = Field(
        default="auto",
        description=(
            "Read pages without text by OCR: `auto` if the extra `ocr` is installed, `on` requires it, `off`"
            " never; a collection may override it."
        ),
    )
    ocr_languages: Annotated[str, Field(pattern=r"^[A-Za-z_]{3,24}(\+[A-Za-z_]{3,24}){0,7}$")] = Field(
        default="eng",
        description="Languages of scanned pages, such as `eng+deu`; a collection may override it.",
    )
    most_bytes: Annotated[int, Field(ge=1024)] = Field(
        default=256 * 1024 * 1024, description="Maximum size of a document, in bytes."
    )
    most_import: Annotated[int, Field(ge=1024)] = Field(
        default=10 * 1024**3, description="Maximum size of an import, in bytes; four times that unpacked."
    )
    parsers: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Your own parsers: comma-separated `module:name`, asked before the formats that Holdfast "
            "knows, in the same limited process."
        ),
    )
    parse_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=60.0, description="Seconds allowed for parsing one slice of a document."
    )
    parse_memory: Annotated[int, Field(ge=64, le=65_536)] = Field(
        default=512, description="Memory limit of the process that parses documents, in MiB."
    )
    estimate_seconds: Annotated[float, Field(gt=0, le=300)] = Field(
        default=5.0, description="Seconds allowed for an estimate requested over the API."
    )
    estimate_processes: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4,
        description="Processes per API server that parse texts for estimates; a tenant may use half of them.",
    )
    fetch_private: bool = Field(
        default=False, description="Allow documents to be fetched from private, loopback and link-local IPs."
    )
    source_buckets: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Buckets that sources may read with the keys of the server itself (environment, instance role):"
            " comma-separated names, `bucket@URL` for one at another endpoint. Never that of BLOBS_URL: it"
            " holds the documents of all tenants."
        ),
    )
    source_folders: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=(
            "Folders of the server that may be sources of collections, with all below them: comma-separated"
            " absolute paths."
        ),
    )
    source_items: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=50_000, description="Maximum number of items of one source."
    )
    analysers: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description=("Your own functions that actions may run on documents: comma-separated `module:name`."),
    )
    flow_functions: Annotated[tuple[str, ...], pydantic_settings.NoDecode] = Field(
        default=(),
        description="Your own functions that steps of flows may call: comma-separated `module:function`.",
    )
    flow_function_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=60.0, description="Seconds that one call of such a function may take."
    )
    flow_function_memory: Annotated[int, Field(ge=64, le=1_048_576)] = Field(
        default=2048, description="Memory limit of the process that runs such functions, in MiB."
    )
    webhook_private: bool = Field(
        default=False,
        description="Allow webhooks and callbacks to private, loopback and link-local IPs.",
    )
    webhook_key: Annotated[SecretStr, Field(min_length=32)] | None = Field(
        default=None, description="Derives the webhooks' signing secrets, so that the database stores none."
    )
    webhook_seconds: Annotated[float, Field(gt=0, le=300)] = Field(
        default=15.0, description="Seconds to wait for a webhook's receiver to respond."
    )
    webhook_give_up_after: Annotated[float, Field(gt=0, le=30 * 86_400)] = Field(
        default=86_400.0, description="Seconds for which a failed webhook delivery is retried."
    )
