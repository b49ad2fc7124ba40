"""Amounts of money as an application writes them: "0.02 USD"."""

import re
from decimal import Decimal
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.ledger.prices import NANO

_AMOUNT = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))? USD", re.ASCII)


def nanos(amount: Any) -> int:
    """The amount in nano-dollars; BadRequestError unless it is written like "0.02 USD"."""
    match = _AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    if match is None:
        message = f'{amount!r:.80} is no price; write dollars with at most 9 decimals, like "0.02 USD"'
        raise BadRequestError(message, code="bad_price")
    return int(Decimal(amount.removesuffix(" USD")) * NANO)
