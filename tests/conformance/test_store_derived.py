"""Derived nodes: staged with their slice, published whole, withheld with any of their documents."""

import dataclasses
import itertools
import threading

import pytest
from sqlalchemy import func, select, update

from holdfast.core import filters
from holdfast.core.records import Fenced, Spent
from holdfast.store.base.schema import (
    DERIVED,
    derived_edges,
    derived_nodes,
    derived_sources,
    documents,
    runs,
)
from holdfast.store.derived import inputs, staging, trees
from holdfast.store.derived.staging import EdgeDraft, NodeDraft, NodeSourceDraft, StateDraft
from holdfast.store.derived.trees import TreeReader
from holdfast.store.library import document_values
from holdfast.store.protocol import claims, prune, requests
from holdfast.store.protocol import tasks as fenced
from tests.conformance.conftest import build
from tests.search.sample_documents import Shelf

READER = TreeReader("default", "c", "raptor")


@pytest.fixture
def shelf(world):
    """A collection of two published documents."""
    shelf = Shelf(world.db, "default")
    for name in ("a", "b"):
        shelf.publish(name, "one", "two", embed=None)
    return shelf


def node(key, *names, children=(), level=1, **versions):
    sources = [NodeSourceDraft(name, versions.get(name, 1), 0, 1) for name in names]
    document = names[0] if len(names) == 1 else None
    return NodeDraft(key, "summary", level, key, f"text of {key}", sources, document, children=children)


def tree(**versions):
    """Two documents with a summary each, and one of both."""
    below = [node("a1", "a", **versions), node("b1", "b", **versions)]
    return [*below, node("top", "a", "b", children=("a1", "b1"), level=2, **versions)]


def publish(world, nodes, **more):
    """A new generation of the collection's tree, published."""
    claim = world.start(kind="raptor", subject="collection:c", collection="c", content=world.db.token())
    landed = fenced.finish(
        world.db, claim, spent=Spent(), also=lambda tx: staging.put(tx, claim, nodes, **more)
    )
    assert landed.published
    return claim


def read(world, reader=READER):
    """The keys of all nodes that are shown, with whether they are stale."""

    def body(tx):
        head = reader.head(tx, "collection:c")
        return {} if head is None else reader.named(tx, head, ["a1", "b1", "top", "new"])

    return {key: each.stale for key, each in world.db.read(body).items()}


def rows(world, table=derived_nodes):
    return world.row(select(func.count()).select_from(table))[0]


@pytest.mark.g3
def test_a_tree_is_seen_when_it_is_published_and_replaced_whole(world, shelf):
    """Staged nodes are not seen; with the next generation only its own are."""
    assert read(world) == {}
    publish(world, tree())
    assert read(world) == {"a1": False, "b1": False, "top": False}
    publish(world, [node("new", "a")])
    assert read(world) == {"new": False}
    assert prune.prune_generations(world.db) > 0
    assert (rows(world), rows(world, derived_sources)) == (1, 1)


@pytest.mark.g2
def test_a_slice_that_was_lost_stages_nothing(world, shelf):
    """Its worker finishes after another took it over: no node, no source, no edge, no state."""
    claim = world.start(kind="raptor", subject="collection:c", collection="c")
    claims.release(world.db, claim, "test")
    also = lambda tx: staging.put(tx, claim, tree(), [EdgeDraft("r", "a1", "b1")], [StateDraft("pivot")])
    assert fenced.finish(world.db, claim, spent=Spent(), also=also) == Fenced("stale_epoch")
    assert [rows(world, table) for table in DERIVED] == [0, 0, 0, 0]


def test_children_are_read_below_their_parent_in_order(world, shelf):
    """The slice that makes a node says what is below it."""
    publish(world, tree())

    def body(tx):
        head = READER.head(tx, "collection:c")
        roots = READER.children(tx, head, None)
        return roots, READER.children(tx, head, "top"), trees.covered(tx, head, "top", 9)

    roots, below, documents_of_top = world.db.read(body)
    assert [(each.key, each.children) for each in roots] == [("top", 2)]
    assert [(each.key, each.parent, each.document) for each in below] == [
        ("a1", "top", "a"),
        ("b1", "top", "b"),
    ]
    assert documents_of_top == ["a", "b"]


@pytest.mark.g3
def test_a_node_with_a_deleted_document_is_withheld_whole_and_then_deleted(world, shelf):
    """From the commit of the deletion on; what is of other documents alone stays."""
    publish(world, tree())
    world.write(update(documents).where(documents.c.id == "a").values(deleted=True))
    assert read(world) == {"b1": False}
    shelf.delete("a")
    prune.prune_generations(world.db)
    assert (rows(world), rows(world, derived_sources)) == (1, 1)


def test_a_node_of_a_document_that_moved_away_is_withheld(world, shelf):
    """It is not of this collection any more."""
    publish(world, tree())
    world.write(update(documents).where(documents.c.id == "b").values(collection="elsewhere"))
    assert read(world) == {"a1": False}


