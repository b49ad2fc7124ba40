"""A source that is a sitemap: the pages of a site."""

import gzip

import pytest

from holdfast.documents.sources import sitemap
from holdfast.documents.sources.source import SourceError, SourceItem


def urlset(*pages, head='<?xml version="1.0"?>'):
    entries = "".join(f"<url><loc>{url}</loc>{more}</url>" for url, more in pages)
    space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="http://images"'
    return f"{head}\n<urlset {space}>{entries}</urlset>".encode()


def index(*urls):
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex>{entries}</sitemapindex>".encode()


def ids(source):
    return [item.external_id for item in source.list("").items]


def test_pages_are_listed_with_their_date_as_version(site, opened):
    """Each once; URLs of pictures and of other vocabularies are no pages."""
    a, b = f"{site.url}/a", f"{site.url}/b.pdf?x=1&amp;y=2"
    picture = f"<i:image><i:loc>{site.url}/p.png</i:loc></i:image>"
    body = urlset(
        (a, f"<lastmod> 2026-01-02 </lastmod>{picture}"), (f" {b}\n", ""), (a, ""), ("ftp://x/", "")
    )
    source = opened("sitemap", {"url": site.page("/sitemap.xml", body)})
    plain = f"{site.url}/b.pdf?x=1&y=2"
    listing = source.list("")
    assert list(listing.items) == [SourceItem(a, "2026-01-02", "a", a), SourceItem(plain, "", "b.pdf", plain)]
    assert (listing.state, listing.unchanged, listing.complete) == ("", False, True)


def test_a_page_keeps_the_version_of_its_listing(site, opened, content):
    """So that the next listing can be compared; without a date the server is asked whether it changed."""
    site.page("/a", b"one", ETag='"1"')
    source = opened("sitemap", {"url": f"{site.url}/sitemap.xml"})
    dated, undated = (SourceItem(f"{site.url}/a", version, "a") for version in ("2026-01-02", ""))
    assert content(source, dated, "2026-01-01")[1].version == "2026-01-02"
    version = content(source, undated)[1].version
    site.page("/a", status=304)
    assert source.fetch(undated, version) is None


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("text", [False, True], ids=["xml", "text"])
def test_sitemaps_may_be_compressed_or_plain_text(site, opened, pack, text):
    """A URL in each line is a sitemap, too."""
    a, b = f"{site.url}/a", f"{site.url}/b"
    body = f"\ufeff{a}\r\n\n{b}".encode() if text else urlset((a, ""), (b, ""))
    assert ids(opened("sitemap", {"url": site.page("/sitemap.txt", pack(body))})) == [a, b]


def test_an_index_leads_to_sitemaps_and_to_one_more_index(site, opened):
    """Two levels of indexes; one that refers to itself is read once."""
    top = site.page("/top.xml", index(f"{site.url}/middle.xml", f"{site.url}/top.xml", f"{site.url}/y.xml"))
    site.page("/middle.xml", index(f"{site.url}/x.xml"))
    site.page("/x.xml", urlset((f"{site.url}/1", "")))
    site.page("/y.xml", urlset((f"{site.url}/2", ""), (f"{site.url}/1", "")))
    assert ids(opened("sitemap", {"url": top})) == [f"{site.url}/2", f"{site.url}/1"]
    above = site.page("/above.xml", index(top))
    source = opened("sitemap", {"url": above})
    assert_fails(source, "bad_source", "nested more than 2 deep", [f"{site.url}/2", f"{site.url}/1"])


def test_a_broken_sitemap_does_not_hide_the_others(site, opened):
    """Their pages come first, then the error: the look knows that the list has a hole."""
    top = site.page("/top.xml", index(f"{site.url}/no.xml", f"{site.url}/x.xml"))
    site.page("/no.xml", status=500)
    site.page("/x.xml", urlset((f"{site.url}/1", "")))
    assert_fails(
        opened("sitemap", {"url": top}), "unreachable", "/no.xml responded with status 500", [f"{site.url}/1"]
    )


