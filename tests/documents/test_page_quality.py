"""No page is lost silently: each says where its text comes from, or why it has none."""

import pytest

from holdfast.core import gaps
from holdfast.core.errors import WorkError
from holdfast.documents.parse.records import GapReason, Quality
from tests.documents import pdfs, scans, scores


def text_page(seed):
    return scans.lines(seed, 20)


def test_a_scanned_page_among_text_pages_is_a_gap(read):
    """The second of three pages is a picture: it has no text, and says so."""
    scan = scans.picture(scans.lines(2), dpi=72)
    _, pages = read(scans.pdf([text_page(1), scan, text_page(3)]))
    assert [page.quality for page in pages] == [Quality.TEXT, Quality.EMPTY, Quality.TEXT]
    assert [page.gap for page in pages] == [None, GapReason.NO_TEXT_LAYER, None]


def test_a_stamp_does_not_make_a_scan_a_page_of_text(read):
    """A few characters over a picture are read, and the picture is a gap all the same."""
    scan = scans.picture(scans.lines(2), dpi=72)
    page = read(scans.pdf([text_page(1), (scan, ["ABC 000123"])]))[1][1]
    assert (page.quality, page.gap) == (Quality.TEXT, GapReason.NO_TEXT_LAYER)


@pytest.mark.parametrize("page", [[], ["A short page."]])
def test_a_blank_or_short_page_is_no_gap(read, page):
    """Nothing is drawn on it that could be text."""
    assert read(scans.pdf([text_page(1), page]))[1][1].gap is None


def test_letters_without_names_are_read_by_their_codes(read):
    """Old TeX files have such fonts; what reads as words is no gap, and OCR has nothing to do."""
    lines = text_page(7)
    (page,) = read(pdfs.unmapped(lines))[1]
    assert (page.quality, page.gap) == (Quality.TEXT, None)
    assert scores.recall(" ".join(lines).split(), scores.words_of([page])) >= 0.95


@pytest.mark.parametrize("shift", [-29, 3, 130])
def test_codes_that_mean_nothing_are_a_gap_and_not_indexed(read, shift):
    """The numbers of glyphs, another order of the alphabet, another code: nobody pays for rubbish."""
    (page,) = read(pdfs.unmapped(text_page(7), shift))[1]
    assert (page.blocks, page.gap) == ((), GapReason.NO_TEXT_LAYER)


@pytest.mark.parametrize(("scans_count", "advice"), [(True, "no picture"), (False, "install OCR")])
def test_a_blank_file_is_not_told_to_install_what_is_there(parser, keep, scans_count, advice):
    """Where OCR can read scans, a PDF without a picture is blank."""
    with pytest.raises(WorkError, match=advice) as caught:
        parser.outline(keep(pdfs.make([""])), scans=scans_count)
    assert caught.value.code == "no_text"


def test_a_picture_of_a_page_is_told_wherever_it_stands(read):
    """The digest by which recognised text is kept: the same in another file, another for another scan."""
    one, two = scans.picture(scans.lines(2), dpi=72), scans.picture(scans.lines(3), dpi=72)
    _, before = read(scans.pdf([text_page(1), one]))
    _, after = read(scans.pdf([text_page(1), two, text_page(4), one]))
    assert before[1].picture == after[3].picture
    assert after[1].picture != after[3].picture


def test_gaps_are_grouped_by_reason_and_as_ranges():
    """Neighbours are a range; scattered ones stand in one line, and all are counted."""
    unread = [(page, "no_text_layer") for page in (4, 5, 6, 9)] + [(7, "damaged")]
    assert gaps.grouped(unread) == (gaps.Gap("4-6, 9", "no_text_layer", 4), gaps.Gap("7", "damaged", 1))
