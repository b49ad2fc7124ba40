"""The constraints that carry promises really refuse: bad rows are inserted directly, past every function."""

import pytest
from sqlalchemy import exc, insert, select, update

from holdfast.core.records import Chunk
from holdfast.store.base.schema import (
    budgets,
    calls,
    charges,
    chunk_edits,
    chunks,
    deliveries,
    derived_edges,
    derived_nodes,
    derived_sources,
    derived_state,
    document_members,
    document_values,
    documents,
    findings,
    flows,
    follow_ups,
    gateway_notes,
    gateway_usage,
    heads,
    installation,
    job_results,
    keeps,
    lines,
    orders,
    page_texts,
    provider_troubles,
    relays,
    rounds,
    runs,
    source_items,
    sources,
    step_outputs,
    tasks,
    turns,
    word_counts,
)
from holdfast.store.follow_ups import actions
from holdfast.store.protocol import tasks as fenced


def copied(world, table, **changes):
    """A copy of the newest row of `table` with changes."""
    newest = table.c.queued_at if table is runs else table.c[0]
    row = world.row(select(table).order_by(newest.desc()))._asdict()
    saved = {name: value for name, value in row.items() if not (name == "id" and isinstance(value, int))}
    return insert(table).values(**{**saved, **changes})


ORDER = {
    "id": "o1", "tenant": "default", "provider": "p", "endpoint": "e", "model": "m", "state": "settled",
    "call_keys": [], "weights": [], "body": b"", "idempotency_key": "k1", "keyed": True, "holder": "h",
    "scopes": [], "estimate": 1, "created_at": 1.0, "deadline": 1.0, "deadline_at": 1.0,
}  # fmt: skip
CHARGE = {
    "order_id": "o1", "send": 1, "tenant": "default", "scope": "tenant", "model": "m", "sort": "paid",
    "tokens": 1, "amount": 1, "prices": "1", "at": 1.0,
}  # fmt: skip
DOCUMENT = {
    "tenant": "default", "id": "d1", "collection": "books", "title": "One", "source": "text", "digest": "d",
    "size": 1, "created_at": 1.0, "updated_at": 1.0,
}  # fmt: skip
DELIVERY = {
    "id": "e1", "tenant": "default", "head_id": 1, "cause": "r1", "subject": "document:1", "generation": 1,
    "event": "document.ready", "url": "http://host.example", "secret": "", "body": b"", "created_at": 1.0,
    "since": 1.0,
}  # fmt: skip
RESULT = {
    "run_id": "r1", "slice": 0, "position": 0, "tenant": "default", "head_id": 1, "document": "d1",
    "source": 1, "good": True, "data": {},
}  # fmt: skip
ROUND = {
    "tenant": "default", "collection": "books", "sort": "delete", "after": "", "actor": "", "token": "t",
    "due_at": 1.0,
}  # fmt: skip
VALUE = {
    "tenant": "default", "document": "d1", "position": 0, "collection": "books", "path": "year",
    "kind": "n", "key": "1",
}  # fmt: skip
KEEP = {"action_id": 1, "tenant": "default", "collection": "books", "seen_seq": 0}
LINK = {"tenant": "default", "parent": "d1", "child": "d2"}
SOURCE = {
    "tenant": "default",
    "id": "s1",
    "collection": "books",
    "type": "urls",
    "options": {},
    "created_at": 1.0,
}
ITEM = {"tenant": "default", "source": "s1", "external_id": "x", "state": "current", "changed_at": 1.0}
CHUNK_EDIT = {
    "tenant": "default", "document": "d1", "digest": "x", "context": "", "original": "o", "enabled": False,
    "mark": "m", "size": 0, "actor": "", "updated_at": 1.0,
}  # fmt: skip
PAGE_TEXT = {"tenant": "default", "key": "k", "head_id": 1, "data": {}, "created_at": 1.0}
STEP_OUTPUT = {"tenant": "default", "key": "k", "head_id": 1, "output": {}, "created_at": 1.0}
FLOW = {
    "tenant": "default", "name": "f", "version": 1, "source": "", "digest": "d", "actor": "",
    "created_at": 1.0,
}  # fmt: skip
SOURCE = {
    "tenant": "default", "id": "s1", "collection": "books", "type": "urls", "options": {}, "created_at": 1.0,
}  # fmt: skip
ITEM = {"tenant": "default", "source": "s1", "external_id": "a", "state": "current", "changed_at": 1.0}
PLACE = {"head_id": 1, "generation": 1, "slice": 0, "epoch": 1, "position": 0}
NODE = PLACE | {"key": "k", "type": "summary", "level": 1, "title": "", "text": ""}
EDGE = PLACE | {"type": "relation", "source": "k", "target": "k"}
NODE_SOURCE = PLACE | {"node": "k", "tenant": "default", "document": "d", "version": 1, "first": 0, "last": 0}
STATE = PLACE | {"name": "pivot", "level": 1}
CALL = {"tenant": "default", "key": "k", "state": "intent", "model": "m", "estimate": 1}

