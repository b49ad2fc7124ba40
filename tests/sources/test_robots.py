"""The robots.txt of a site: which pages programs may fetch (RFC 9309)."""

import pytest

from holdfast.documents.sources import robots
from holdfast.documents.sources.source import SourceError, SourceItem

RULES = """
User-agent: other
Disallow: /

User-Agent: *   # everybody
Disallow: /private/
Allow: /private/open
Disallow: /*.zip$
Disallow: /a*b*c
Disallow: /\u00fc
Disallow:
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/private/x", False),
        ("/private/open/y", True),
        ("/x.zip", False),
        ("/x.zip?y", True),
        ("/aXXbYYc/z", False),
        ("/acb", True),
        ("/%C3%BC/x", False),
    ],
)
def test_the_longest_rule_decides(path, allowed):
    """Stars, ends, queries and letters beyond ASCII; an empty rule forbids nothing."""
    assert robots.allows(robots.rules_in(RULES), f"http://h.example{path}") is allowed


def test_a_group_for_holdfast_replaces_that_for_everybody():
    """Whatever else it says; several names may share one group."""
    text = "user-agent: *\ndisallow: /\n\nuser-agent: some\nuser-agent: Holdfast\ndisallow: /no\n"
    rules = robots.rules_in(text)
    assert (robots.allows(rules, "http://h/x"), robots.allows(rules, "http://h/no")) == (True, False)
    assert robots.rules_in("user-agent: holdfast\nuser-agent: *\n") == []


def test_a_sitemap_asks_before_it_fetches_a_page(site, opened):
    """Once for a host; a forbidden page is an error with the way out, which fetches it."""
    site.page("/robots.txt", b"User-agent: *\nDisallow: /no")
    yes, no = (SourceItem(site.page(path, b"text"), "", "x") for path in ("/yes", "/no"))
    source = opened("sitemap", {"url": f"{site.url}/sitemap.xml"})
    source.fetch(yes, "").content.close()
    with pytest.raises(SourceError, match="ignore_robots") as refused:
        source.fetch(no, "")
    assert refused.value.code == "access_denied"
    assert [path for path, _ in site.asked] == ["/robots.txt", "/yes"]
    bold = opened("sitemap", {"url": f"{site.url}/sitemap.xml", "ignore_robots": True})
    bold.fetch(no, "").content.close()


@pytest.mark.parametrize(("status", "code"), [(404, None), (403, None), (503, "unreachable")])
def test_a_site_without_rules_allows_and_one_that_fails_does_not(site, opened, status, code):
    """As the standard has it: no file is no rule, a failing server might have one."""
    site.page("/robots.txt", b"", status=status)
    item = SourceItem(site.page("/a", b"text"), "", "a")
    source = opened("sitemap", {"url": f"{site.url}/sitemap.xml"})
    if code is None:
        source.fetch(item, "").content.close()
        return
    with pytest.raises(SourceError) as refused:
        source.fetch(item, "")
    assert refused.value.code == code
