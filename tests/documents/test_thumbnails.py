"""Every document has a picture."""

import io

import PIL.Image
import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.parse.records import Format
from tests.documents import pdfs


def opened(png):
    image = PIL.Image.open(io.BytesIO(png))
    image.load()
    return image


def test_a_pdf_shows_its_first_page(parser, keep):
    """The picture has the width asked for, the shape of the page, and ink on it."""
    image = opened(parser.thumbnail(keep(pdfs.make(["A page with words on it"])), Format.PDF, 200))
    assert (image.format, image.width) == ("PNG", 200)
    assert abs(image.height - 200 * 792 / 612) <= 1
    assert len(image.convert("L").getcolors()) > 2


def test_a_very_long_page_is_not_a_very_long_picture(parser, keep):
    """A page a hundred times as high as wide is shown three times as high at most."""
    data = pdfs.make(["words"]).replace(b"[0 0 612 792]", b"[0 0 99 9999]")
    image = opened(parser.thumbnail(keep(data), Format.PDF, 200))
    assert image.height <= 601


@pytest.mark.parametrize("kind", [kind for kind in Format if kind is not Format.PDF])
def test_all_else_has_a_placeholder(parser, keep, kind):
    """A sheet of paper that names the format: the same bytes each time, others for other formats."""
    path = keep(b"anything")
    first = parser.thumbnail(path, kind, 120)
    assert opened(first).width == 120
    assert parser.thumbnail(path, kind, 120) == first
    other = Format.TEXT if kind is not Format.TEXT else Format.HTML
    assert parser.thumbnail(path, other, 120) != first


def test_a_broken_pdf_has_no_picture(parser, keep):
    """The caller decides what that means; the reason is the same as in reading."""
    with pytest.raises(WorkError) as caught:
        parser.thumbnail(keep(b"%PDF-1.7 and nothing"), Format.PDF)
    assert caught.value.code == "broken_file"
