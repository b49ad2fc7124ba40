"""`[providers.NAME]` in the settings file: named servers, with prices and parameters."""

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import pydantic
from pydantic import ConfigDict, Field, SecretStr

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}")
# Names of the built-in providers, which the file cannot take.
TAKEN = frozenset({"local", "local-extractive"})
Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000)]


class _Part(pydantic.BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class PriceSettings(_Part):
    """US dollars for a million tokens; or for one search of a reranker, or for one page of a document."""

    input: Dollars = Decimal(0)
    output: Dollars = Decimal(0)
    search: Dollars = Decimal(0)
    page: Dollars = Decimal(0)

    @property
    def unit(self) -> Decimal:
        """The price of a search or a page."""
        return self.search or self.page

    @pydantic.model_validator(mode="after")
    def _complete(self) -> "PriceSettings":
        if not {"input", "search", "page"} & self.model_fields_set:
            raise ValueError(
                "set `input`, the price of a million tokens; or `search`, that of one search; or `page`"
            )
        return self


class ModelSettings(_Part):
    """What differs for one model of a provider."""

    parameters: dict[str, Any] | None = None


class ProviderSettings(_Part):
    """A server of the OpenAI wire format, a reranker of Cohere's, or one that reads documents for parsers.

    One of Anthropic's is for the gateway alone. `model` is the reranker's.
    """

    wire: Literal["openai", "anthropic", "cohere", "documents"] = "openai"
    base_url: str | None = None
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    identity: str | None = None
    key_retention: Annotated[float, Field(ge=0)] = 0.0
    max_inputs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    deadline: Annotated[float, Field(ge=1, le=3600)] | None = None
    api_key_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,60}$")] | None = None
    max_answer: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] | None = None
    free: bool = False
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    parameters: dict[str, Any] | None = None
    models: dict[str, ModelSettings] = Field(default_factory=dict)

    @property
    def named(self) -> str:
        """The name in content keys, bills and metrics: `identity` if set, otherwise made from the URL."""
        if self.identity is not None:
            return self.identity
        return self.wire if self.base_url is None else f"{self.wire}@{urlsplit(self.base_url).netloc}"

    @property
    def key(self) -> str:
        """The API key; empty if none is needed."""
        if self.api_key_env is not None:
            return os.environ.get(self.api_key_env, "")
        return "" if self.api_key is None else self.api_key.get_secret_value()

    @pydantic.model_validator(mode="after")
    def _agree(self) -> "ProviderSettings":
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url should start with http:// or https://")
        if self.api_key is not None and self.api_key_env is not None:
            raise ValueError("set api_key or api_key_env, not both")
        if self.api_key_env is not None and not os.environ.get(self.api_key_env):
            raise ValueError(f"api_key_env names {self.api_key_env}, which is not set in the environment")
        if self.base_url is None and not self.key:
            raise ValueError("set api_key or api_key_env, or base_url of a server that needs no key")
        if self.identity is not None and (not IDENTITY.fullmatch(self.identity) or self.identity in TAKEN):
            raise ValueError("identity should be letters, digits and . _ : @ / -, at most 200")
        if self.model is not None and self.wire != "cohere":
            raise ValueError("model is for a reranker (wire = cohere); set EMBEDDING_MODEL or LLM_MODEL")
        self._check_wire()
        if self.free and self.prices:
            raise ValueError("free = true and prices contradict each other")
        return self

    def _check_wire(self) -> None:
        if self.wire == "documents":
            if self.base_url is None:
                raise ValueError("wire is documents, so base_url is required")
            if self.parameters is not None or self.models or self.max_inputs or self.max_tokens:
                raise ValueError("parameters, models, max_inputs and max_tokens are for wire = openai")
            if any(price.search for price in self.prices.values()):
                raise ValueError("prices by search are for wire = cohere")
            return
        if self.wire == "anthropic" and (self.parameters is not None or self.models or self.max_inputs):
            raise ValueError("parameters, models and max_inputs are for wire = openai")
        if self.api_key_header is not None or self.max_answer is not None:
            raise ValueError("api_key_header and max_answer are for wire = documents")
        if any(price.page for price in self.prices.values()):
            raise ValueError("prices by page are for wire = documents")


def checked(table: Mapping[str, ProviderSettings]) -> dict[str, ProviderSettings]:
    """The table, if names and identities are valid and unique; ValueError names the one that is not."""
    identities: dict[str, str] = {}
    for name, provider in sorted(table.items()):
        if not NAME.fullmatch(name) or name in TAKEN:
            raise ValueError(f"{name!r:.60} is not a valid provider name; use letters, digits, _ and -")
        if (other := identities.setdefault(provider.named, name)) != name:
            raise ValueError(
                f"{other} and {name} have the same identity {provider.named}; give one its own `identity`"
            )
    return dict(table)
