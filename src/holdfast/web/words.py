"""How numbers, times and states are written on pages."""

from datetime import UTC, datetime

from markupsafe import Markup, escape

from holdfast.core.states import Status, shown
from holdfast.ledger.prices import NANO
from holdfast.search.snippet import Snippet
from holdfast.store import documents

UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))
NAMES = {
    "not_indexed": "Not indexed",
    "in_doubt": "In doubt",
    "success": "Ready",
}
LEGS = {"keyword": "words", "vector": "meaning", "title": "title"}


def money(nano: int) -> str:
    """Nano-dollars as dollars, with as many places as the amount needs, at least two."""
    if nano == 0:
        return "$0.00"
    places = 2 if abs(nano) >= NANO else 4 if abs(nano) >= NANO // 100 else 6 if abs(nano) >= 1000 else 9
    return f"${nano / NANO:,.{places}f}"


def coarse(nano: int) -> str:
    """Money for a tile: four places at most; what is less than that is said to be less."""
    if 0 < nano < NANO // 10_000:
        return "<$0.0001"
    return f"${nano / NANO:,.4f}" if 0 < nano < NANO else f"${nano / NANO:,.2f}"


def number(value: int | None) -> str:
    """A whole number with its thousands apart; a dash for none."""
    return "–" if value is None else f"{value:,}"  # noqa: RUF001 - a dash for nothing


def size(count: int) -> str:
    """Bytes in their largest fitting unit."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def span(seconds: float | None) -> str:
    """A length of time in its largest fitting unit."""
    if seconds is None:
        return "–"  # noqa: RUF001 - a dash for nothing
    for length, unit in UNITS:
        if seconds >= length:
            return (
                f"{seconds / length:.1f} {unit}"
                if seconds < 10 * length
                else f"{seconds / length:.0f} {unit}"
            )
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def moment(at: float | None) -> Markup:
    """A database time; the browser writes how long ago that is, and goes on counting by itself."""
    if not at:
        return Markup("–")  # noqa: RUF001 - a dash for nothing
    when = datetime.fromtimestamp(at, UTC)
    told = when.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(when.isoformat(), told, told[:16])


def state(word: str) -> str:
    """A state as people read it."""
    return NAMES.get(word, word.replace("_", " ").capitalize())


def status(found: Status) -> str:
    """The code of a document's status, as the API has it."""
    return shown(documents.KIND, found)


def marked(snippet: Snippet) -> Markup:
    """A snippet with the words of the question marked."""
    made, at = Markup(), 0
    for start, end in snippet.marks:
        made += escape(snippet.text[at:start]) + Markup("<mark>{}</mark>").format(snippet.text[start:end])
        at = end
    return made + escape(snippet.text[at:])


def leg(name: str) -> str:
    """What a leg of the search looks at."""
    return LEGS.get(name, name)


def count(value: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def percent(share: float) -> int:
    """A share as whole percents; not 100 before it is done."""
    return 100 if share >= 1 else min(99, round(share * 100))


FILTERS = {
    each.__name__: each
    for each in (money, coarse, number, size, span, moment, state, status, marked, leg, percent)
}