def assert_fails(source, code, part, expected):
    items = iter(source.list("").items)
    assert [next(items).external_id for _ in expected] == expected
    with pytest.raises(SourceError) as caught:
        next(items)
    assert (caught.value.code, part in caught.value.message) == (code, True), caught.value.message


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"include": ["/docs/*"]}, ["docs/a.html", "docs/old/b.html"]),
        ({"include": ["*.html"], "exclude": ["/docs/old/*"]}, ["docs/a.html"]),
        ({"exclude": ["http*://*/docs/*", "?.pdf"]}, ["blog/"]),
    ],
)
def test_pages_are_chosen_by_patterns(site, opened, options, names):
    """Of their path, of its last part, or of the whole URL."""
    paths = ["docs/a.html", "docs/old/b.html", "blog/", "x/c.pdf"]
    url = site.page("/sitemap.xml", urlset(*((f"{site.url}/{path}", "") for path in paths)))
    assert ids(opened("sitemap", {"url": url, **options})) == [f"{site.url}/{name}" for name in names]


def test_a_sitemap_sends_us_to_its_own_host_only(site, opened, refused):
    """Neither by what it lists nor by a redirect of that; unless the owner of the source allows it."""
    own = site.page("/a", status=302, Location="http://other.example/b")
    url = site.page("/sitemap.xml", urlset(("http://other.example/a", ""), (own, "")))
    assert ids(opened("sitemap", {"url": url})) == [own]
    assert ids(opened("sitemap", {"url": url, "other_hosts": True})) == ["http://other.example/a", own]
    error = refused("sitemap", {"url": url})
    assert (error.code, error.message) == ("address_refused", f"{own} redirects to another host")


def entity_bomb():
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    return urlset(("&e9;", ""), head=f'<!DOCTYPE x [<!ENTITY e0 "lol">{levels}]>')


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (entity_bomb(), "declares the entity 'e0'"),
        (b"<urlset>" + b"<a>" * 100_000, "nested more than 200 deep"),
        (b"<urlset><a b='" + b"x" * 1_000_000, "does not end"),
        (urlset()[:-5], "is not valid XML"),
        (b"<", "is not valid XML"),
        (b"<html><p>not found", "is no sitemap: it begins with <html>"),
        (b"<rss/>", "use a source of type feed"),
        (b"not found", "neither XML nor a list"),
        (b"http://" + b"x" * 100_000, "neither XML nor a list"),
        (gzip.compress(b"<urlset>" + b" " * (51 << 20)), "larger than 52,428,800 bytes when unpacked"),
        (gzip.compress(b"<urlset/>")[:-6], "is damaged"),
    ],
    ids=["entities", "deep", "long", "cut", "sign", "html", "feed", "text", "line", "bomb", "gzip cut"],
)
def test_what_is_no_sitemap_is_refused_with_the_reason(site, refused, body, part):
    """Before it takes time or memory."""
    error = refused("sitemap", {"url": site.page("/s", body)})
    assert (error.code, part in error.message) == ("bad_source", True), error.message


def test_a_sitemap_of_100_000_pages_ends_at_the_limit(site, refused):
    """And says what to do."""
    pages = ((f"{site.url}/{number}", "") for number in range(100_000))
    error = refused_listing(refused, site.page("/s", urlset(*pages)))
    assert (error.code, "choose some with include" in error.message) == ("too_many_items", True)


def refused_listing(refused, url):
    return refused("sitemap", {"url": url}, items=1000)


def test_an_index_without_an_end_is_bounded(site, refused, monkeypatch):
    """So many files, and no more."""
    monkeypatch.setattr(sitemap, "MOST_FILES", 5)
    names = [site.page(f"/{number}", urlset()) for number in range(10)]
    assert refused("sitemap", {"url": site.page("/s", index(*names))}).code == "too_many_items"
