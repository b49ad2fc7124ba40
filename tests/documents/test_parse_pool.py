"""Several parsers, lent to tenants by their shares."""

import contextlib
import time

import pytest

from holdfast.documents.chunk import ChunkOptions
from holdfast.documents.parse.pool import Parsers, ParsersBusyError, Shares


@pytest.fixture
def parsers():
    pool = Parsers(shares=Shares(parsers=3, tenant=2, waiting=1))
    yield pool
    pool.close()


def soon():
    return time.monotonic() + 0.05


def test_a_tenant_has_its_share_and_leaves_the_rest_to_others(parsers):
    """The third caller of one tenant waits in vain; the first of another does not wait."""
    with contextlib.ExitStack() as held:
        for _ in range(2):
            held.enter_context(parsers.lent("acme", soon()))
        with pytest.raises(ParsersBusyError):
            held.enter_context(parsers.lent("acme", soon()))
        held.enter_context(parsers.lent("other", soon()))
        with pytest.raises(ParsersBusyError):
            held.enter_context(parsers.lent("third", soon()))
    with parsers.lent("acme", soon()) as parser:
        assert [piece.text for piece in parser.cut_text("hello", ChunkOptions()).pieces] == ["hello"]
    assert (dict(parsers._lent), dict(parsers._waiting), len(parsers._free)) == ({}, {}, 3)


def test_few_callers_of_a_tenant_wait(parsers):
    """Whoever comes beyond them is told at once, however long it would wait."""
    with contextlib.ExitStack() as held:
        for _ in range(2):
            held.enter_context(parsers.lent("acme"))
        parsers._waiting["acme"] = 1  # as one that waits has it
        began = time.monotonic()
        with pytest.raises(ParsersBusyError):
            held.enter_context(parsers.lent("acme", began + 600))
        assert time.monotonic() - began < 300
        del parsers._waiting["acme"]


def test_a_text_is_recognised_and_cut_in_the_child(parsers):
    """Markdown by its marks, text as it is, and what looks like neither is no exact estimate."""
    with parsers.lent("acme") as parser:
        cut = parser.cut_text("# Title\n\n- a point\n\nwords", ChunkOptions())
        assert (cut.exact, cut.pieces[0].headings) == (True, ("Title",))
        assert parser.cut_text("<html><p>words", ChunkOptions()).exact is False
        assert parser._child is not None
