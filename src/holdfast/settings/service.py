"""The API, its limits, logs and traces."""

from typing import Annotated, Literal

import pydantic
from pydantic import Field


class ServiceSettings(pydantic.BaseModel):
    """The API, its limits, logs and traces."""

    host: str = Field(
        default="127.0.0.1",
        description="Address on which the API is served; another than this machine's needs an API key first.",
    )
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=8642, description="Port of the API; 0: a free one, which `holdfast api` prints."
    )
    api_threads: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="Requests that one API process works on at a time; more wait for their turn."
    )
    most_json: Annotated[int, Field(ge=1024)] = Field(
        default=16 * 1024 * 1024, description="Bytes that a text may have which is sent to the API as JSON."
    )
    body_pause: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=30.0, description="Seconds that a client may take for a head, or pause in body or answer."
    )
    api_rate: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        default=500.0, description="Requests a second that an API key may make of one process of the API."
    )
    api_concurrency: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100, description="Requests of an API key that one process of the API carries out at once."
    )
    api_listeners: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=1000, description="Event streams of an API key that one process of the API keeps open."
    )
    api_clients: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=4000, description="Connections of clients that one process of the API keeps; more get 503."
    )
    api_connections: Annotated[int, Field(ge=1, le=200)] = Field(
        default=8, description="Database connections that the API keeps; when busy up to three times that."
    )
    quota_documents: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Documents that a tenant may hold, unless `holdfast quota set` says otherwise; 0: any.",
    )
    quota_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Bytes that the originals of a tenant's documents may have, likewise; 0: no limit.",
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="How workers write their log: lines for people, or JSON objects."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least serious lines that are written to the log."
    )
    otel_url: str | None = Field(
        default=None, description="Collector of traces, like `http://HOST:4318/v1/traces` (extra `otel`)."
    )
