"""Pages of PDFs read per second, with and without reading order, tables and running heads.

    python -m bench.pdf_pages               a book of plain pages, and one of pages in columns with tables
    python -m bench.pdf_pages FILE...       files of your own

Both ways take turns in one process, so that the ratio holds on a busy machine; times are processor time.
"""

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from holdfast.documents.parse import pdf, pdf_layout, pdf_running_heads
from holdfast.documents.parse.records import ParseLimits, UnitRange, slices
from tests.documents import pdf_layouts, pdfs
from tests.documents.prose import Prose

ROUNDS = 9
PAGES = 60


def main(names: Sequence[str]) -> None:
    """Print a line for each file."""
    with tempfile.TemporaryDirectory() as folder:
        for path in [Path(name) for name in names] or list(_generated(Path(folder))):
            without, having = _measured(path)
            print(
                f"{path.name}: {1 / without:,.0f} pages a second without, {1 / having:,.0f} with;"
                f" {having / without:.2f} times the time"
            )


def _generated(folder: Path) -> Iterator[Path]:
    prose = Prose(1)
    plain = [pdf_layouts.paragraphs(prose.paragraphs(5)) for _ in range(PAGES)]
    table = pdf_layouts.table(
        [["City", "People", "Area"], *[["Oslo", "709", "454"]] * 9], [72, 172, 272], top=300
    )
    busy = [
        pdfs.Sheet([*pdf_layouts.columns(" ".join(prose.paragraphs(4)), 2), *table.lines], table.rules)
        for _ in range(PAGES)
    ]
    for name, pages in (("plain.pdf", plain), ("columns-and-tables.pdf", busy)):
        path = folder / name
        path.write_bytes(pdfs.make(pages))
        yield path


def _measured(path: Path) -> tuple[float, float]:
    """Seconds a page without and with the layout: the best of several rounds."""
    without, having = [], []
    for _ in range(ROUNDS):
        with _off():
            without.append(_seconds(path))
        having.append(_seconds(path))
    return min(without), min(having)


@contextlib.contextmanager
def _off() -> Iterator[None]:
    """PDFium's order, no tables, no running heads: as it was before there were any."""
    with (
        mock.patch.object(pdf_layout, "parts", return_value=None),
        mock.patch.object(pdf_running_heads, "edge_lines", return_value=[]),
        mock.patch.object(pdf_running_heads, "nearby", lambda number, _pages: range(number, number + 1)),
    ):
        yield


def _seconds(path: Path) -> float:
    document = pdf.Pdf(path, ParseLimits())
    outline = document.outline()
    started = time.process_time()
    for units in slices(outline):
        document.read(UnitRange(units.first, units.last))
    return (time.process_time() - started) / outline.units


if __name__ == "__main__":
    main(sys.argv[1:])