RELAY = {
    "id": "r1", "name": "r", "address": "a", "version": "1", "state": "up", "lease_until": 1.0,
    "lock_path": "p", "lock_device": "d", "lock_inode": "i", "started_at": 1.0,
}  # fmt: skip
USAGE = {
    "tenant": "default", "hour": 1, "gateway": "g", "key_id": "k", "scope": "", "provider": "p",
    "endpoint": "e", "model": "m", "requests": 1, "reused": 0, "waited": 0, "errors": 0, "reused_calls": 0,
    "saved": 0, "millis": 1,
}  # fmt: skip
NOTE = {
    "id": "n1", "tenant": "default", "at": 1.0, "kind": "slow", "key_id": "k", "scope": "", "endpoint": "e",
    "model": "m", "status": 200, "code": "", "millis": 1,
}  # fmt: skip
TROUBLE = {"provider": "p", "endpoint": "e", "reason": "no", "tries": 1, "since": 0.0, "last_at": 0.0}
BAD = {
    "holdfast_g1_one_head_per_kind_and_subject": lambda world: copied(world, heads),
    "holdfast_g3_published_is_never_ahead_of_requested": lambda _: update(heads).values(
        published_generation=99
    ),
    "holdfast_head_status_is_known": lambda _: update(heads).values(status="done"),
    "holdfast_g1_one_run_per_generation": lambda world: copied(world, runs, id="other", status="failed"),
    "holdfast_g1_one_live_run_per_head": lambda world: copied(world, runs, id="other", generation=2),
    "holdfast_run_status_is_known": lambda _: update(runs).values(status="done"),
    "holdfast_one_task_per_slice": lambda world: copied(world, tasks),
    "holdfast_task_state_is_known": lambda _: update(tasks).values(state="lost"),
    "holdfast_g2_epoch_and_lease_are_numbers": lambda _: update(tasks).values(lease_until=-1.0),
    "holdfast_one_turn_per_lane_and_tenant": lambda world: copied(world, turns),
    "holdfast_g2_one_chunk_per_place_and_epoch": lambda world: copied(world, chunks),
    "holdfast_one_line_per_id": lambda world: copied(world, lines),
    "holdfast_g5_one_row_per_paid_input": lambda _: insert(calls).values([CALL, CALL]),
    "holdfast_call_state_is_known": lambda _: insert(calls).values({**CALL, "state": "paid"}),
    "holdfast_g5_a_settled_call_keeps_its_result": lambda _: insert(calls).values(
        {**CALL, "state": "settled"}
    ),
    "holdfast_g5_one_order_per_idempotency_key": lambda world: copied(world, orders, id="o2"),
    "holdfast_order_state_is_known": lambda _: update(orders).values(state="paid"),
    "holdfast_relay_state_is_known": lambda _: insert(relays).values({**RELAY, "state": "lost"}),
    "holdfast_g5_a_gone_relay_says_how_it_is_known": lambda _: insert(relays).values(
        {**RELAY, "state": "gone"}
    ),
    "holdfast_one_usage_per_hour": lambda _: insert(gateway_usage).values([USAGE, USAGE]),
    "holdfast_gateway_note_kind_is_known": lambda _: insert(gateway_notes).values({**NOTE, "kind": "odd"}),
    "holdfast_g5_one_charge_per_send": lambda _: insert(charges).values([CHARGE, CHARGE]),
    "holdfast_charge_sort_is_known": lambda _: insert(charges).values({**CHARGE, "sort": "free"}),
    "holdfast_g5_reservations_are_never_negative": lambda _: update(budgets).values(reserved=-1),
    "holdfast_one_budget_per_scope": lambda world: copied(world, budgets),
    "holdfast_budget_period_is_known": lambda _: update(budgets).values(period="week"),
    "holdfast_one_action_per_token": lambda world: copied(world, actions.actions),
    "holdfast_one_follow_up_per_action_and_generation": lambda world: copied(world, follow_ups),
    "holdfast_one_delivery_per_event": lambda _: insert(deliveries).values([DELIVERY, DELIVERY]),
    "holdfast_one_finding_per_step": lambda world: copied(world, findings),
    "holdfast_one_result_per_place": lambda _: insert(job_results).values([RESULT, RESULT]),
    "holdfast_one_round_per_collection_and_sort": lambda _: insert(rounds).values([ROUND, ROUND]),
    "holdfast_one_count_per_slice": lambda world: copied(world, word_counts),
    "holdfast_one_trouble_per_provider": lambda _: insert(provider_troubles).values([TROUBLE, TROUBLE]),
    "holdfast_one_installation_per_database": lambda _: insert(installation).values(id=2, blobs_id="other"),
    "holdfast_one_document_per_id": lambda world: copied(world, documents, digest="other"),
    "holdfast_one_live_document_per_content": lambda world: insert(documents).values(
        **DOCUMENT | {"id": "d2"}
    ),
    "holdfast_one_live_document_per_external_id": lambda world: insert(documents).values(
        [DOCUMENT | {"id": f"x{number}", "external_id": "x"} for number in range(2)]
    ),
    "holdfast_one_document_value_per_position": lambda _: insert(document_values).values([VALUE, VALUE]),
    "holdfast_one_link_per_member": lambda _: insert(document_members).values([LINK, LINK]),
    "holdfast_one_edit_per_chunk": lambda _: insert(chunk_edits).values([CHUNK_EDIT, CHUNK_EDIT]),
    "holdfast_one_keep_per_action": lambda _: insert(keeps).values([KEEP, KEEP]),
    "holdfast_one_source_per_id": lambda _: insert(sources).values([SOURCE, SOURCE]),
    "holdfast_one_item_per_external_id": lambda _: insert(source_items).values([ITEM, ITEM]),
    "holdfast_one_flow_per_version": lambda _: insert(flows).values([FLOW, FLOW]),
    "holdfast_one_output_per_step_and_input": lambda _: insert(step_outputs).values(
        [STEP_OUTPUT, STEP_OUTPUT]
    ),
    "holdfast_one_text_per_picture": lambda _: insert(page_texts).values([PAGE_TEXT, PAGE_TEXT]),
    "holdfast_g2_one_node_per_place_and_epoch": lambda _: insert(derived_nodes).values(
        [NODE, NODE | {"key": "other"}]
    ),
    "holdfast_one_node_per_key": lambda _: insert(derived_nodes).values([NODE, NODE | {"position": 1}]),
    "holdfast_g2_one_edge_per_place_and_epoch": lambda _: insert(derived_edges).values([EDGE, EDGE]),
    "holdfast_g2_one_source_per_place_and_epoch": lambda _: insert(derived_sources).values(
        [NODE_SOURCE, NODE_SOURCE]
    ),
    "holdfast_g2_one_state_per_place_and_epoch": lambda _: insert(derived_state).values([STATE, STATE]),
}


