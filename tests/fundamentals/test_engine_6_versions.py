"""Workers of two releases run side by side: each does what it knows and leaves the rest."""

import pytest

from holdfast.core.states import Disposition
from holdfast.engine.kinds import Kind


def release(done, *versions):
    """The index kind of a release: it asks for the first version and can also do the others."""
    run = lambda work: done.append((versions[0], work.claim.pipeline))
    return Kind("index", run, version=versions[0], also=versions[1:])


@pytest.mark.g4
def test_an_old_worker_leaves_what_it_does_not_know(story):
    """Version 2 was asked for: the worker that knows only 1 finds nothing, the new one does it."""
    done = []
    old, new = story.engine(release(done, 1)), story.engine(release(done, 2))
    new.request(story.ask())
    assert old.work_off() == []
    assert len(new.work_off()) == 1
    assert done == [(2, "index@2")]


def test_unknown_work_does_not_stand_in_the_way(story):
    """Behind work of another version, an old worker still finds its own."""
    done = []
    old, new = story.engine(release(done, 1)), story.engine(release(done, 2))
    new.request(story.ask("document:1", priority=0))
    old.request(story.ask("document:2"))
    assert [one.claim.subject for one in old.work_off()] == ["document:2"]


@pytest.mark.g4
def test_a_new_worker_may_also_do_what_the_old_one_left(story):
    """`also` names the versions a release still carries out, so a deploy strands nothing."""
    done = []
    story.engine(release(done, 1)).request(story.ask())
    assert story.engine(release(done, 2)).work_off() == []
    assert len(story.engine(release(done, 2, 1)).work_off()) == 1
    assert done == [(2, "index@1")]


def test_a_new_version_is_a_change(story):
    """Asking with a newer pipeline supersedes: the result would not be the same."""
    done = []
    old, new = story.engine(release(done, 1)), story.engine(release(done, 2, 1))
    old.request(story.ask())
    old.work_off()
    assert old.request(story.ask()).disposition is Disposition.UNCHANGED
    assert new.request(story.ask()).disposition is Disposition.SUPERSEDING
