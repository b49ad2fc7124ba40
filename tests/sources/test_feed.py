"""A source that is a feed: the newest entries of a site."""

import pytest

RSS = """<?xml version="1.0"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/rss-0.91.dtd">
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="http://search.yahoo.com/mrss/">
<channel><title>The site</title><link>{url}/</link>
<item><title>One &amp;amp; only/first</title><link>{url}/1</link><guid isPermaLink="false">key-1</guid>
 <media:title>a picture</media:title><pubDate>Mon, 02 Feb 2026</pubDate>
 <description>short&nbsp;text</description>
 <content:encoded><![CDATA[<p>The <b>whole</b>]]></content:encoded></item>
<item><guid>{url}/2</guid></item>
<item><title>no page and no key</title></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>The site</title>
<entry><id>tag:x,2026:1</id><title type="html">One</title><updated>2026-01-02T00:00:00Z</updated>
 <link rel="self" href="{url}/self"/><link href="1?a=1"/>
 <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a &lt; <em>b</em></div></content></entry>
</feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><title>The site</title></channel>
<item rdf:about="urn:1"><title>One</title><link>{url}/1</link><dc:date>2026-01-02</dc:date></item>
</rdf:RDF>"""


@pytest.fixture
def feed(site, opened):
    """`feed(text)` is the source of a feed that holds the text."""

    def source(text, **options):
        body = text.replace("{url}", site.url).encode()
        url = site.page("/feed", body, ETag='"1"')
        return opened("feed", {"url": url, **options})

    return source


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (RSS, [("key-1", "One & only-first.html", "/1"), ("{url}/2", "2.html", "/2")]),
        (ATOM, [("tag:x,2026:1", "One.html", "/1?a=1")]),
        (RDF, [("urn:1", "One.html", "/1")]),
    ],
    ids=["RSS", "Atom", "RDF"],
)
def test_entries_have_the_id_that_their_feed_gives_them(site, feed, text, items):
    """In every kind of feed; what is not listed is not gone."""
    listing = feed(text).list("")
    expected = [(key.replace("{url}", site.url), name, site.url + path) for key, name, path in items]
    assert [(item.external_id, item.name, item.url) for item in listing.items] == expected
    assert (listing.unchanged, listing.complete) == (False, False)


def test_an_unchanged_feed_is_not_read_again(site, feed):
    """The state of the last look is shown to the server, which says 304."""
    source = feed(RSS)
    state = source.list("").state
    site.page("/feed", status=304)
    listing = source.list(state)
    assert (listing.unchanged, listing.complete, list(listing.items), listing.state) == (
        True,
        False,
        [],
        state,
    )
    assert site.asked[-1][1]["If-None-Match"] == '"1"'


def test_the_version_follows_the_entry(feed):
    """Its `updated`, or else all that the feed says of it."""
    assert next(iter(feed(ATOM).list("").items)).version == "2026-01-02T00:00:00Z"
    before, after = (feed(text).list("").items for text in (RSS, RSS.replace("whole", "new")))
    assert [a.version == b.version for a, b in zip(before, after, strict=True)] == [False, True]


def test_the_document_of_an_entry_is_its_page(site, feed, content):
    """Named by the title of the entry; a file keeps its own name."""
    site.page("/1", b"<p>page", Content_Type="text/html")
    site.page("/2", b"%PDF", Content_Type="application/pdf")
    source = feed(RSS)
    first, second = source.list("").items
    data, page = content(source, first)
    assert (data, page.name, page.version) == (b"<p>page", "One & only-first.html", first.version)
    assert content(source, second)[1].name == "2"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (RSS, b"<title>One &amp; only/first</title>"),
        (RSS, b"<div><p>The <b>whole</b></div>"),
        (ATOM, b"<div>a &lt; <em>b</em></div>"),
        (RSS.replace("content:encoded", "media:text"), b"<div>short\xc2\xa0text</div>"),
    ],
)
def test_an_entry_can_be_the_document_itself(site, feed, content, text, part):
    """As HTML with its title, without another request."""
    source = feed(text, content="entry")
    item = next(iter(source.list("").items))
    data, document = content(source, item)
    assert part in data
    assert document.content_type == "text/html"
    assert [path for path, _headers in site.asked] == ["/feed"]


def test_an_entry_is_fetched_by_a_source_that_has_not_listed(feed, content):
    """Another process may fetch what this one listed."""
    item = next(iter(feed(RSS, content="entry").list("").items))
    assert b"whole" in content(feed(RSS, content="entry"), item)[0]


def test_an_id_or_link_that_looks_like_a_url_may_be_none(feed):
    """It is an id all the same, and an entry without a page has none."""
    text = "<rss><item><guid>http://[x</guid></item><item><guid>b</guid><link>http://[</link></item></rss>"
    items = list(feed(text, content="entry").list("").items)
    assert [(item.external_id, item.name, item.url) for item in items] == [
        ("http://[x", "feed.html", None),
        ("b", "feed.html", None),
    ]
    assert list(feed(text).list("").items) == []


def test_a_huge_title_is_shortened(feed):
    """And the rest of it is not held."""
    source = feed(RSS.replace("One", "x" * 1_000_000))
    assert next(iter(source.list("").items)).name == "x" * 150 + ".html"


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><rss>&a;</rss>', "bad_source", "declares the entity"),
        ("<rss>" + "<a>" * 10_000, "bad_source", "nested more than"),
        ("<rss><channel><item><title>cut", "bad_source", "is not valid XML"),
        ("<html/>", "bad_source", "is no feed: it begins with <html>"),
        ("<urlset/>", "bad_source", "use a source of type sitemap"),
        ("", "bad_source", "is not valid XML"),
        (
            "<rss>" + "".join(f"<item><link>http://a/{n}</link></item>" for n in range(9)) + "</rss>",
            "too_many_items",
            "more than 5",
        ),
    ],
    ids=["entities", "deep", "cut", "html", "sitemap", "empty", "many"],
)
def test_what_is_no_feed_is_refused_with_the_reason(site, refused, text, code, part):
    """Before it takes time or memory."""
    error = refused("feed", {"url": site.page("/f", text.encode()), "content": "entry"}, items=5)
    assert (error.code, part in error.message) == (code, True), error.message