@pytest.fixture
def furnished(world):
    """At least one good row in every table that is broken below."""
    options = {"kind": "extract", "options": {}, "pipeline": ""}
    actions.add_action(world.db, tenant="default", collection="books", **options)
    world.publish(collection="books")
    claim = world.start(subject="document:2")
    fenced.stage(world.db, claim, [Chunk(0)])
    world.write(insert(findings).values(run_id=claim.run_id, step=1, text="found"))
    fenced.advance(world.db, claim, fenced.Report(1, 2, lines=[("l1", "one")]))
    world.write(insert(orders).values(**ORDER))
    world.write(insert(budgets).values(tenant="default", scope="tenant"))
    world.write(insert(documents).values(**DOCUMENT))
    world.write(insert(word_counts).values(head_id=1, generation=1, slice=0, chunks=1, length=1, terms=b""))
    return world


@pytest.mark.g1
@pytest.mark.g2
@pytest.mark.g3
@pytest.mark.g5
@pytest.mark.parametrize("name", BAD)
def test_a_named_constraint_refuses(furnished, name):
    """The database itself says no, and on PostgreSQL by the constraint's name."""
    with pytest.raises(exc.IntegrityError) as refused:
        furnished.write(BAD[name](furnished))
    if furnished.db.postgresql:
        assert name in str(refused.value)


def test_every_named_constraint_is_tried():
    """A constraint that carries a name of its own is in the table above."""
    own = {"holdfast_one_collection_per_id"}
    for table in heads.metadata.sorted_tables:
        own |= {str(rule.name) for rule in table.constraints if rule.name}
        own |= {str(index.name) for index in table.indexes if index.unique}
    promised = {name for name in own if not name.endswith(("_pk", "_fk"))}
    assert promised - set(BAD) <= {"holdfast_one_collection_per_id"}
