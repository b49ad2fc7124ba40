"""Providers of embeddings and answers, and how orders are paid."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field, SecretStr

from holdfast.settings import providers
from holdfast.settings.providers import ProviderSettings

_PROVIDER = r"^([A-Za-z][A-Za-z0-9_-]*|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"

# What servers are for that give neither embeddings nor answers to workers.
_USES = {
    "anthropic": "is for the gateway only",
    "cohere": "only reranks",
    "documents": "only reads documents",
}


class PayingSettings(pydantic.BaseModel):
    """Providers of embeddings and answers, and how orders are paid."""

    embedding_provider: Annotated[str, Field(pattern=_PROVIDER)] = Field(
        default="local",
        description=(
            "Embedding provider: `openai` (any server with that API), `local` (a small built-in model), the "
            "name of a `[providers.NAME]`, or `module:name` (your own function that returns a provider)."
        ),
    )
    embedding_base_url: str | None = Field(
        default=None,
        description="Base URL of the embedding server, including `/v1`; default: the provider's own.",
    )
    embedding_model: str | None = Field(
        default=None, description="Embedding model; default: the provider's own."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="API key for the embedding server.")
    embedding_key_retention: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description=(
            "Seconds for which the embedding server honours an `Idempotency-Key`; 0: it does not. "
            "If it does, resending an order in doubt costs nothing."
        ),
    )
    llm_provider: Annotated[str, Field(pattern=_PROVIDER)] = Field(
        default="local",
        description=(
            "LLM provider: `openai` (any server with that API), the name of a `[providers.NAME]`, "
            "`module:name` (your own), or `local` (a built-in stand-in that quotes the text; not a language "
            "model)."
        ),
    )
    llm_base_url: str | None = Field(
        default=None,
        description="Base URL of the LLM server, including `/v1`; default: the provider's own.",
    )
    llm_model: str | None = Field(default=None, description="Language model; default: the provider's own.")
    llm_api_key: SecretStr | None = Field(default=None, description="API key for the LLM server.")
    llm_key_retention: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="As `EMBEDDING_KEY_RETENTION`, for the LLM server."
    )
    providers: dict[str, ProviderSettings] = Field(
        default_factory=dict,
        description=(
            "Named servers, as tables `[providers.NAME]` in the settings file: URL, key, prices, parameters "
            "and limits. See how-to/control-spending."
        ),
    )
    in_doubt: Literal["resend", "park"] = Field(
        default="resend",
        description="An order whose outcome is unknown after a crash is resent with its key, or parked.",
    )
    park_above: Annotated[Decimal, Field(ge=0)] | None = Field(
        default=None,
        description="Price in US dollars above which an order in doubt is always parked for a decision.",
    )
    max_run_cost: Annotated[Decimal, Field(ge=0)] | None = Field(
        default=None,
        description=(
            "Maximum spend of one run in US dollars, unless its request sets `max_cost`. An order that would "
            "exceed it is not sent and the run fails; paid results are kept."
        ),
    )
    resend_early_below: Annotated[Decimal, Field(ge=0)] = Field(
        default=Decimal("0.05"),
        description=(
            "If a worker falls silent, its orders without a key count as in doubt two seconds after "
            "`LEASE_TTL` if they cost at most this many US dollars, otherwise after their own deadline. "
            "Orders of a process that provably died are in doubt at once."
        ),
    )
    order_deadline: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=60.0,
        description="Seconds allowed for one paid call in total; then its connection is closed.",
    )
    pay_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4, description="Maximum orders in flight per task."
    )
    pay_wait: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=30.0,
        description="Seconds to wait while another worker pays for the same input; then requeue the task.",
    )

    relay: Literal["auto", "require", "off"] = Field(
        default="auto",
        description=(
            "Who sends paid orders. `auto`: the relay of this host, or the process itself if none runs. "
            "`require`: only a relay; without one, tasks wait. `off`: always the process itself."
        ),
    )
    relay_dir: Path | None = Field(
        default=None,
        description=(
            "Folder of the relay's socket and locks, the same for the relay and its workers; only their user "
            "may enter it. The path of a socket has at most 107 bytes."
        ),
        json_schema_extra={"shown": "`DATA_DIR/relay`"},
    )
    relay_slots: Annotated[int, Field(ge=1, le=2000)] = Field(
        default=200, description="Maximum orders that a relay has in flight."
    )

    @pydantic.field_validator("providers")
    @classmethod
    def _distinct(cls, table: dict[str, ProviderSettings]) -> dict[str, ProviderSettings]:
        return providers.checked(table)

    @pydantic.model_validator(mode="after")
    def _known_providers(self) -> Self:
        """Both providers are known, and each is configured in one place."""
        for part in ("embedding", "llm"):
            name = getattr(self, f"{part}_provider")
            if ":" not in name and name not in {"local", "openai", *self.providers}:
                raise ValueError(
                    f"HOLDFAST_{part.upper()}_PROVIDER is {name}; use local, openai, module:name or "
                    "the name of a [providers.NAME]"
                )
            wire = self.providers[name].wire if name in self.providers else "openai"
            if wire != "openai":
                does = _USES[wire]
                raise ValueError(f"HOLDFAST_{part.upper()}_PROVIDER is {name}, which {does} (wire = {wire})")
            own = [each for each in ("base_url", "api_key") if getattr(self, f"{part}_{each}") is not None]
            if name in self.providers and own:
                setting = f"HOLDFAST_{part.upper()}_{own[0].upper()}"
                raise ValueError(f"{setting} and [providers.{name}] both configure it; remove one of them")
        return self

    @pydantic.field_validator("embedding_base_url", "llm_base_url")
    @classmethod
    def _web_url(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("should start with http:// or https://")
        return None if url is None else url.rstrip("/")
