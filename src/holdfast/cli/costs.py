"""Shows the estimated cost before work is requested; a person at a terminal may decline."""

import sys

from rich.console import Console

from holdfast.ledger import prices
from holdfast.ledger.estimates import Forecast
from holdfast.service import formatting
from holdfast.service.estimates import Estimate


def nano_dollars(amount: float | None) -> int | None:
    """US dollars of the command line; None for none."""
    return None if amount is None else prices.dollars(amount)


def sentence(estimate: Estimate) -> str:
    """The estimate in one line."""
    forecast = estimate.forecast
    about = "" if estimate.exact else "about "
    price = formatting.paid(forecast.cost, forecast.unpriced_calls)
    return (
        f"{formatting.count(estimate.documents, 'document')}, {about}{price}: "
        f"{formatting.count(forecast.calls, 'paid call')}, {forecast.known_calls} reused"
    )


def agreed(console: Console, estimate: Estimate, what: str, *, yes: bool) -> bool:
    """True when it may be asked for: it costs nothing, somebody said yes, or nobody is there to be asked."""
    return accepted(console, f"estimate for {what}: {sentence(estimate)}", estimate.forecast, yes=yes)


def accepted(console: Console, sentence: str, forecast: Forecast, *, yes: bool) -> bool:
    """As `agreed`, for a price in other words."""
    console.print(sentence, markup=False)
    interactive = sys.stdin.isatty() and console.is_terminal
    if yes or not interactive or not (forecast.cost or forecast.unpriced_calls):
        return True
    return console.input("Continue? [y/N] ").strip().lower() in {"y", "yes"}
