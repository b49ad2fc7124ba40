"""The original of a document, and its pages as pictures with a passage marked."""

import io

import pytest
from PIL import Image, ImageChops

from tests.documents import ocr, scans

RANGES = {"bytes=0-3": slice(4), "bytes=5-": slice(5, None), "bytes=-6": slice(-6, None)}
HTML = b"<html><body><script>alert(1)</script><p>the heron rests</p></body></html>"


@pytest.fixture
def stored(client, install):
    """`stored(content, name)` is the id of a document that is published."""
    client.collection()

    def upload(content, name="a.txt"):
        document = client.upload("collections/shelf/documents", content, name).json["document"]
        install.work()
        return document["id"]

    return upload


def picture(said):
    assert (said.status, said.headers["content-type"]) == (200, "image/png"), said.raw[:200]
    return Image.open(io.BytesIO(said.raw)).convert("RGB")


def yellow(image):
    """The box of all that is marked; None if nothing is."""
    red, _, blue = image.split()
    return ImageChops.subtract(red, blue).point(lambda more: 255 if more > 60 else 0).getbbox()


def test_an_original_is_what_was_uploaded_and_never_opens_by_itself(client, stored):
    """Its type and name, as an attachment, in a sandbox: a script in it runs nowhere."""
    said = client.get(f"documents/{stored(HTML, 'käse.html')}/original")
    assert (said.status, said.raw, said.headers["content-type"]) == (200, HTML, "text/html")
    assert said.headers["content-disposition"] == "attachment; filename*=UTF-8''k%C3%A4se.html"
    assert said.headers["x-content-type-options"] == "nosniff"
    assert said.headers["content-security-policy"].startswith("sandbox")


def test_a_range_of_an_original_is_sent_alone(client, stored):
    """One range; several at once are answered with the whole file, as RFC 9110 allows."""
    path = f"documents/{stored(HTML, 'a.html')}/original"
    for span, part in RANGES.items():
        said = client.get(path, headers={"Range": span})
        assert (said.status, said.raw) == (206, HTML[part])
    assert client.get(path, headers={"Range": "bytes=0-1,3-4"}).raw == HTML


def test_a_range_outside_of_the_file_is_refused(client, stored):
    """416, with the size in words."""
    said = client.get(f"documents/{stored(HTML, 'a.html')}/original", headers={"Range": "bytes=9999-"})
    assert (said.status, said.code) == (416, "bad_range")


def test_a_page_shows_a_passage_where_it_stands(client, stored):
    """The second page of a PDF: the chunk on it is marked, and nothing where nothing is asked for."""
    document = stored(scans.pdf([["first page"], ["the heron rests", "on the second line"]]), "a.pdf")
    chunks = client.get(f"documents/{document}/chunks").json["chunks"]
    (chunk,) = (each for each in chunks if each["page"] == 2)
    where = f"documents/{document}/pages/2?width=612"
    marked = picture(client.get(f"{where}&chunk={chunk['slice']}.{chunk['position']}"))
    left, top, right, bottom = yellow(marked)
    assert marked.width == 612
    assert 65 <= left <= 75
    assert 50 <= top <= 72 <= bottom <= 95
    assert 120 <= right <= 200
    assert yellow(picture(client.get(where))) is None


def test_a_scanned_page_and_an_image_show_a_passage_too(client, stored):
    """By the boxes of the recognised words."""
    ocr.require_ocr()
    scan = scans.picture(["the heron rests", "on the second line"])
    for content, name in ((scans.pdf([scan]), "a.pdf"), (scans.encoded(scan), "a.png")):
        document = stored(content, name)
        (chunk,) = client.get(f"documents/{document}/chunks").json["chunks"]
        mark = f"chunk={chunk['slice']}.{chunk['position']}"
        left, top, _, _ = yellow(picture(client.get(f"documents/{document}/pages/1?width=850&{mark}")))
        assert abs(left - 100) <= 10
        assert abs(top - 100) <= 12


@pytest.mark.parametrize(("path", "code"), [("pages/3", "no_page"), ("pages/1?chunk=7.7", "no_chunk")])
def test_what_is_not_there_is_not_shown(client, stored, path, code):
    """A page after the last, and a chunk that is none."""
    said = client.get(f"documents/{stored(scans.pdf([['one'], ['two']]), 'a.pdf')}/{path}")
    assert (said.status, said.code) == (404, code)


def test_a_text_has_no_pages_to_show(client, stored):
    """The message says where its text is."""
    assert client.get(f"documents/{stored(b'plain words')}/pages/1").code == "no_page"
