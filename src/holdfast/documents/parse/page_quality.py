"""Which pages of a PDF show more than their text says: scans, and text whose characters mean nothing.

A scanned page has no characters, or only those of a stamp or a page number, and an image over most of it.
Nothing else is asked of a page with enough text, so that a page of prose costs a few microseconds here.
"""

import ctypes
import hashlib
import math
from collections.abc import Iterator
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from pypdfium2 import raw

from holdfast.documents.parse.records import DPI, MOST_PIXELS

# A page with as many letters and digits is read by its text layer.
ENOUGH = 100
# The share of a page with images that makes it a scan: with little text, and with none.
MOSTLY_IMAGE = 0.5
SOME_IMAGE = 0.1
# Text drawn as outlines has hundreds of paths; a border or a chart's frame has few.
OUTLINED = 60
UNMAPPED = 0.3
SAMPLED = 200
# As many characters, spaces included, that a page surely has enough letters.
SURELY_ENOUGH = 300
MOST_OBJECTS = 5000
# The letters of unmapped characters that are looked at; a page with hardly anything else is rubbish.
MOST_LETTERS = 1000
NOTHING_MAPPED = 0.8
_VOWELS = frozenset("aeiou")


def is_unread(page: pdfium.PdfPage, text: pdfium.PdfTextPage, whole: str) -> bool:
    """True if a page shows text that its text layer does not have; `whole` is that layer."""
    letters = sum(map(str.isalnum, whole[: 10 * ENOUGH]))
    if letters >= ENOUGH:
        return _is_garbled(text, UNMAPPED)
    images, paths = _drawn(page)
    if images >= (MOSTLY_IMAGE if letters else SOME_IMAGE):
        return True
    return (not letters and paths >= OUTLINED) or (letters > 0 and _is_garbled(text, UNMAPPED))


def is_rubbish(text: pdfium.PdfTextPage) -> bool:
    """True if hardly a character of an unread page has a meaning: nothing of it is worth indexing."""
    return _is_garbled(text, NOTHING_MAPPED)


def seems_unread(page: pdfium.PdfPage, text: pdfium.PdfTextPage) -> bool:
    """A cheap guess at `is_unread`, for planning."""
    count = text.count_chars()
    return count < SURELY_ENOUGH and is_unread(page, text, text.get_text_range() if count else "")


def grey(page: pdfium.PdfPage) -> Any:
    """A page as it is recognised: a grey image of Pillow."""
    bitmap = page.render(scale=scale(page), grayscale=True)
    try:
        return bitmap.to_pil().convert("L")
    finally:
        bitmap.close()


def _is_garbled(text: pdfium.PdfTextPage, share: float) -> bool:
    """True if as many characters have no meaning in Unicode, and their codes are no text either.

    Old TeX files have fonts without names for their letters, in which the codes are still those of ASCII.
    """
    return _unmapped(text) >= share and not _is_ascii_text(text)


def _is_ascii_text(text: pdfium.PdfTextPage) -> bool:
    """True if the unmapped characters are words of Latin letters: ASCII, with vowels among them."""
    count = lower = vowels = others = 0
    for index in range(text.count_chars()):
        if raw.FPDFText_HasUnicodeMapError(text, index) != 1:
            continue
        letter = chr(min(0x10FFFF, raw.FPDFText_GetUnicode(text, index)))
        count += 1
        lower += "a" <= letter <= "z"
        vowels += letter in _VOWELS
        others += not " " <= letter <= "~"
        if count == MOST_LETTERS:
            break
    return lower >= max(20, 0.1 * count) and 0.25 <= vowels / lower <= 0.6 and others <= 0.1 * count


