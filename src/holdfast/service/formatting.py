"""How amounts, lengths of time and sizes are written, in the web UI and on the command line alike."""

from holdfast.ledger.prices import NANO

NOTHING = "–"  # noqa: RUF001 - a dash for nothing
LENGTHS = ((86_400, "d"), (3600, "h"), (60, "min"))


def money(nano: int) -> str:
    """Nano-dollars, with as many places as the amount needs, at least two."""
    places = 2 if abs(nano) >= NANO or nano == 0 else 6 if abs(nano) >= 1000 else 9
    return f"${nano / NANO:,.{places}f}"


def paid(nano: int, unpriced_calls: int) -> str:
    """What was paid; calls without a known price are shown beside it, or instead."""
    if not unpriced_calls:
        return money(nano)
    return "unpriced" if not nano else f"{money(nano)} + {count(unpriced_calls, 'unpriced call')}"


def coarse(nano: int) -> str:
    """Money for looking at: four places at most; what is less than that is said to be less."""
    if 0 < nano < NANO // 10_000:
        return "<$0.0001"
    return f"${nano / NANO:,.4f}" if 0 < nano < NANO else f"${nano / NANO:,.2f}"


def span(seconds: float | None) -> str:
    """A length of time in its largest fitting unit; a dash for none."""
    if seconds is None:
        return NOTHING
    for length, unit in LENGTHS:
        if seconds >= length:
            return f"{seconds / length:.{1 if seconds < 10 * length else 0}f} {unit}"
    if seconds < 0.95:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    return f"{seconds:.{1 if seconds < 9.95 else 0}f} s"


def number(value: int | None) -> str:
    """A whole number with its thousands apart; a dash for none."""
    return NOTHING if value is None else f"{value:,}"


def count(value: int, noun: str, plural: str = "") -> str:
    """`1 call`, `2 calls`; `1 delivery`, `2 deliveries` where the plural is given."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {plural or noun + 's'}"


def size(octets: int) -> str:
    """Bytes in their largest fitting unit."""
    amount = float(octets)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
