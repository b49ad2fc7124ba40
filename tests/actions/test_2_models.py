"""Prompts and agents: every question to a model is paid once, bounded, and free again after a crash."""

import json
from contextlib import closing

import pytest

from holdfast import faults
from holdfast.core.records import Ask, Chunk
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind, Supplies
from holdfast.engine.sweep import SweepRules
from holdfast.kinds import actions as kinds
from holdfast.kinds import extract, parameters
from holdfast.leases.base import LeaseTerms
from holdfast.leases.sql import SqlLeases
from holdfast.store.features import open_database
from holdfast.store.follow_ups import actions, follow_ups
from holdfast.store.views import reads
from holdfast.testing.meter import Meter
from holdfast.testing.prices import PRICES

MODEL = "gpt-4o-mini"


class Study:
    """A document of many passages, an action on it, and a provider that keeps the bill."""

    def __init__(self, db, meter, provider):
        self.db, self.meter, self.provider = db, meter, provider
        self.searched = []
        self.engine = self.hire()

    def hire(self):
        """A process."""
        supplies = Supplies(llm="meter", llm_model=MODEL)
        follow_up = kinds.ActionRunner(
            self.db, supplies, search=self.search, registry=lambda: engine.registry
        )
        engine = Engine(
            self.db,
            EngineDependencies(
                kinds=[Kind("index", read_aloud), follow_up.kind(), extract.Extract(self.db).kind()],
                providers={"meter": self.provider},
                prices=PRICES,
                leases=SqlLeases(self.db, LeaseTerms(1.0, 0.3, 0.2)),
                rules=SweepRules(interval=0.05, tidy_every=60.0),
            ),
        )
        return engine

    def search(self, tenant, collection, question, count):
        self.searched.append((tenant, collection, question, count))
        return [{"document": "7", "title": "Found", "page": 1, "text": f"hit {len(self.searched)}"}]

    def act(self, action_type, **params):
        registry = self.engine.registry
        kind, pipeline = kinds.kind_of(registry, action_type)
        options = {"sort": action_type, **parameters.checked(registry.action(action_type)[1], params)}
        about = {"tenant": "default", "collection": "books", "kind": kind, "pipeline": pipeline}
        return actions.add_action(self.db, options=options, **about)

    def publish(self, *passages):
        self.engine.request(Ask("index", "document:1", options={"passages": passages}, collection="books"))
        self.engine.run_until_idle(patience=30)

    def outcome(self):
        head = reads.head(self.db, "default", "index", "document:1")
        return follow_ups.of_document(self.db, "default", head.id)[0]


def read_aloud(work):
    passages = work.options["passages"]
    work.stage([Chunk(position, text, page=position + 1) for position, text in enumerate(passages)])


@pytest.fixture
def study(sqlite_url):
    db = open_database(sqlite_url)
    with Meter() as meter, closing(meter.provider()) as provider:
        yield Study(db, meter, provider)
    db.close()


def said(text=None, **calls):
    """An answer of the model: a text, or calls of tools by name."""
    items = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": values}}
        for n, (name, values) in enumerate(calls.items())
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": items} if items else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if items else "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"body": json.dumps({"id": "x", "choices": [choice], "usage": usage})}


def passages(count, mark=""):
    return [f"Passage {number} {mark if number == 3 else ''} " + "word " * 100 for number in range(count)]


def test_a_short_document_is_one_question(study):
    """The instruction and the text, once."""
    study.act("prompt", instruction="Sum up.")
    study.publish("All of it.")
    done = study.outcome()
    assert (done.status, done.result["parts"], study.meter.totals().charges) == ("success", 1, 1)
    assert done.spent.paid > 0


def test_a_long_document_is_read_in_parts_and_put_together(study):
    """One question for each part, and as few as it takes to make one answer of theirs."""
    study.act("prompt", instruction="Sum up.", part_tokens=300)
    study.publish(*passages(8))
    done = study.outcome()
    assert (done.status, done.result["parts"]) == ("success", 4)
    assert study.meter.totals().charges == 5


@pytest.mark.g5
def test_a_change_in_one_passage_pays_for_its_part_and_the_putting_together(study):
    """The other parts are in the ledger."""
    study.act("prompt", instruction="Sum up.", part_tokens=300)
    study.publish(*passages(8))
    before = study.meter.totals().charges
    study.publish(*passages(8, mark="changed"))
    assert study.outcome().generation == 2
    assert study.meter.totals().charges - before == 2
    assert study.outcome().spent.reused_calls == 3