def _unmapped(text: pdfium.PdfTextPage) -> float:
    """The share of characters without a meaning in Unicode, by a sample."""
    count = text.count_chars()
    step = max(1, count // SAMPLED)
    sample = range(0, count, step)
    wrong = sum(raw.FPDFText_HasUnicodeMapError(text, index) == 1 for index in sample)
    return float(wrong / max(1, len(sample)))


def _drawn(page: pdfium.PdfPage) -> tuple[float, int]:
    """The share of a page that images cover, and how many paths it has."""
    across, down = page.get_size()
    left, bottom, right, top = page.get_bbox()
    area, paths = 0.0, 0
    for each in _objects(page):
        kind = raw.FPDFPageObj_GetType(each)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            paths += 1
        elif kind in {raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM}:
            bounds = _bounds(each)
            if kind == raw.FPDF_PAGEOBJ_IMAGE or _has_image(each):
                wide = min(bounds[2], right) - max(bounds[0], left)
                high = min(bounds[3], top) - max(bounds[1], bottom)
                area += max(0.0, wide) * max(0.0, high)
    return area / max(1.0, across * down), paths


def _objects(page: pdfium.PdfPage) -> Iterator[Any]:
    for index in range(min(MOST_OBJECTS, raw.FPDFPage_CountObjects(page))):
        yield raw.FPDFPage_GetObject(page, index)


def _has_image(form: Any, depth: int = 4) -> bool:
    """True if a form, or a form within it, has an image."""
    for index in range(min(MOST_OBJECTS, raw.FPDFFormObj_CountObjects(form))):
        each = raw.FPDFFormObj_GetObject(form, index)
        kind = raw.FPDFPageObj_GetType(each)
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            return True
        if kind == raw.FPDF_PAGEOBJ_FORM and depth and _has_image(each, depth - 1):
            return True
    return False


def _bounds(each: Any) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of an object on its page."""
    edges = tuple(ctypes.c_float() for _ in range(4))
    if not raw.FPDFPageObj_GetBounds(each, *(ctypes.byref(edge) for edge in edges)):
        return 0.0, 0.0, 0.0, 0.0
    return edges[0].value, edges[1].value, edges[2].value, edges[3].value


def scale(page: pdfium.PdfPage) -> float:
    """Pixels per point at which a page is recognised."""
    across, down = page.get_size()
    return float(min(DPI / 72, math.sqrt(MOST_PIXELS / max(1.0, across * down))))


def picture(page: pdfium.PdfPage) -> str:
    """The digest of all that is drawn on a page, the same wherever it stands.

    A page of images alone is told by their bytes and where they are: nothing is decoded. Any other is told by
    its pixels.
    """
    digest = hashlib.sha256(repr((page.get_size(), page.get_rotation(), page.get_bbox())).encode())
    plain = not raw.FPDFPage_GetAnnotCount(page) and not raw.FPDFPage_HasTransparency(page)
    for each in _objects(page):
        if not plain:
            break
        plain = raw.FPDFPageObj_GetType(each) == raw.FPDF_PAGEOBJ_IMAGE and _add_image(digest, each)
    if not plain or raw.FPDFPage_CountObjects(page) > MOST_OBJECTS:
        bitmap = page.render(scale=scale(page), grayscale=True)
        digest.update(b"pixels")
        digest.update(bitmap.buffer)
        bitmap.close()
    return digest.hexdigest()


def _add_image(digest: "hashlib._Hash", image: Any) -> bool:
    """The image and its position are part of the digest; False if its bytes cannot be had."""
    size = raw.FPDFImageObj_GetImageDataRaw(image, None, 0)
    matrix = raw.FS_MATRIX()
    if not size or not raw.FPDFPageObj_GetMatrix(image, ctypes.byref(matrix)):
        return False
    about = raw.FPDF_IMAGEOBJ_METADATA()
    raw.FPDFImageObj_GetImageMetadata(image, None, ctypes.byref(about))
    data = (ctypes.c_ubyte * size)()
    raw.FPDFImageObj_GetImageDataRaw(image, data, size)
    position = [round(getattr(matrix, name), 4) for name in "abcdef"]
    digest.update(
        repr((position, about.width, about.height, about.bits_per_pixel, about.colorspace)).encode()
    )
    digest.update(data)
    return True
