"""Sources that are large, fail half-way, or hold what cannot be taken in."""

import pytest

from holdfast import faults
from holdfast.core.states import Lane
from holdfast.service.requests import RequestContext
from holdfast.store.library import sources as stored
from tests.looks.flaky import FlakySource
from tests.looks.install import WISH, counts


def add(small, **more):
    """A source of the type that the test has made; its first look was carried out."""
    source = small.sources.add(WISH, "shelf", "flaky", {}, **more)[0]
    small.begin()
    return small.again(source)


def test_a_list_that_breaks_off_keeps_what_came_and_prunes_nothing(small, monkeypatch):
    """Half a list is no reason to delete the other half."""
    flaky = FlakySource(6)
    flaky.use(monkeypatch)
    source = add(small, prune=True)
    flaky.breaks_after = 3
    source = small.look(source)
    assert source.error == ("source_unreachable", "the line went dead")
    assert len(small.shelf()) == 6
    flaky.breaks_after = None
    assert counts(small.look(source)) == {"unchanged": 6}


def test_an_item_that_a_feed_no_longer_shows_is_not_gone(small, monkeypatch):
    """A source that shows only its newest items says so, and nothing is taken for gone."""
    flaky = FlakySource(4, complete=False)
    flaky.use(monkeypatch)
    source = add(small, prune=True)
    flaky.items = 2
    assert counts(small.look(source)) == {"unchanged": 2}
    assert len(small.shelf()) == 4


def test_failed_items_are_tried_again_even_if_the_source_would_say_unchanged(small, monkeypatch):
    """The source is told nothing of the last look while some of its items failed."""
    flaky = FlakySource(4, bad={1, 2})
    flaky.use(monkeypatch)
    source = add(small)
    assert counts(source) == {"new": 2, "failed": 2}
    flaky.bad = set()
    assert counts(small.look(source)) == {"new": 2, "unchanged": 2}
    small.look(source)
    assert flaky.states == ["", "", "after 2"]


def test_a_source_of_which_nothing_can_be_fetched_is_unreachable(small, monkeypatch):
    """After twenty items in a row the look gives up: a thousand would each wait for their time limit."""
    flaky = FlakySource(1000, bad=set(range(1000)))
    flaky.use(monkeypatch)
    source = add(small)
    assert source.error is not None
    assert source.error[0] == "source_unreachable"
    assert len(flaky.fetched) == 20


def test_items_without_a_version_are_fetched_each_time_and_indexed_once(small, monkeypatch):
    """What a source cannot tell without fetching is compared by its bytes."""
    flaky = FlakySource(3, version="")
    flaky.use(monkeypatch)
    source = add(small)
    assert counts(small.look(source)) == {"unchanged": 3}
    assert len(flaky.fetched) == 6
    assert set(small.index_runs().values()) == {1}


def test_ids_that_cannot_be_stored_fail_alone(small, monkeypatch):
    """An id with a NUL, or one of ten thousand characters, is an error of its item."""
    flaky = FlakySource(1)
    flaky.use(monkeypatch)
    hostile = ["nul\0", "x" * 10_000, "\ud800", ""]
    items = flaky._items

    def more():
        yield from items()
        for each in hostile:
            yield type(next(items()))(each, "1", each)

    monkeypatch.setattr(flaky, "_items", more)
    source = add(small, prune=True)
    assert counts(source) == {"new": 1, "failed": 4}
    assert {item.error_code for item in small.sources.items(source, state="failed")} == {"bad_external_id"}
    assert counts(small.look(source)) == {"unchanged": 1, "failed": 4}


def test_a_budget_that_is_used_up_fails_the_items_and_keeps_nothing(small, monkeypatch):
    """What may not be paid for is not taken in; the next look tries again."""
    flaky = FlakySource(2)
    flaky.use(monkeypatch)
    small.services.billing.set_budget("default", "tenant", hard=0)
    source = add(small)
    assert counts(source) == {"failed": 2}
    assert small.shelf() == {}
    assert {item.error_code for item in small.sources.items(source)} == {"over_budget"}


def test_a_quota_that_is_reached_fails_the_rest(small, monkeypatch):
    """The items that fit are taken in, the others say why not."""
    flaky = FlakySource(4)
    flaky.use(monkeypatch)
    small.services.quotas.change("default", documents=3, size=None, remove=False)
    source = add(small)
    assert counts(source) == {"new": 3, "failed": 1}


def test_the_number_of_sources_of_a_tenant_is_limited(small, monkeypatch):
    """Each may be due once a minute: one tenant must not keep the others waiting."""
    monkeypatch.setattr(stored, "MOST_SOURCES", 2)
    FlakySource(0).use(monkeypatch)
    for _ in range(2):
        small.sources.add(WISH, "shelf", "flaky", {})
    with pytest.raises(Exception, match="2 sources"):
        small.sources.add(WISH, "shelf", "flaky", {})


def test_a_look_at_many_known_items_writes_nothing_for_any_of_them(small, monkeypatch):
    """Items that did not change are compared in batches; only progress and the end are written."""
    flaky = FlakySource(210)
    flaky.use(monkeypatch)
    source = add(small)
    assert counts(source) == {"new": 210}
    small.sources.refresh(RequestContext(lane=Lane.INTERACTIVE), source)
    written = []
    with faults.armed(written.append):
        assert small.runtime.engine.executor.run_next([Lane.INTERACTIVE]) is not None
    assert counts(small.again(source)) == {"unchanged": 210}
    assert not [name for name in written if name.startswith(("take_item", "set_items"))]
    assert len(written) < 20
