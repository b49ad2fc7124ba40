"""Scans of known text are read: tilted, turned, noisy and of low resolution."""

import statistics

import pytest
from PIL import Image, ImageDraw

from holdfast.core.errors import WorkError
from holdfast.documents.parse import records
from holdfast.documents.parse.page_tilt import LevelPicture, tilt_of
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import Format, ParseLimits
from tests.documents import ocr, scans

TILTED = [
    *({"tilt": 2.0}, {"tilt": -2.0, "noise": 40}, {"tilt": 1.0, "font": scans.SERIF}),
    *({"tilt": -1.5, "font": scans.SERIF, "noise": 80}, {"tilt": -2.0, "font": scans.TYPEWRITER}),
]


@pytest.fixture(autouse=True)
def _ocr():
    ocr.require_ocr()


@pytest.fixture
def recognise(parser, keep):
    """`recognise(data)` is what OCR reads on the first page."""

    def page(data, languages="eng", number=1):
        path = keep(data)
        return parser.recognise(path, parser.outline(path, scans=True).format, number, languages)

    return page


def words(page):
    return " ".join(block.text for block in page.blocks)


def test_tilted_scans_at_200_dpi_are_read(recognise):
    """English, up to 2 degrees: recall of words 0.95 on average, and 0.90 on the worst page."""
    recalls = []
    for seed, how in enumerate(TILTED, start=20):
        text = scans.lines(seed)
        recalls.append(scans.recall(words(recognise(scans.pdf([scans.picture(text, **how)]))), text))
    assert statistics.mean(recalls) >= 0.95, recalls
    assert min(recalls) >= 0.90, recalls


@pytest.mark.parametrize("how", [{"rotation": 90}, {"rotation": 180}, {"dpi": 72}, {"dpi": 300}])
def test_pages_of_any_orientation_and_resolution_are_read(recognise, how):
    """Turned upright by their letters, enlarged or reduced to 200 dpi."""
    text = scans.lines(30)
    assert scans.recall(words(recognise(scans.pdf([scans.picture(text, **how)]))), text) >= 0.90


def test_words_have_boxes_where_they_stand(recognise):
    """In ten-thousandths, from the upper left: the first line begins an inch from both edges."""
    page = recognise(scans.pdf([scans.picture(["Anchor below", "the fold"])]))
    first = page.words[0]
    assert first.text == "Anchor"
    assert first.left == pytest.approx(10_000 / 8.5, abs=60)
    assert first.top == pytest.approx(10_000 / 11, abs=80)


def test_words_of_a_tilted_page_have_boxes_on_the_page_as_it_is():
    """The box of a corner of a levelled page leads back to where the scanner has put it."""
    page = Image.new("L", (1700, 2200), 250)
    for row in range(200, 2000, 40):
        ImageDraw.Draw(page).rectangle((200, row, 1500, row + 20), fill=10)
    scan = page.rotate(2.0, fillcolor=250)
    level = LevelPicture(scan)
    dark = [level.image.point(lambda shade: 255 * (shade < 100)).getbbox()]
    left, top, right, bottom = level.on_the_page(dark[0])
    seen = [1700 * left / 10_000, 2200 * top / 10_000, 1700 * right / 10_000, 2200 * bottom / 10_000]
    assert seen == pytest.approx(scan.point(lambda shade: 255 * (shade < 100)).getbbox(), abs=40)


@pytest.mark.parametrize("tilt", [-3.5, -1.2, 2.0])
@pytest.mark.parametrize("rotation", [0, 90])
def test_the_tilt_of_a_page_is_known(tilt, rotation):
    """To a fifth of a degree, upright or on its side; a slight tilt and blank paper have none."""
    scan = scans.picture(scans.lines(36), tilt=tilt, rotation=rotation, noise=40)
    assert tilt_of(scan) == pytest.approx(-tilt, abs=0.2)
    assert tilt_of(scans.picture(scans.lines(36), rotation=rotation, tilt=0.4)) == 0.0
    assert tilt_of(Image.new("L", (300, 400), 255)) == 0.0


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_an_image_is_a_document(parser, keep, form):
    """Known by its content, whatever it is called."""
    path = keep(scans.encoded(scans.picture(scans.lines(31, 8)), form), "notes.txt")
    outline = parser.outline(path, "notes.txt")
    assert (outline.format.value, outline.units, outline.scans) == (form.lower(), 1, (1,))
    page = parser.recognise(path, outline.format, 1, "eng")
    assert scans.recall(words(page), scans.lines(31, 8)) >= 0.95


def test_a_tiff_has_pages(parser, keep, recognise):
    """Each of them is recognised by its number."""
    pages = [scans.picture(scans.lines(seed, 5)) for seed in (32, 33)]
    data = scans.encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:], compression="tiff_lzw")
    assert parser.outline(keep(data)).units == 2
    assert scans.recall(words(recognise(data, number=2)), scans.lines(33, 5)) >= 0.95


def test_languages_are_those_that_were_asked_for(recognise):
    """German with its own letters; a language without a file is one line that names the package."""
    ocr.require_ocr("deu")
    text = ["Über Größe und Maß", "Straßen führen zum Fluß"]
    assert scans.recall(words(recognise(scans.pdf([scans.picture(text)]), "deu")), text) >= 0.8
    with pytest.raises(WorkError, match="no language files for xxx") as refused:
        recognise(scans.pdf([scans.picture(text)]), "xxx")
    assert refused.value.code == "ocr_missing"


def test_recognition_fits_in_little_memory(keep):
    """Within 300 MiB of address space, with the parsers, and without writing a file."""
    small = Parser(ParseLimits(memory=300 * records.MIB))
    text = scans.lines(34)
    page = small.recognise(keep(scans.pdf([scans.picture(text)])), Format.PDF, 1, "eng")
    small.close()
    assert scans.recall(words(page), text) >= 0.95


def test_blank_paper_is_empty_and_no_gap(recognise):
    """A scanned back of a sheet has nothing to read."""
    assert recognise(scans.pdf([scans.picture([])])).blank
