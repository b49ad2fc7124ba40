"""The API, its limits, logs and traces."""

from typing import Annotated, Literal

import pydantic
from pydantic import Field, SecretStr


class ServiceSettings(pydantic.BaseModel):
    """The API, its limits, logs and traces."""

    host: str = Field(
        default="127.0.0.1",
        description="Address the API listens on; any but a loopback address requires an API key first.",
    )
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=8642, description="Port of the API; 0 picks a free one, which `holdfast api` prints."
    )
    api_key: SecretStr | None = Field(
        default=None, description="API key of the server that `holdfast mcp --url` uses."
    )
    api_threads: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="Requests that one API process handles at a time; others wait."
    )
    most_json: Annotated[int, Field(ge=1024)] = Field(
        default=16 * 1024 * 1024, description="Maximum size of a JSON request body, in bytes."
    )
    body_pause: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=30.0, description="Seconds a client may take to send headers, or stall a body or response."
    )
    api_rate: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        default=500.0, description="Requests per second allowed per API key and API process."
    )
    api_concurrency: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100, description="Concurrent requests allowed per API key and API process."
    )
    api_listeners: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=1000, description="Open event streams allowed per API key and API process."
    )
    api_clients: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=4000, description="Client connections per API process; further ones get 503."
    )
    api_connections: Annotated[int, Field(ge=1, le=200)] = Field(
        default=8,
        description="Database connections the API keeps open; up to three times as many under load.",
    )
    gateway: bool = Field(
        default=True, description="The API also serves the gateway, at `/gateway`. See how-to/gateway."
    )
    gateway_port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=8643, description="Port of `holdfast gateway`; 0 picks a free one, which it prints."
    )
    gateway_concurrency: Annotated[int, Field(ge=1, le=2000)] = Field(
        default=200, description="Calls to providers that one gateway process makes at a time; more get 503."
    )
    gateway_deadline: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=600.0,
        description="Seconds allowed for one call of the gateway, unless `[providers.NAME]` sets `deadline`.",
    )
    gateway_wait: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=120.0,
        description="Seconds a request to the gateway waits for a call that another process is paying for.",
    )
    quota_documents: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Documents allowed per tenant, unless set by `holdfast quota set`; 0: no limit.",
    )
    quota_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Bytes of original files allowed per tenant, likewise; 0: no limit.",
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Log format of workers: plain text or JSON."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum level of logged messages."
    )
    otel_url: str | None = Field(
        default=None, description="Trace collector, e.g. `http://HOST:4318/v1/traces` (extra `otel`)."
    )
