"""Single-column PDFs without running heads, footnotes or cropping, and the text that they have always had.

`plain_pdfs.json` holds what was read before there was a reading order, a table or a running head. Written by
`python -m tests.documents.plain_pdfs`, once: a change of it is a change of every user's text.
"""

import json
from importlib import resources
from pathlib import Path

from holdfast.documents.parse.parser import Parser
from tests.documents import pdf_layouts, pdfs
from tests.documents.prose import Prose

RECORDED = Path(__file__).with_name("plain_pdfs.json")
HEBREW, ARABIC = "שלום עולם, זה מבחן ארוך של קריאה", "مرحبا بالعالم، هذا اختبار طويل"


def files():
    """The PDFs by name."""
    return {
        "prose": pdfs.make([pdf_layouts.paragraphs(Prose(1).paragraphs(6)) for _ in range(2)]),
        "headings": pdfs.make([_headings(seed) for seed in (2, 3)], title="Of headings"),
        "indents": pdfs.make([_indented(4)]),
        "lists": pdfs.make([_lists()]),
        "letter": pdfs.make([_letter()]),
        "hyphens": pdfs.make(["A docu-\nment that is bro-\nken into well-\nKnown parts", "Two.\nLines"]),
        "scripts": pdfs.make([[(11, 72, 700 - 20 * at, text) for at, text in enumerate((HEBREW, ARABIC))]]),
        "chinese": pdfs.make([_chinese(5)]),
        "words": pdfs.make([_word_by_word(6)]),
        "code": pdfs.make(["def one(x):\n    y    = x + 1  # more\n    return y", "# end"]),
        "numbers": pdfs.make(["Total 17\n18\n19 of 20", "2024 was a year\n5"]),
        "sample": resources.files("holdfast.cli").joinpath("sample", "pilot-rules.pdf").read_bytes(),
    }


def _chinese(seed):
    text = Prose(seed).chinese(300)
    return [(11, 72, 700 - 14 * at, text[40 * at : 40 * at + 40]) for at in range(len(text) // 40 + 1)]


def _headings(seed):
    prose = Prose(seed)
    return [
        (20, 72, 740, "A title for all"),
        *pdf_layouts.paragraphs(prose.paragraphs(2), top=700),
        (14, 72, 480, "A smaller heading"),
        *pdf_layouts.paragraphs(prose.paragraphs(2), top=460),
    ]


def _indented(seed):
    """Paragraphs as books set them: no gap, the first line indented."""
    lines, y = [], 700
    for paragraph in Prose(seed).paragraphs(5):
        for number, line in enumerate(pdf_layouts.wrapped(paragraph, 440, 10)):
            lines.append((10, 72 if number else 90, y, line))
            y -= 12
    return lines


def _lists():
    """Items whose marks stand far from their text, drawn on their own."""
    lines = [(10, 72, 700, "What to bring, and in which order to bring it to the place:")]
    for number in range(8):
        y = 680 - 24 * number
        lines += [(10, 72, y, "•" if number < 4 else f"{number}."), (10, 100, y, "a thing to be brought")]
        lines += [(10, 100, y - 12, "along with everything that belongs to it")]
    return lines


def _letter():
    return [
        (11, 72, 740, "Ada Lovelace"),
        (11, 72, 726, "12 St James's Square"),
        (11, 400, 726, "London, 3 May 1843"),
        (11, 72, 690, "Dear Sir,"),
        *pdf_layouts.paragraphs(Prose(7).paragraphs(2), top=660, size=11),
        (11, 72, 300, "Yours"),
    ]


def _word_by_word(seed):
    """Each word drawn on its own, justified, as many programs do."""
    placed = []
    for size, left, y, line in pdf_layouts.paragraphs(Prose(seed).paragraphs(4)):
        words = line.split()
        wide = (468 - size / 2 * sum(map(len, words))) / max(1, len(words) - 1)
        x = left
        for word in words:
            placed.append((size, round(x, 2), y, word))
            x += size / 2 * len(word) + min(wide, size)
    return placed


def read(parser, path):
    """What a file is read as: for each page its blocks of role, level and text."""
    outline = parser.outline(path)
    pages = parser.read(path, outline.format, outline.whole)
    return [[[block.role.value, block.level, block.text] for block in page.blocks] for page in pages]


def record(folder):
    """Write the text of all files as it is read now."""
    parser, texts = Parser(), {}
    for name, data in files().items():
        path = folder / name
        path.write_bytes(data)
        texts[name] = read(parser, path)
    parser.close()
    RECORDED.write_text(json.dumps(texts, ensure_ascii=False, indent=0) + "\n")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as room:
        record(Path(room))
