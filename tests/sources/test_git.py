"""A source that is a Git repository: the files of its branch."""

import base64
import shutil
import sys
import zlib

import pytest

from holdfast.documents.parse.records import MIB, ParseLimits
from holdfast.documents.sources import git
from holdfast.documents.sources.source import SourceError, SourceItem
from tests.documents.sites import Site
from tests.sources.git_server import Repository

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="serves repositories with git")


@pytest.fixture
def repository(tmp_path, site):
    """An empty repository on a server of its own."""
    return Repository(tmp_path, site)


def paths(source):
    return [item.external_id for item in source.list("").items]


def posts(site):
    return sum(path.endswith("/git-upload-pack") for path, _headers in site.asked)


def test_the_files_of_the_branch_are_the_items(site, repository, opened, content):
    """Their blob is their version, the commit is the state, and one pack serves all of them."""
    files = {"README.md": b"# Read me", "docs/a b.txt": b"one", "docs/ü.txt": bytes(range(256)) * 4000}
    head = repository.commit(repository.files(files))
    source = opened("git", {"url": repository.url}, bytes=2_000_000)
    listing = source.list("")
    items = list(listing.items)
    assert [item.external_id for item in items] == ["README.md", "docs/a b.txt", "docs/ü.txt"]
    assert items[1] == SourceItem("docs/a b.txt", repository.blob(b"one"), "a b.txt")
    assert (listing.state, listing.unchanged, listing.complete) == (head, False, True)
    assert {item.external_id: content(source, item)[0] for item in items} == files
    assert posts(site) == 1


def test_a_branch_that_has_not_moved_is_not_fetched(site, repository, opened, content):
    """One that has is compared by blobs: what is equal keeps its version."""
    before = repository.commit(repository.files({"a": b"one", "b": b"two"}))
    source = opened("git", {"url": f"{repository.url}/"})
    first = {item.external_id: item.version for item in source.list("").items}
    listing = source.list(before)
    assert (listing.unchanged, list(listing.items), listing.state, posts(site)) == (True, [], before, 1)
    after = repository.commit(repository.files({"a": b"one", "c": b"three"}))
    listing = opened("git", {"url": repository.url}).list(before)
    second = {item.external_id: item.version for item in listing.items}
    assert (second["a"] == first["a"], sorted(second), listing.state) == (True, ["a", "c"], after)


def test_a_file_is_fetched_by_a_source_that_has_not_listed(repository, opened, content):
    """Another process may fetch what this one listed; an unchanged file is not sent again."""
    repository.commit(repository.files({"a": b"one"}))
    (item,) = opened("git", {"url": repository.url}).list("").items
    source = opened("git", {"url": repository.url})
    assert content(source, item)[0] == b"one"
    assert source.fetch(item, item.version) is None
    with pytest.raises(SourceError, match="no longer has the file gone"):
        source.fetch(SourceItem("gone", "", "gone"), "")


def test_a_branch_or_a_tag_can_be_named(repository, opened, refused):
    """The default is what the server calls its default branch."""
    repository.commit(repository.files({"a": b"one"}))
    old = repository.commit(repository.files({"b": b"one"}), "release/1.x")
    repository.tag("v1", old)
    assert paths(opened("git", {"url": repository.url})) == ["a"]
    assert paths(opened("git", {"url": repository.url, "branch": "release/1.x"})) == ["b"]
    assert paths(opened("git", {"url": repository.url, "branch": "v1"})) == ["b"]
    error = refused("git", {"url": repository.url, "branch": "none"})
    assert (error.code, "has no branch or tag none" in error.message) == ("bad_source", True)


def test_files_are_chosen_by_folder_and_patterns(repository, opened, refused):
    """Before they are counted."""
    names = ["a.md", "docs/a.md", "docs/b.txt", "docs/old/c.md", "docs2/d.md"]
    repository.commit(repository.files(dict.fromkeys(names, b"x")))
    options = {"url": repository.url, "path": "/docs/", "include": ["*.md"], "exclude": ["docs/old/*"]}
    assert paths(opened("git", options, items=1)) == ["docs/a.md"]
    assert refused("git", {"url": repository.url}, items=4).code == "too_many_items"


def test_links_submodules_and_odd_names_are_left_out(repository, opened):
    """Nothing of a repository leads out of it, and nothing is what Git keeps to itself."""
    blob, link = repository.blob(b"x"), repository.blob(b"/etc/passwd")
    inner = repository.tree([("100644", "config", blob)])
    entries = [
        *(("40000", "..", inner), ("40000", ".", inner), ("40000", ".git", inner), ("40000", ".GIT", inner)),
        *(
            ("100644", "../up", blob),
            ("100644", "a\\b", blob),
            ("100644", "a\nb", blob),
            ("100644", "ok", blob),
        ),
        *(("120000", "link", link), ("160000", "module", "1" * 40), ("40000", "sub", inner)),
    ]
    repository.commit(repository.tree(entries))
    assert paths(opened("git", {"url": repository.url})) == ["ok", "sub/config"]


def test_a_tree_that_repeats_itself_ends(repository, refused):
    """Forty objects describe a million million files; they are counted, not collected."""
    tree = repository.tree([("100644", "f", repository.blob(b"x"))])
    for _ in range(40):
        tree = repository.tree([("40000", name, tree) for name in "ab"])
    repository.commit(tree)
    assert refused("git", {"url": repository.url}, items=1000).code == "too_many_items"