def test_a_node_of_a_changed_document_is_stale_until_the_next_run(world, shelf):
    """Its text is of the old version, and it says so."""
    publish(world, tree())
    shelf.publish("a", "one", "three", embed=None)
    assert read(world) == {"a1": True, "b1": False, "top": True}
    publish(world, tree(a=2))
    assert read(world) == {"a1": False, "b1": False, "top": False}


def test_under_a_filter_every_source_must_pass(world, shelf):
    """A summary of two documents is none for somebody who may see one of them."""
    publish(world, tree())
    metadata = {"team": "blue"}
    world.write(update(documents).where(documents.c.id == "a").values(metadata=metadata))
    world.db.write(
        "by_hand",
        lambda tx: document_values.put(tx, ("default", "a"), "c", document_values.Description(metadata)),
    )
    only = filters.parse({"eq": {"team": "blue"}})
    assert read(world, TreeReader("default", "c", "raptor", only)) == {"a1": False}


def test_what_is_published_with_a_deleted_document_goes_at_once(world, shelf):
    """Its deletion was pruned while the run was under way, and nobody would look again."""
    world.write(update(documents).where(documents.c.id == "b").values(deleted=True))
    claim = world.start(kind="raptor", subject="collection:c", collection="c")

    def also(tx):
        staging.put(tx, claim, tree(), [EdgeDraft("r", "a1", "b1")])
        assert staging.drop_gone(tx, claim) == 2

    fenced.finish(world.db, claim, spent=Spent(), also=also)
    assert (rows(world), rows(world, derived_sources), rows(world, derived_edges)) == (1, 1, 0)


def test_what_an_ended_run_staged_is_pruned(world, shelf):
    """A cancelled tree leaves no row; the one that is published stays."""
    publish(world, tree())
    plan = world.start(kind="raptor", subject="collection:c", collection="c", content="more")
    also = lambda tx: staging.put(tx, plan, [node("new", "a")], [EdgeDraft("r", "new", "new")])
    fenced.finish(world.db, plan, spent=Spent(), also=also, goes_on=True)
    requests.cancel(world.db, plan.head_id)
    prune.prune_generations(world.db)
    assert (rows(world), rows(world, derived_edges)) == (3, 0)
    assert world.count(runs, ~runs.c.pruned) == 0


def test_state_of_the_published_generation_is_there_for_the_next(world, shelf):
    """A run reads what the published one left, and what it has staged itself."""
    publish(world, tree(), state=[StateDraft("pivot", 1, {"members": ["x"]}, b"1234")])
    claim = world.start(kind="raptor", subject="collection:c", collection="c", content="more")
    assert [(one.name, one.vector) for one in inputs.published_state(world.db, claim, 1)] == [
        ("pivot", b"1234")
    ]
    assert inputs.staged_state(world.db, claim, 1) == []


def test_faults_of_a_tree_are_counted(world, shelf):
    """An edge to nothing, a node from nothing, a node under nothing."""
    loose = NodeDraft("loose", "summary", 1, "", "", [])
    claim = publish(world, [*tree(), loose], edges=[EdgeDraft("r", "a1", "missing")])
    world.write(update(derived_nodes).where(derived_nodes.c.key == "loose").values(parent="missing"))
    head = trees.TreeHead(claim.head_id, "collection:c", claim.generation)
    assert trees.faults(world.db, head) == trees.TreeFaults(1, 1, 1)


@pytest.mark.g3
def test_readers_see_one_whole_generation_while_trees_are_republished(world, shelf, database_url):
    """A thousand reads during twenty publications: all nodes of one generation, and none is missing."""
    publish(world, versioned(0))
    reading, seen, wrong = build(database_url), set(), []
    ended = threading.Event()

    def read_all():
        for number in itertools.count():
            if number >= 1000 and ended.is_set():
                return
            texts, below = reading.db.read(_whole)
            seen.update(texts)
            if len(texts) != 1 or below != {"a1", "b1"}:
                wrong.append((texts, below))

    reader = threading.Thread(target=read_all)
    reader.start()
    for number in range(1, 21):
        publish(world, versioned(number))
        prune.prune_generations(world.db)
    ended.set()
    reader.join(60)
    reading.db.close()
    assert not reader.is_alive()
    assert wrong == []
    assert seen <= {f"version {number}" for number in range(21)}


def versioned(number):
    """The same tree, whose nodes all say which version it is."""
    return [dataclasses.replace(each, text=f"version {number}") for each in tree()]


def _whole(tx):
    head = READER.head(tx, "collection:c")
    roots = READER.children(tx, head, None)
    below = [each for root in roots for each in READER.children(tx, head, root.key)]
    return {each.text for each in (*roots, *below)}, {each.key for each in below}
