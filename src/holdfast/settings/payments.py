"""Providers of embeddings and answers, and how orders are paid."""

from decimal import Decimal
from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field, SecretStr

from holdfast.settings import providers
from holdfast.settings.providers import ProviderSettings

_PROVIDER = r"^([A-Za-z][A-Za-z0-9_-]*|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"


class PayingSettings(pydantic.BaseModel):
    """Providers of embeddings and answers, and how orders are paid."""

    embedding_provider: Annotated[str, Field(pattern=_PROVIDER)] = Field(
        default="local",
        description=(
            "Who embeds: `openai`, a server of that wire format; `local`, a small model on board; the name "
            "of a `[providers.NAME]`; or `module:name`, a function of yours that makes a provider."
        ),
    )
    embedding_base_url: str | None = Field(
        default=None,
        description="Address of the embedding server with its `/v1`; unset means the provider's own.",
    )
    embedding_model: str | None = Field(
        default=None, description="Name of the embedding model; unset means the provider's default."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="Key for the embedding server.")
    embedding_key_retention: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description=(
            "Seconds for which the embedding server honours an `Idempotency-Key`; 0: it does not. "
            "With it, an order in doubt is sent again at no cost."
        ),
    )
    llm_provider: Annotated[str, Field(pattern=_PROVIDER)] = Field(
        default="local",
        description=(
            "Who writes answers: `openai`, a server of that wire format; the name of a `[providers.NAME]`; "
            "`module:name`, a provider of yours; or `local`, a stand-in on board that copies out of the text "
            "and is no language model."
        ),
    )
    llm_base_url: str | None = Field(
        default=None,
        description="Address of the language model's server with its `/v1`; unset means the provider's own.",
    )
    llm_model: str | None = Field(
        default=None, description="Name of the language model; unset means the provider's default."
    )
    llm_api_key: SecretStr | None = Field(default=None, description="Key for the language model's server.")
    llm_key_retention: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="As `EMBEDDING_KEY_RETENTION`, for the language model's server."
    )
    providers: dict[str, ProviderSettings] = Field(
        default_factory=dict,
        description=(
            "Servers by a name of your own, as tables `[providers.NAME]` of the settings file: address, key, "
            "prices, parameters and limits. See how-to/control-spending."
        ),
    )
    in_doubt: Literal["resend", "park"] = Field(
        default="resend",
        description="An order whose outcome a crash hid is sent again with its key, or kept for a person.",
    )
    park_above: Annotated[Decimal, Field(ge=0)] | None = Field(
        default=None,
        description="Price in US dollars above which an order in doubt waits for a person anyway.",
    )
    max_run_cost: Annotated[Decimal, Field(ge=0)] | None = Field(
        default=None,
        description=(
            "US dollars that one run may spend at most, unless its request says so itself (`max_cost`). The "
            "order that would pass it is not sent, and the run fails; what was paid stays."
        ),
    )
    resend_early_below: Annotated[Decimal, Field(ge=0)] = Field(
        default=Decimal("0.05"),
        description=(
            "Price in US dollars up to which an order without a key, whose worker fell silent, counts as in "
            "doubt two seconds after `LEASE_TTL`; a dearer one after its own deadline. One whose process has "
            "provably died is in doubt at once."
        ),
    )
    order_deadline: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=60.0,
        description="Seconds that one paid exchange may take in all; then its connection is closed.",
    )
    pay_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4, description="Orders that one task may have in flight at once."
    )
    pay_wait: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=30.0,
        description="Seconds to wait for a worker that pays for the same input, before a task is put back.",
    )

    @pydantic.field_validator("providers")
    @classmethod
    def _told_apart(cls, table: dict[str, ProviderSettings]) -> dict[str, ProviderSettings]:
        return providers.checked(table)

    @pydantic.model_validator(mode="after")
    def _known_providers(self) -> Self:
        """Who embeds and who answers is somebody that is known here, and is described in one place."""
        for part in ("embedding", "llm"):
            name = getattr(self, f"{part}_provider")
            if ":" not in name and name not in {"local", "openai", *self.providers}:
                raise ValueError(
                    f"HOLDFAST_{part.upper()}_PROVIDER is {name}; known are local, openai, module:name and "
                    "the names of [providers.NAME]"
                )
            own = [each for each in ("base_url", "api_key") if getattr(self, f"{part}_{each}") is not None]
            if name in self.providers and own:
                setting = f"HOLDFAST_{part.upper()}_{own[0].upper()}"
                raise ValueError(f"{setting} and [providers.{name}] say it twice; keep one of them")
        return self

    @pydantic.field_validator("embedding_base_url", "llm_base_url")
    @classmethod
    def _web_address(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("should start with http:// or https://")
        return None if url is None else url.rstrip("/")
