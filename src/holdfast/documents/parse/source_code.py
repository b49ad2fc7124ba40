"""Source code, YAML and other configuration: blocks that begin at definitions. A comment is no heading.

The language does not matter: a definition begins in the column of its neighbours, after a blank line or a
line that is indented deeper, and takes the comments and decorators right above it along. What is too long is
cut again at the definitions inside it. One pass over the lines for each level, at most `MOST_LEVELS`.
"""

from collections.abc import Sequence

from holdfast.documents.parse import texts
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

# A block longer than this is cut at the definitions inside it.
LONG = 1200
MOST_LEVELS = 4
# What continues or ends the block above: closing brackets, and the branches of a statement.
_CLOSING = (
    ")",
    "]",
    "}",
    "else",
    "elif",
    "except",
    "finally",
    "catch",
    "end",
    "fi",
    "done",
    "esac",
    "#endif",
)
# What belongs to the definition below: comments and decorators.
_ABOVE = ("#", "//", "/*", "*", "--", "@", "[", ";;", '"""', "%")


def read(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """No title, and the one page of a file of source code."""
    return None, pages(texts.load(path, limits.text_bytes))


def pages(text: str) -> list[Page]:
    """One page with the definitions of the source."""
    lines = [line.rstrip() for line in text.expandtabs(4).split("\n")] if "\t" in text else _lines(text)
    return [Page(1, tuple(TextBlock(Role.CODE, part) for part in _parts(lines)))]


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]


def _parts(lines: Sequence[str]) -> list[str]:
    """The source in parts, cut level by level."""
    parts = [lines]
    for _level in range(MOST_LEVELS):
        parts = [piece for part in parts for piece in (_cut(part) if _size(part) > LONG else [part])]
    return [text for text in ("\n".join(part).strip("\n") for part in parts) if text.strip()]


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _cut(lines: Sequence[str]) -> list[Sequence[str]]:
    """The lines cut where a neighbour of the shallowest lines begins; below its first line if it has one."""
    indents = [len(line) - len(line.lstrip()) if line else -1 for line in lines]
    filled = [indent for indent in indents if indent >= 0]
    if not filled:
        return [lines]
    column = min(filled)
    if filled.count(column) == 1 or (indents[0] == column and _is_one_definition(lines, indents, column)):
        deeper = [indent for indent in filled if indent > column]
        if not deeper:
            return [lines]
        column = min(deeper)
    starts = [0]
    for at in range(1, len(lines)):
        if (
            indents[at] == column
            and _begins(lines, indents, at)
            and (first := _above(lines, indents, at)) > starts[-1]
        ):
            starts.append(first)
    return [lines[first:last] for first, last in zip(starts, [*starts[1:], len(lines)], strict=True)]


def _is_one_definition(lines: Sequence[str], indents: Sequence[int], column: int) -> bool:
    """True if all other lines in this column only close or continue what the first one began."""
    return not any(
        indents[at] == column and not lines[at].lstrip().startswith(_CLOSING) and indents[at - 1] != column
        for at in range(1, len(lines))
    )


def _begins(lines: Sequence[str], indents: Sequence[int], at: int) -> bool:
    """True if a definition begins with this line: after a blank line, or after the body of the one before."""
    above = indents[at - 1]
    if lines[at].lstrip().startswith(_CLOSING):
        return False
    return above < 0 or above > indents[at] or lines[at - 1].lstrip()[:1] in {"}", ")", "]"}


def _above(lines: Sequence[str], indents: Sequence[int], at: int) -> int:
    """The first of the comments and decorators that stand right above a line."""
    while at > 0 and indents[at - 1] == indents[at] and lines[at - 1].lstrip().startswith(_ABOVE):
        at -= 1
    return at