def test_a_token_is_shown_to_its_server_only(site, repository, opened):
    """As a password, with every request to that origin."""
    repository.commit(repository.files({"a": b"one"}))
    assert paths(opened("git", {"url": repository.url, "token": "secret", "username": "me"})) == ["a"]
    expected = "Basic " + base64.b64encode(b"me:secret").decode()
    assert [headers.get("Authorization") for _, headers in site.asked] == [expected, expected]


def test_a_file_that_cannot_be_taken_is_an_error_of_its_own(repository, opened, content):
    """One that is too large, and one that is in Git LFS; the others can be fetched."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    repository.commit(repository.files({"big": b"x" * 2000, "lfs": pointer, "ok": b"y"}))
    source = opened("git", {"url": repository.url}, bytes=1000)
    big, lfs, ok = source.list("").items
    for item, part in [(big, "limit is 1,000 bytes"), (lfs, "stored in Git LFS")]:
        with pytest.raises(SourceError, match=part) as caught:
            source.fetch(item, "")
        assert caught.value.code == "bad_source"
    assert content(source, ok)[0] == b"y"


def packets(*lines):
    return b"".join(b"0000" if line is None else b"%04x%s" % (len(line) + 4, line) for line in lines)


REFS = packets(b"# service=git-upload-pack\n", None, b"1" * 40 + b" HEAD\0side-band-64k shallow\n", None)
PACK = b"PACK\0\0\0\2\0\0\0\1"


@pytest.mark.parametrize(
    ("refs", "pack", "code", "part"),
    [
        (b"<html>", b"", "bad_source", "does not speak Git's protocol"),
        (REFS[:-30], b"", "unreachable", "closed the connection in the middle"),
        (packets(b"# service=git-upload-pack\n", None, None), b"", "bad_source", "has no commit"),
        (REFS, packets(b"ERR no such thing\n"), "bad_source", "refused to send its files: no such thing"),
        (REFS, packets(b"NAK\n", b"\3out of\nmemory\n"), "bad_source", "out of memory"),
        (REFS, packets(b"NAK\n", None), "bad_source", "sent no files"),
        (REFS, packets(b"NAK\n", b"\1" + PACK, None), "bad_source", "damaged repository"),
        (REFS, packets(b"NAK\n") + PACK + b"\0" * 100, "bad_source", "damaged repository"),
        (REFS, packets(b"NAK\n", b"\1" + b"nonsense" * 100, None), "bad_source", "damaged repository"),
    ],
    ids=["html", "cut", "empty", "ERR", "band 3", "nothing", "half", "raw", "nonsense"],
)
def test_a_server_that_does_not_keep_the_protocol_is_refused(site, refused, refs, pack, code, part):
    """With a sentence, in time, and with nothing left behind."""
    site.page("/r/info/refs", refs)
    site.page("/r/git-upload-pack", pack)
    error = refused("git", {"url": f"{site.url}/r"})
    assert (error.code, part in error.message) == (code, True), error.message


def test_a_token_does_not_follow_a_redirect(site, repository, opened):
    """The server that the repository has moved to is asked without it."""
    repository.commit(repository.files({"a": b"one"}))
    moved = f"{repository.url}/info/refs?service=git-upload-pack"
    old = Site()
    try:
        old.page("/old.git/info/refs", status=301, Location=moved)
        assert paths(opened("git", {"url": f"{old.url}/old.git", "token": "secret"})) == ["a"]
        assert "Authorization" in old.asked[0][1]
    finally:
        old.close()
    assert posts(site) == 1
    assert not any("Authorization" in headers for _, headers in site.asked)


def bomb(size):
    """The packets of a pack with one object, zeros without end."""
    kind, low = 3 << 4, size & 15
    head = bytes([0x80 | kind | low, *(0x80 | size >> shift & 127 for shift in (4, 11, 18)), size >> 25])
    deflate = zlib.compressobj(1)
    body = PACK + head + b"".join(deflate.compress(bytes(MIB)) for _ in range(size // MIB)) + deflate.flush()
    parts = [body[at : at + 60000] for at in range(0, len(body), 60000)]
    return packets(b"NAK\n", *(b"\1" + part for part in [*parts, bytes(20)]), None)


def test_a_pack_that_expands_without_end_is_refused(site, refused, monkeypatch):
    """It meets the limit of memory of the child that reads it, and nothing else does."""
    monkeypatch.setattr(git, "READING", ParseLimits(memory=192 * MIB))
    site.page("/r/info/refs", REFS)
    site.page("/r/git-upload-pack", bomb(200 * MIB))
    error = refused("git", {"url": f"{site.url}/r"})
    assert (error.code, "is too large to be read" in error.message) == ("bad_source", True), error.message


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"url": "git@example.com:a/b.git"}, "ssh and git:// are not supported"),
        ({"url": "ssh://example.com/b.git"}, "option url of the source should begin with https://"),
        (
            {"url": "https://u:p@example.com/b.git"},
            "option url of the source is not a URL",
        ),
        ({"url": "https://example.com/b?x"}, "should have no question mark"),
        ({}, "option url of the source is missing"),
    ],
)
def test_an_option_that_is_wrong_is_named(opened, options, part):
    """Before anything is connected to."""
    with pytest.raises(SourceError) as caught:
        opened("git", options)
    assert (caught.value.code, part in caught.value.message) == ("bad_source", True), caught.value.message


def test_a_missing_extra_is_named(opened, monkeypatch):
    """In one line."""
    monkeypatch.setitem(sys.modules, "dulwich", None)
    with pytest.raises(SourceError, match=r"a source of type git needs the git extra: pip install"):
        opened("git", {"url": "https://example.com/r.git"})
