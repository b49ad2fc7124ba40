"""Pages of PDFs and images as PNGs, with a passage marked on them."""

import contextlib
import ctypes
import io
from collections.abc import Iterator, Sequence
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from PIL import Image, ImageChops, ImageDraw
from pypdfium2 import raw

from holdfast.documents.parse import images, passages, pdf
from holdfast.documents.parse.passages import Glyph, PixelBox
from holdfast.documents.parse.records import BOX_SCALE, Format, RecognisedWord
from holdfast.documents.parse.source import Readable

MARK = (255, 226, 110)
MOST_CHARACTERS = 50_000


def drawn(
    path: Readable,
    document_format: Format,
    number: int,
    width: int,
    passage: str = "",
    words: Sequence[RecognisedWord] = (),
) -> bytes:
    """Page `number`, from 1, `width` pixels wide, as a PNG.

    The passage is marked by the recognised `words` of that page, or else by its text layer.
    """
    if document_format is Format.PDF:
        picture, glyphs = _pdf(path, number, width, with_text=bool(passage) and not words)
    else:
        picture, glyphs = images.shown(path, document_format, number, width), []
    if words:
        glyphs = [_word(word, picture.width, picture.height) for word in words]
    picture = _marked(picture, passages.boxes(passage, glyphs)) if passage else picture
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _word(word: RecognisedWord, wide: int, high: int) -> Glyph:
    across, down = wide / BOX_SCALE, high / BOX_SCALE
    box = PixelBox(word.left * across, word.top * down, word.right * across, word.bottom * down)
    return Glyph(word.text, box)


def _marked(picture: Any, boxes: Sequence[PixelBox]) -> Any:
    """The picture with these boxes coloured as by a marker pen: what is dark stays dark."""
    if not boxes:
        return picture
    layer = Image.new("RGB", picture.size, "white")
    draw = ImageDraw.Draw(layer)
    for box in boxes:
        edge = max(1.0, (box.bottom - box.top) / 8)
        draw.rectangle((box.left - edge, box.top - edge, box.right + edge, box.bottom + edge), fill=MARK)
    return ImageChops.multiply(picture, layer)


def _pdf(path: Readable, number: int, width: int, *, with_text: bool) -> tuple[Any, list[Glyph]]:
    def draw(page: pdfium.PdfPage) -> tuple[Any, list[Glyph]]:
        across, down = page.get_size()
        scale = min(width / max(across, 1.0), 3 * width / max(down, 1.0))
        bitmap = page.render(scale=scale)
        picture = bitmap.to_pil().convert("RGB")
        bitmap.close()
        return picture, list(_characters(page, picture.width, picture.height)) if with_text else []

    return pdf.with_page(path, number, draw)


def _characters(page: Any, wide: int, high: int) -> Iterator[Glyph]:
    """The characters of a page and their boxes on its picture."""
    with contextlib.closing(page.get_textpage()) as text:
        edges = tuple(ctypes.c_double() for _ in range(4))
        for index in range(min(text.count_chars(), MOST_CHARACTERS)):
            code = raw.FPDFText_GetUnicode(text, index)
            if not chr(code).isalnum():
                continue
            if raw.FPDFText_GetCharBox(text, index, *(ctypes.byref(edge) for edge in edges)):
                left, right, bottom, top = (edge.value for edge in edges)
                yield Glyph(chr(code), _on_picture(page, (left, bottom, right, top), wide, high))


def _on_picture(page: Any, edges: tuple[float, float, float, float], wide: int, high: int) -> PixelBox:
    """A box of the coordinates of a page on its picture, which may be turned or cropped."""
    left, bottom, right, top = edges
    across, down = ctypes.c_int(), ctypes.c_int()
    points = []
    for x, y in ((left, bottom), (right, top)):
        raw.FPDF_PageToDevice(page, 0, 0, wide, high, 0, x, y, ctypes.byref(across), ctypes.byref(down))
        points.append((across.value, down.value))
    (x1, y1), (x2, y2) = points
    return PixelBox(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
