"""Images as documents: PNG, JPEG, TIFF (with several pages) and WebP. Their text is recognised (OCR)."""

import contextlib
import hashlib
import io
import math
import warnings
from collections.abc import Iterator
from typing import Any

from PIL import Image, ImageOps

from holdfast.core.errors import WorkError
from holdfast.documents.parse.records import (
    DPI,
    MOST_PIXELS,
    Format,
    GapReason,
    Outline,
    Page,
    ParseLimits,
    Unit,
    UnitRange,
)
from holdfast.documents.parse.source import Readable

# An image of more pixels is refused before it is decoded.
MOST_IMAGE = 64_000_000
# A picture with fewer pixels on its longer side is taken for one of low resolution, if it does not say.
SMALL = 1500
MOST_ENLARGED = 3.0


class Images:
    """An image file, read page by page."""

    def __init__(self, path: Readable, document_format: Format, limits: ParseLimits) -> None:
        self._path = path
        self._format = document_format
        self._limits = limits

    def outline(self) -> Outline:
        """The outline: every page is one to recognise."""
        with opened(self._path, self._format) as image:
            pages = int(getattr(image, "n_frames", 1)) if self._format is Format.TIFF else 1
        if pages > self._limits.pages:
            raise WorkError(
                f"the image has {pages:,} pages; the limit is {self._limits.pages:,}; split it",
                code="too_many_pages",
            )
        return Outline(self._format, Unit.PAGE, pages, scans=tuple(range(1, pages + 1)))

    def ahead(self, units: UnitRange) -> bool:  # noqa: ARG002 (pages are read in any order)
        """Any slice can be read at any time."""
        return True

    def read(self, units: UnitRange) -> list[Page]:
        """The pages of the slice, none of them read."""
        pages = []
        for number in range(units.first, units.last + 1):
            try:
                digest = hashlib.sha256(grey(self._path, self._format, number).tobytes()).hexdigest()
                pages.append(Page(number, (), gap=GapReason.NO_TEXT_LAYER, picture=digest))
            except (OSError, SyntaxError, ValueError):
                pages.append(Page(number, (), gap=GapReason.DAMAGED))
        return pages


def grey(path: Readable, document_format: Format, number: int) -> Any:
    """Page `number`, from 1, in grey, upright by what the file says, at about the resolution of OCR."""
    with opened(path, document_format) as image:
        _seek(image, number)
        dots = image.info.get("dpi", (0, 0))[0]
        if document_format is Format.JPEG:
            image.draft("L", image.size)
        picture = ImageOps.exif_transpose(_flat(image))
    scale = min(
        _scale(picture.size, float(dots or 0)), math.sqrt(MOST_PIXELS / (picture.width * picture.height))
    )
    if not 0.9 < scale <= 1.0:
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    return picture


def png(path: Readable, document_format: Format, number: int, width: int) -> bytes:
    """Page `number`, from 1, as a PNG, `width` pixels wide and at most three times as high."""
    file = io.BytesIO()
    shown(path, document_format, number, width).save(file, "PNG")
    return file.getvalue()


def shown(path: Readable, document_format: Format, number: int, width: int) -> Any:
    """Page `number`, from 1, in colour, `width` pixels wide and at most three times as high."""
    with opened(path, document_format) as image:
        _seek(image, number)
        picture = ImageOps.exif_transpose(image.convert("RGB"))
    scale = min(width / picture.width, 3 * width / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _seek(image: Any, number: int) -> None:
    """The image is at page `number`, from 1, which is not too large; raises `no_page` if there is none."""
    if number > 1:
        try:
            image.seek(number - 1)
        except EOFError:
            raise WorkError(f"the document has no page {number}", code="no_page") from None
    _check_size(image.size)


def _flat(image: Any) -> Any:
    """The image in grey, on white where it is transparent."""
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        layer = image.convert("RGBA")
        paper = Image.new("RGBA", layer.size, "white")
        return Image.alpha_composite(paper, layer).convert("L")
    return image.convert("L")


def _scale(size: tuple[int, int], dots: float) -> float:
    """How much an image is enlarged before it is recognised; it is made smaller only by the cap on pixels."""
    if dots >= DPI:
        return min(1.0, max(0.25, 1.5 * DPI / dots))
    if 30 <= dots < DPI:
        return min(MOST_ENLARGED, DPI / dots)
    return min(MOST_ENLARGED, SMALL / max(size)) if max(size) < SMALL else 1.0


def _check_size(size: tuple[int, int]) -> None:
    if size[0] * size[1] > MOST_IMAGE:
        raise WorkError(
            f"the image has {size[0]:,} by {size[1]:,} pixels, more than {MOST_IMAGE:,}; make it smaller",
            code="too_large",
        )


@contextlib.contextmanager
def opened(path: Readable, document_format: Format) -> Iterator[Any]:
    """The image, not decoded yet; `broken_file` if it is damaged, `too_large` if it has too many pixels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Image.MAX_IMAGE_PIXELS = None  # `_check_size` is asked before anything is decoded
        try:
            with path.open("rb") as file, Image.open(file, formats=[document_format.value.upper()]) as image:
                _check_size(image.size)
                yield image
        except (OSError, SyntaxError, EOFError) as error:
            raise WorkError(
                "the image is damaged and cannot be read; upload it again", code="broken_file"
            ) from error
