"""Recognises what nobody can read in a text: encoded data, bytes that are no text, minified code.

It is left out of what is cut into chunks, and so never paid for. Linear in the length of the text: one pass
over its words and one over its lines, each only where a word or a line is long enough.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import replace

from holdfast.documents.parse.records import Page

# A word shorter than this is left alone, whatever it is made of.
LONG_WORD = 200
# Encoded data in lines: at least so many, each at least so long (mail and certificates have 64 or 76).
LINES, LINE = 4, 60
# A line of minified code.
LONG_LINE = 1000
_SAMPLE = 1024
_RUN = re.compile(r"[A-Za-z0-9+/_=-]+")
_NOT_LETTERS = re.compile(r"[^A-Za-z0-9]+")
_CONTROLS = dict.fromkeys([*(set(range(32)) - {9, 10, 12, 13}), 0x7F, 0xFFFD, *range(0x80, 0xA0)])
_MARKS = dict.fromkeys(map(ord, "{}()[];=,:&|!?+<>.\"'$"))
_CLASSES = str.maketrans(
    {
        **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A"),
        **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "a"),
        **dict.fromkeys("0123456789", "0"),
    }
)


def looks_encoded(text: str) -> bool:
    """True for base64 or hexadecimal data: letters of both cases and digits in no order that words have."""
    sample = text[:_SAMPLE]
    if not sample.isascii():
        return False
    classes = _NOT_LETTERS.sub("", sample).translate(_CLASSES)
    if len(classes) * 10 < len(sample) * 9:
        return False
    kinds = set(classes)
    if len(kinds) == 2 and "0" in kinds and not sample.lower().strip("0123456789abcdef"):
        return True
    changes = sum(one != other for one, other in itertools.pairwise(classes))
    return len(kinds) == 3 and changes * 5 > len(classes) * 2


def readable(pages: Iterable[Page]) -> tuple[list[Page], int]:
    """The pages without what nobody can read, and how many characters that was."""
    left: list[Page] = []
    skipped = 0
    for page in pages:
        texts = [readable_text(block.text) for block in page.blocks]
        lost = sum(len(block.text) - len(text) for block, text in zip(page.blocks, texts, strict=True))
        if lost:
            skipped += lost
            pairs = zip(page.blocks, texts, strict=True)
            page = replace(  # noqa: PLW2901 (the same page, shorter)
                page,
                blocks=tuple(
                    block if text is block.text else replace(block, text=text)
                    for block, text in pairs
                    if text.strip()
                ),
            )
        left.append(page)
    return left, skipped


def readable_text(text: str) -> str:
    """The text without encoded data, binary bytes and minified code; the same object if it has none."""
    if len(text) < LONG_WORD:
        return text
    if (len(text) - len(text.translate(_CONTROLS))) * 10 > len(text):
        return ""
    if len(text) >= LINES * LINE:
        text = _without_lines(text)
    if len(max(text.split(), key=len, default="")) >= LONG_WORD:
        text = _without_words(text)
    return text


def _without_words(text: str) -> str:
    parts: list[str] = []
    start = 0
    for run in _RUN.finditer(text):
        if run.end() - run.start() >= LONG_WORD and looks_encoded(run.group()):
            parts.append(text[start : run.start()])
            start = run.end()
    return "".join([*parts, text[start:]]) if parts else text


def _without_lines(text: str) -> str:
    lines = text.split("\n")
    left: list[str] = []
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and _is_one_run(lines[end], LINE):
            end += 1
        if end - at >= LINES and looks_encoded("".join(lines[at : at + 16])):
            at = end + (end < len(lines) and _is_one_run(lines[end], 1))
            continue
        left += lines[at:end]
        if end < len(lines) and not is_minified(lines[end]):
            left.append(lines[end])
        at = end + 1
    return "\n".join(left) if len(left) < len(lines) else text


def _is_one_run(line: str, least: int) -> bool:
    line = line.strip()
    return len(line) >= least and _RUN.fullmatch(line) is not None


def is_minified(line: str) -> bool:
    """True for a very long line with hardly a space and many brackets and marks."""
    if len(line) < LONG_LINE:
        return False
    spaces = line.count(" ") + line.count("\t")
    marks = len(line) - len(line.translate(_MARKS))
    words = len(_NOT_LETTERS.sub("", line))
    ascii_letters = len(line.encode("ascii", "ignore"))
    if ascii_letters * 10 < len(line) * 9 or words * 10 < len(line) * 3:
        return False
    return spaces * 100 < len(line) * 8 and marks * 100 > len(line) * 12
