"""Which parser reads which format: the option `parsers` of a collection or a document.

It maps formats to parsers of HOLDFAST_PARSERS, each by its full name (`module:name`) or by the part after the
colon. `holdfast` is the parser that comes with Holdfast, for a format that one of the user's own would take.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.errors import BadRequestError
from holdfast.documents.parse.custom import OURS
from holdfast.documents.parse.records import Format

MOST_NAME = 200
FORMATS = tuple(each.value for each in Format if each not in {Format.ZIP, Format.OWN})


def _bad(why: str) -> BadRequestError:
    return BadRequestError(f"parsers: {why}", code="bad_option")


def check(chosen: object) -> None:
    """Return if this is a choice of parsers; otherwise BadRequestError."""
    if not isinstance(chosen, Mapping):
        raise _bad('use an object like {"pdf": "module:name"}')
    for form, name in chosen.items():
        if form not in FORMATS:
            raise _bad(f"there is no format {form!r:.80}; use one of: {', '.join(FORMATS)}")
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not name.isprintable():
            raise _bad(f"the parser of {form} must be text of at most {MOST_NAME} characters")


def resolved(chosen: object, known: Sequence[str], *, stored: bool) -> Any:
    """The choice with full names; BadRequestError for a parser that HOLDFAST_PARSERS does not name.

    With `stored` the choice was accepted once, and a parser that has gone since fails the work instead.
    """
    check(chosen)
    by_name = {each.partition(":")[2]: each for each in known} | {each: each for each in (*known, OURS)}
    full: dict[str, str] = {}
    for form, name in sorted(dict(chosen).items()):  # type: ignore[call-overload]  # `check` leaves no other
        if name not in by_name and not stored:
            raise _bad(f"HOLDFAST_PARSERS does not name {name!r:.80}; known are: {', '.join((*known, OURS))}")
        full[form] = by_name.get(name, name)
    return full
