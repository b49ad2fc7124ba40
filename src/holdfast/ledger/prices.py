"""What a call costs, by a versioned table. Amounts are nano-dollars: the cheapest token is not 0.

A charge keeps the version it was priced with; changing the table never changes an old bill.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

MILLION = 1_000_000
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Nano-dollars for a million input and output tokens."""

    input: int
    output: int = 0


def dollars(amount: float) -> int:
    """`amount` dollars in nano-dollars."""
    return round(amount * NANO)


@dataclass(frozen=True, slots=True)
class PriceTable:
    """The prices of one version. A model not in it costs `unknown`, so that no budget is blind to it."""

    version: str
    models: Mapping[str, Price] = field(default_factory=dict)
    unknown: Price = field(default_factory=lambda: Price(dollars(5.0), dollars(20.0)))

    def price(self, model: str) -> Price:
        """The price of `model`."""
        return self.models.get(model, self.unknown)

    def cost(self, model: str, input_tokens: int, output_tokens: int = 0) -> int:
        """Nano-dollars for these tokens, rounded up: a bill never promises less than it will cost."""
        price = self.price(model)
        exact = price.input * input_tokens + price.output * output_tokens
        return -(-exact // MILLION)


DEFAULT = PriceTable(
    version="2026-11",
    models={
        "local": Price(0, 0),
        "wordllama-256": Price(0, 0),
        "extractive-1": Price(0, 0),
        "text-embedding-3-small": Price(dollars(0.02)),
        "text-embedding-3-large": Price(dollars(0.13)),
        "text-embedding-ada-002": Price(dollars(0.10)),
        "gpt-4o-mini": Price(dollars(0.15), dollars(0.60)),
        "gpt-4o": Price(dollars(2.50), dollars(10.00)),
        "gpt-4.1": Price(dollars(2.00), dollars(8.00)),
        "gpt-4.1-mini": Price(dollars(0.40), dollars(1.60)),
        "gpt-4.1-nano": Price(dollars(0.10), dollars(0.40)),
    },
)
"""List prices in US dollars per million tokens; override them for your contract."""


def split(total: int, weights: list[int]) -> list[int]:
    """`total` shared out by weight in whole numbers that add up to it exactly."""
    whole = sum(weights)
    if whole == 0:
        weights, whole = [1] * len(weights), len(weights)
    shares, given, seen = [], 0, 0
    for weight in weights:
        seen += weight
        upto = total * seen // whole
        shares.append(upto - given)
        given = upto
    return shares
