"""What something would cost, said before it is asked for; a person at a terminal may say no."""

import sys

from rich.console import Console

from holdfast.service import figures
from holdfast.service.estimating import Estimate


def told(estimate: Estimate) -> str:
    """The estimate in one line."""
    forecast = estimate.forecast
    about = "" if estimate.exact else "about "
    return (
        f"{figures.count(estimate.documents, 'document')}, {about}{figures.money(forecast.cost)}: "
        f"{figures.count(forecast.calls, 'call')} to pay, {forecast.known_calls} paid before"
    )


def agreed(console: Console, estimate: Estimate, what: str, *, yes: bool) -> bool:
    """True when it may be asked for: it costs nothing, somebody said yes, or nobody is there to be asked."""
    console.print(f"estimate of {what}: {told(estimate)}")
    asked = sys.stdin.isatty() and console.is_terminal
    if yes or not asked or not estimate.forecast.cost:
        return True
    return console.input("Go on? [y/N] ").strip().lower() in {"y", "yes"}
