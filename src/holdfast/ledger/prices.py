"""What a call costs, by a versioned table. Amounts are nano-dollars: the cheapest token is not 0.

A model that is not in the table has no price: its calls are counted and shown as *unpriced*, never with an
invented amount. A charge keeps the version it was priced with; changing the table never changes an old bill.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

MILLION = 1_000_000
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Nano-dollars per million input and output tokens, and per unit: a search of a reranker, a page."""

    input: int
    output: int = 0
    unit: int = 0


FREE = Price(0, 0)


def dollars(amount: float) -> int:
    """`amount` dollars in nano-dollars."""
    return round(amount * NANO)


@dataclass(frozen=True, slots=True)
class ProviderPrices:
    """The settings of one provider: prices of its models, or that it is free."""

    models: Mapping[str, Price] = field(default_factory=dict)
    free: bool = False


@dataclass(frozen=True, slots=True)
class PriceTable:
    """The prices of one version: those of `models`, and a provider's own prices by its identity.

    A model in neither costs `unknown`; None: it has no price.
    """

    version: str
    models: Mapping[str, Price] = field(default_factory=dict)
    unknown: Price | None = None
    providers: Mapping[str, ProviderPrices] = field(default_factory=dict)

    def price(self, model: str, provider: str = "") -> Price | None:
        """The price of a provider's model; None if there is none."""
        own = self.providers.get(provider)
        if own is not None:
            if own.free:
                return FREE
            if model in own.models:
                return own.models[model]
        return self.models.get(model, self.unknown)

    def cost(
        self,
        model: str,
        input_tokens: int,
        output_tokens: int = 0,
        provider: str = "",
        units: int | None = 0,
    ) -> int | None:
        """Nano-dollars for these tokens and units, rounded up: a bill never shows less than the cost.

        None if the model has no price, or if what it charges by is not known.
        """
        price = self.price(model, provider)
        if price is None:
            return None
        exact = price.input * input_tokens + price.output * output_tokens
        total = -(-exact // MILLION) + price.unit * (units or 0)
        return None if units != 0 and not total and price != FREE else total


def _list(*prices: tuple[str, float, float]) -> dict[str, Price]:
    return {model: Price(dollars(input_), dollars(output)) for model, input_, output in prices}


DEFAULT = PriceTable(
    version="2026-11",
    models={
        "local": FREE,
        "wordllama-256": FREE,
        "extractive-1": FREE,
        **_list(
            # Embeddings.
            ("text-embedding-3-small", 0.02, 0),
            ("text-embedding-3-large", 0.13, 0),
            ("text-embedding-ada-002", 0.10, 0),
            ("embed-english-v3.0", 0.10, 0),
            ("embed-multilingual-v3.0", 0.10, 0),
            ("voyage-3", 0.06, 0),
            ("voyage-3-lite", 0.02, 0),
            ("voyage-3-large", 0.18, 0),
            ("voyage-3.5", 0.06, 0),
            ("gemini-embedding-001", 0.15, 0),
            # Chat.
            ("gpt-5", 1.25, 10.00),
            ("gpt-5-mini", 0.25, 2.00),
            ("gpt-5-nano", 0.05, 0.40),
            ("gpt-4.1", 2.00, 8.00),
            ("gpt-4.1-mini", 0.40, 1.60),
            ("gpt-4.1-nano", 0.10, 0.40),
            ("gpt-4o", 2.50, 10.00),
            ("gpt-4o-mini", 0.15, 0.60),
            ("gpt-4-turbo", 10.00, 30.00),
            ("gpt-4", 30.00, 60.00),
            ("gpt-3.5-turbo", 0.50, 1.50),
            ("o1", 15.00, 60.00),
            ("o3", 2.00, 8.00),
            ("o3-mini", 1.10, 4.40),
            ("o4-mini", 1.10, 4.40),
            ("claude-opus-4-1", 15.00, 75.00),
            ("claude-sonnet-4-5", 3.00, 15.00),
            ("claude-haiku-4-5", 1.00, 5.00),
            ("claude-3-5-haiku-20241022", 0.80, 4.00),
            ("claude-3-haiku-20240307", 0.25, 1.25),
            ("gemini-2.5-pro", 1.25, 10.00),
            ("gemini-2.5-flash", 0.30, 2.50),
            ("gemini-2.5-flash-lite", 0.10, 0.40),
            ("gemini-2.0-flash", 0.10, 0.40),
        ),
        # Reranking: by the search, not by tokens.
        **dict.fromkeys(
            ("rerank-v3.5", "rerank-english-v3.0", "rerank-multilingual-v3.0"), Price(0, 0, dollars(0.002))
        ),
    },
)
"""List prices in US dollars per million tokens. Checked on 2026-11-16 against pricing guides and price tables
of other projects that cite the providers' own pages of 2025 and 2026, not against those pages: check them,
and set your own in `[providers.NAME.prices]`. A model about which those disagree, or say nothing, is not
here. Long prompts, caches and batches may be priced otherwise."""


def split(total: int, weights: list[int]) -> list[int]:
    """`total` split by weight into whole numbers that add up to it exactly."""
    whole = sum(weights)
    if whole == 0:
        weights, whole = [1] * len(weights), len(weights)
    shares, assigned, seen = [], 0, 0
    for weight in weights:
        seen += weight
        upto = total * seen // whole
        shares.append(upto - assigned)
        assigned = upto
    return shares