def test_a_document_that_is_too_long_fails_before_anything_is_paid(study):
    """It says what to raise."""
    study.act("prompt", instruction="Sum up.", part_tokens=300, most_parts=2)
    study.publish(*passages(8))
    done = study.outcome()
    assert (done.status, done.error_code) == ("failed", "document_too_long")
    assert study.meter.totals().charges == 0


def test_an_agent_reads_and_searches_and_answers(study):
    """Two tools, and what they gave is told to the model; the rest of the world is out of reach."""
    study.meter.plan(
        script=[
            said(search='{"question": "where?", "count": 99}', load_text='{"first": 2, "last": 2}'),
            said(rm='{"path": "/"}', search="no json"),
            said("It is there."),
        ]
    )
    study.act("agent", instruction="Find out.")
    study.publish("First page.", "Second page.")
    done = study.outcome()
    assert done.result["answer"] == "It is there."
    assert (done.result["steps"], done.result["tools"]) == (3, ["search", "load_text", "rm", "search"])
    assert study.searched == [("default", "books", "where?", 10)]
    body = json.loads(study.meter.log()[-1]["inputs"][0])
    items = [each["content"] for each in body if each["role"] == "tool"]
    assert "hit 1" in items[0]
    assert items[1:] == [
        "Second page.",
        "There is no such tool; there are load_text and search.",
        "The arguments are not a JSON object.",
    ]


@pytest.mark.g5
def test_an_agent_that_is_taken_up_again_pays_for_nothing_twice(study):
    """Its process dies when the second answer was paid; the same conversation comes from the ledger."""
    script = [said(search='{"question": "where?"}'), said(load_text="{}"), said("Done.")]
    study.meter.plan(script=script)
    study.act("agent", instruction="Find out.")
    study.engine.request(Ask("index", "document:1", options={"passages": ["Text."]}, collection="books"))
    study.engine.work_off(lanes=["bulk"])
    settled = []

    def die(point):
        settled.extend([point] if point == "settle.committed" else [])
        if len(settled) == 2:
            raise faults.Crash

    with faults.armed(die), pytest.raises(faults.Crash):
        study.engine.work_off()
    study.engine = study.hire()
    study.engine.run_until_idle(patience=30)
    done = study.outcome()
    assert (done.status, done.result["answer"]) == ("success", "Done.")
    assert (study.meter.totals().charges, study.meter.totals().excess) == (3, 0)
    assert len(study.searched) == 1


def test_an_agent_that_never_ends_is_told_to_answer_with_its_last_step(study):
    """It is asked as often as it may be, and the last time without tools."""
    study.meter.plan(script=[*([said(load_text="{}")] * 3), said("Enough.")])
    study.act("agent", instruction="Find out.", most_steps=4)
    study.publish("Text.")
    done = study.outcome()
    assert (done.result["answer"], done.result["steps"], study.meter.totals().charges) == ("Enough.", 4, 4)


def test_an_agent_stops_when_it_has_spent_what_it_may(study):
    """The question that would follow is not asked."""
    study.meter.plan(script=[said(load_text="{}")] * 10)
    study.act("agent", instruction="Find out.", most_cost=0.00002)
    study.publish("Text.")
    done = study.outcome()
    assert (done.status, done.error_code) == ("failed", "agent_over_cost")
    assert study.meter.totals().charges == 1


def test_a_follow_up_of_a_generation_that_is_gone_says_so(study):
    """The action was removed and added anew meanwhile; nothing is made up from another generation."""
    action = study.act("prompt", instruction="Sum up.")
    study.engine.request(Ask("index", "document:1", options={"passages": ["One."]}, collection="books"))
    study.engine.work_off(lanes=["bulk"])
    head = reads.head(study.db, "default", "index", "document:1")
    actions.move(study.db, head.id, "elsewhere")
    study.engine.request(Ask("index", "document:1", options={"passages": ["Two."]}, collection="elsewhere"))
    study.engine.work_off(lanes=["bulk"])
    study.engine.work_off()
    result = follow_ups.of_document(study.db, "default", head.id)
    assert [(each.action_id, each.generation, each.error_code) for each in result] == [
        (action, 1, "generation_gone")
    ]
    assert study.meter.totals().charges == 0
