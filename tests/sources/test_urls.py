"""A source that is a list of URLs."""

import pytest

from holdfast.documents.sources.source import SourceError, SourceItem, SourceLimits, SourceSpec
from holdfast.documents.sources.source_types import open_source


def test_each_url_is_an_item(opened):
    """In their order, each once, named for people by the end of its path or by its host."""
    urls = ["https://example.com/a/report.pdf", "https://example.com", " https://example.com/ ", ""]
    listing = opened("urls", {"urls": urls}).list("")
    assert list(listing.items) == [
        SourceItem("https://example.com/a/report.pdf", "", "report.pdf", "https://example.com/a/report.pdf"),
        SourceItem("https://example.com/", "", "example.com", "https://example.com/"),
    ]
    assert (listing.state, listing.unchanged, listing.complete) == ("", False, True)


def test_a_page_is_asked_for_again_with_the_validators_of_its_version(site, opened, content):
    """A 304 means unchanged, and so do the same bytes from a server that has no validators."""
    site.page("/a.html", b"<p>one", Content_Type="text/html", ETag='"1"')
    site.page("/b.txt", b"two")
    source = opened("urls", {"urls": [f"{site.url}/a.html", f"{site.url}/b.txt"]})
    first, second = source.list("").items
    data, page = content(source, first)
    assert (data, page.name, page.content_type) == (b"<p>one", "a.html", "text/html")
    plain = content(source, second)[1]
    site.page("/a.html", status=304)
    assert source.fetch(first, page.version) is None
    assert site.asked[-1][1]["If-None-Match"] == '"1"'
    assert source.fetch(second, plain.version) is None
    site.page("/b.txt", b"three")
    assert content(source, second, plain.version)[0] == b"three"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"<html><TITLE lang=x>Fish &amp;\n chips</title>", "Fish & chips.html"),
        (b"<meta charset='latin-1'><title>caf\xe9 a/b</title>", "café a-b.html"),
        (b"<title>never closed", "127.0.0.1.html"),
        (b"<meta charset=nonsense><title>x</title>", "127.0.0.1.html"),
        (b"<meta charset=punycode><title>a codec of quadratic time-</title>", "127.0.0.1.html"),
    ],
)
def test_a_page_whose_url_has_no_file_name_is_named_by_its_title(site, opened, content, head, name):
    """Otherwise a whole site would be called index.html."""
    site.page("/", head, Content_Type="text/html")
    source = opened("urls", {"urls": [site.url]})
    page = content(source, f"{site.url}/")[1]
    assert (page.name, page.title) == (name, "" if name.startswith("127") else name.removesuffix(".html"))


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "option urls of the source should have at least one"),
        ({"urls": "http://a/"}, "option urls of the source should be a list"),
        ({"urls": ["ftp://a/"]}, "option urls of the source is not a URL that can be fetched"),
        ({"urls": ["http://u:p@a/"]}, "contains a user name or password"),
        ({"urls": ["http://a/\nb"]}, "number 1"),
        ({"urls": ["http://a/"] * 10_001}, "10,001 entries; at most 10,000"),
        (
            {"urls": ["http://a/"], "deep": 1},
            "option deep of the source is unknown; a source of type urls has urls",
        ),
    ],
)
def test_an_option_that_is_wrong_is_named(opened, options, part):
    """Before anything is fetched."""
    with pytest.raises(SourceError) as caught:
        opened("urls", options)
    assert caught.value.code == "bad_source"
    assert part in caught.value.message


def test_a_type_that_does_not_exist_is_refused_with_those_that_do():
    """The message is a list to choose from."""
    with pytest.raises(SourceError, match=r"the types are .*urls") as caught:
        open_source(SourceSpec("gopher", {}), SourceLimits())
    assert caught.value.code == "bad_source"


def test_more_urls_than_a_look_may_take_are_refused(refused):
    """The limit of the installation holds for lists, too."""
    error = refused("urls", {"urls": ["http://a/", "http://b/"]}, items=1)
    assert error.code == "too_many_items"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "access_denied"),
        (403, "access_denied"),
        (404, "bad_source"),
        (410, "bad_source"),
        (429, "unreachable"),
        (500, "unreachable"),
    ],
)
def test_the_status_of_a_page_says_what_is_wrong(site, refused, status, code):
    """Keys, the URL, or the server."""
    assert refused("urls", {"urls": [site.page("/a", status=status)]}).code == code
