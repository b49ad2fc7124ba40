"""A plain sheet of paper with the name of a format on it, for what has no first page to show."""

import io

from PIL import Image, ImageDraw, ImageFont

from holdfast.documents.parse.records import Format

_PAPER, _EDGE, _INK, _LINES = (250, 250, 248), (208, 208, 204), (72, 84, 96), (226, 227, 224)


def placeholder(document_format: Format, width: int) -> bytes:
    """A PNG of `width` pixels in the proportions of A4; the same bytes for the same arguments."""
    height = round(width * 1.414)
    image = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width - 1, height - 1), outline=_EDGE, width=max(1, width // 160))
    margin, step = width // 8, max(4, height // 18)
    for number, top in enumerate(range(height // 2 + step, height - margin, step)):
        right = width - margin - (width // 5 if number % 4 == 3 else 0)
        draw.rectangle((margin, top, right, top + max(1, step // 4)), fill=_LINES)
    font = ImageFont.load_default(max(8, width // 7))
    draw.text((width / 2, height / 3), document_format.value.upper(), fill=_INK, font=font, anchor="mm")
    png = io.BytesIO()
    image.save(png, "PNG")
    return png.getvalue()
