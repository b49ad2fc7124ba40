"""Known text set into PDF pages as people set it: columns, tables, running heads, footnotes, scripts.

Each builder gives pages of a PDF for `pdfs.make`, or a page and the text that a reader would read aloud.
Every letter of the font is half as wide as it is high, so that the width of a line is known.
"""

from tests.documents import pdfs

WIDTH, TOP, FOOT = 612, 720, 72


def wrapped(text, width, size):
    """The lines of a text set `width` points wide."""
    most, lines = int(width / (size / 2)), [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def paragraphs(texts, *, left=72, top=TOP, width=468, size=10):
    """Paragraphs one below the other, with a gap between them, as lines of a page."""
    lines, y = [], top
    for text in texts:
        for line in wrapped(text, width, size):
            lines.append((size, left, y, line))
            y -= 1.2 * size
        y -= 0.8 * size
    return lines


def columns(text, number, *, across=True, top=TOP, size=9, gutter=18, right_to_left=False):
    """A text set into columns; drawn line by line `across`, or column by column."""
    width = (WIDTH - 144 - gutter * (number - 1)) / number
    lines = wrapped(text, width, size)
    height = -(-len(lines) // number)
    positions = list(range(number))[::-1] if right_to_left else range(number)
    placed = [
        (size, 72 + positions[at // height] * (width + gutter), top - 1.25 * size * (at % height), line)
        for at, line in enumerate(lines)
    ]
    return sorted(placed, key=lambda line: -line[2]) if across else placed


def table(rows, lefts, *, top=600, size=10, ruled=True, leading=18, right=(), width=90):
    """A table as a sheet: columns that begin at `lefts` (or end, if in `right`), ruled or not."""
    lines = []
    for number, row in enumerate(rows):
        y = top - leading * number
        for column, cell in enumerate(row):
            x = lefts[column] + (width - 12 - size / 2 * len(cell) if column in right else 0)
            if cell:
                lines.append((size, x, y, cell))
    rules = ()
    if ruled:
        xs = [left - 5 for left in [*lefts, lefts[-1] + width]]
        ys = [top + 13 - leading * number for number in range(len(rows) + 1)]
        rules = (*((xs[0], y, xs[-1], y) for y in ys), *((x, ys[-1], x, ys[0]) for x in xs))
    return pdfs.Sheet(lines, rules)


def book(pages, *, head="", foot="", first=1):
    """Pages of paragraphs with a running head and foot; `{page}` in them is its number."""
    return [
        [
            *([(8, 72, 760, head.format(page=number))] if head else []),
            *paragraphs(texts),
            *([(8, 280, 36, foot.format(page=number))] if foot else []),
        ]
        for number, texts in enumerate(pages, start=first)
    ]
