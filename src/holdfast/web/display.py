"""How numbers, times and states are formatted on pages."""

import json
import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

from holdfast.core import subjects
from holdfast.core.progress import Rolled
from holdfast.core.records import Spent
from holdfast.core.states import Status, shown
from holdfast.search.snippet import Snippet
from holdfast.service import formatting, gap_sentences, originals
from holdfast.service.records import RunStanding

# The journal and the API speak of generations, slices and leases; users of the web UI need not know them.
_PAGE_WORDS = (
    (re.compile(r" \((?:epoch|lease|fenced)\b[^)]*\)"), ""),
    (re.compile(r"\bgeneration(s?)\b"), r"version\1"),
    (re.compile(r"\bGeneration(s?)\b"), r"Version\1"),
    (re.compile(r"\bslice(s?)\b"), r"part\1"),
)
NAMES = {
    "not_indexed": "Not indexed",
    "imported": "Imported",
    "in_doubt": "In doubt",
    "success": "Ready",
    "working": "Online",
    "sick": "Stuck",
    "void": "Not charged",
}
LEGS = {"keyword": "words", "vector": "meaning", "title": "title", "rerank": "a reranking model"}


def money(nano: int) -> Markup:
    """An amount for display; its tooltip shows the exact amount."""
    if nano == 0:
        return Markup('<span class="zero">$0.00</span>')
    return Markup('<span title="{}">{}</span>').format(formatting.money(nano), formatting.coarse(nano))


def cost(spent: Spent | None) -> Markup:
    """What was spent; calls of a model without a price are called unpriced, never $0.00."""
    if spent is None or not spent.unpriced_calls:
        return money(spent.paid if spent is not None else 0)
    count = formatting.count(spent.unpriced_calls, "call") + " to a model with no known price"
    unpriced = Markup('<span class="unpriced" title="{}">unpriced</span>').format(count)
    return unpriced if spent.unpriced else money(spent.paid) + " + " + unpriced


def _time(at: float | None, style: str, form: str) -> Markup:
    if not at:
        return escape(formatting.NOTHING)
    when = datetime.fromtimestamp(at, UTC)
    exact = when.strftime("%Y-%m-%d %H:%M:%S UTC")
    element = Markup('<time datetime="{}" title="{}" data-time="{}">{}</time>')
    return element.format(when.isoformat(), exact, style, when.strftime(form))


def moment(at: float | None) -> Markup:
    """A database time; the browser writes how long ago that is, and goes on counting by itself."""
    return _time(at, "ago", "%Y-%m-%d %H:%M")


def clock(at: float | None) -> Markup:
    """A database time to the second, for what happened in short order; the browser writes its own zone."""
    return _time(at, "clock", "%H:%M:%S")


def sentence(text: str) -> str:
    """The text with a capital at its beginning, unless a name is there, and a dot at its end."""
    sentence = text.strip()
    if sentence.partition(" ")[0].rstrip(",:;").isalpha():
        sentence = f"{sentence[:1].upper()}{sentence[1:]}"
    return sentence if not sentence or sentence.endswith((".", "!", "?")) else f"{sentence}."


def value(shown_value: object) -> str:
    """A value of somebody's JSON as people read it."""
    if shown_value is None or shown_value == "":
        return formatting.NOTHING
    if isinstance(shown_value, bool):
        return "yes" if shown_value else "no"
    return shown_value if isinstance(shown_value, str) else json.dumps(shown_value, ensure_ascii=False)


def state(word: str) -> str:
    """A state as people read it."""
    return NAMES.get(word, word.replace("_", " ").capitalize())


def status(stored: Status) -> str:
    """The code of a document's status, as the API has it."""
    return shown(subjects.INDEX, stored)


def marked(snippet: Snippet) -> Markup:
    """A snippet with the words of the question marked."""
    markup, at = Markup(), 0
    for start, end in snippet.marks:
        markup += escape(snippet.text[at:start]) + Markup("<mark>{}</mark>").format(snippet.text[start:end])
        at = end
    return markup + escape(snippet.text[at:])


def leg(name: str) -> str:
    """What a leg of the search looks at."""
    return LEGS.get(name, name)


def for_page(text: str) -> str:
    """A sentence of ours for the web UI: version for generation, part for slice, and no protocol terms."""
    for pattern, word in _PAGE_WORDS:
        text = pattern.sub(word, text)
    return text


def counted(standing: RunStanding) -> str:
    """How much of a run is done, in counts that fit its percentage, or what is left to do.

    Of several parts the later ones have not been read yet: what is counted in those that were is no total.
    """
    phase = f"phase {standing.run.phase + 1} · " if standing.run.phase else ""
    return f"{phase}{_counted(standing.rolled, standing.unit)}"


def _counted(rolled: Rolled, unit: str) -> str:
    if rolled.parts > 1:
        if rolled.parts_done == rolled.parts:
            return "publishing"
        so_far = f" · {formatting.number(rolled.done)} {unit} so far" if rolled.done else ""
        return f"{formatting.number(rolled.parts_done)} of {formatting.number(rolled.parts)} parts{so_far}"
    if not rolled.total:
        return "preparing"
    if rolled.done >= rolled.total:
        return f"publishing {formatting.number(rolled.total)} {unit}"
    return f"{formatting.number(rolled.done)} of {formatting.number(rolled.total)} {unit}"


def percent(share: float) -> int:
    """A share as whole percents; not 100 before it is done."""
    return 100 if share >= 1 else min(99, round(share * 100))


FILTERS = {
    **{each.__name__: each for each in (money, cost, moment, clock, sentence, value, for_page, counted)},
    **{
        each.__name__: each
        for each in (formatting.number, formatting.size, formatting.span, state, status, marked, leg, percent)
    },
    "exact": formatting.money,
    "has_pages": originals.has_pages,
    "gap_summary": gap_sentences.summary,
    "gap_sentences": gap_sentences.sentences,
}
