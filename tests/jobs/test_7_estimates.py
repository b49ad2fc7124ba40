"""What an action or a job would cost is said before it is asked for, and of exactly what is asked for."""

import pytest

from holdfast import bootstrap
from holdfast.cli import costs, terminal
from holdfast.engine.job_specs import JobEstimate
from holdfast.kinds import model_calls, parameters, raptor_estimates, raptor_nodes
from holdfast.kinds.raptor_nodes import TreeMember
from holdfast.kinds.summaries import SummaryRules
from holdfast.service import estimates
from holdfast.service.estimate_clock import EstimateTimeoutError
from holdfast.store.jobs import job_sources
from holdfast.vectors import encoding
from tests.jobs.install import ask, done, paragraphs

SUM_UP = {"sort": "prompt", "params": {"instruction": "Sum this up.", "answer_tokens": 50}}
FIELDS = {
    "sort": "extract",
    "params": {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}},
}
HOOK = {"sort": "webhook", "params": {"url": "https://example.org/told"}}


def estimated(install, **what):
    return install.client.post("estimate", {"collection": "shelf", **what}).json


@pytest.mark.parametrize("action", [SUM_UP, FIELDS])
def test_an_action_is_priced_before_it_runs_on_what_is_ready(install, action):
    """So many documents, so many calls, at a price that the charge stays below; nothing is paid for it."""
    install.author.say = lambda messages: '{"name": "x"}'
    install.shelf(paragraphs("alpha", 1), paragraphs("beta", 1), paragraphs("gamma", 1))
    output = estimated(install, action=action)
    assert (output["documents"], output["calls"], output["exact"], install.paid) == (3, 3, True, 0)
    added = install.client.post("collections/shelf/actions", {**action, "estimate": output["fingerprint"]})
    assert (added.status, added.json["existing_documents"]) == (201, 3)
    install.work()
    assert install.paid == 3
    assert 0 < install.client.get("bill").json["paid"] <= output["cost"]
    assert estimated(install, action=action)["calls"] == 0


@pytest.mark.g5
def test_questions_about_each_document_are_an_action(install):
    """It is priced before, asks about each new version, and what a job has asked costs it nothing."""
    (book,) = install.shelf(paragraphs("alpha", 2))
    done(install, limit=6)
    action = {"sort": "qa", "params": {"limit": 4, "notes": ""}}
    estimate, paid = estimated(install, action=action), install.paid
    assert (estimate["documents"], estimate["calls"], estimate["reused_calls"], estimate["exact"]) == (
        1,
        0,
        2,
        True,
    )
    install.client.post("collections/shelf/actions", {**action, "estimate": estimate["fingerprint"]})
    install.work()
    assert install.paid == paid
    (follow_up,) = install.client.get(f"documents/{book['id']}/actions").json["follow_ups"]
    assert (follow_up["status"], len(follow_up["result"]["pairs"])) == ("success", 4)
    assert follow_up["cost"]["reused_calls"] == 2
    install.client.put(f"documents/{book['id']}/content", {"text": paragraphs("beta", 1)})
    install.work()
    assert install.paid == paid + 1


def test_an_action_may_leave_what_is_ready_alone(install):
    """With `existing: skip` it runs on documents that become ready afterwards, till it is told otherwise."""
    install.author.say = lambda messages: "It is about words."
    install.shelf(paragraphs("alpha", 1))
    added = install.client.post("collections/shelf/actions", {**SUM_UP, "existing": "skip"}).json
    install.work()
    assert (added["existing_documents"], install.paid) == (0, 0)
    install.shelf(paragraphs("beta", 1))
    install.work()
    assert install.paid == 1
    again = install.client.post("collections/shelf/actions", SUM_UP)
    assert (again.status, again.json["action"]["id"]) == (200, added["action"]["id"])
    install.work()
    assert install.paid == 2


def test_a_webhook_costs_nothing_but_says_on_how_many_it_runs(small):
    """Its estimate counts the documents of which the other system would be told."""
    small.shelf(paragraphs("alpha", 1), paragraphs("beta", 1))
    output = estimated(small, action=HOOK)
    assert (output["documents"], output["calls"], output["cost"]) == (2, 0, 0)


CHANGES = [
    ({"options": {"chunk_size": 64}}, "PATCH", "collections/shelf", {"options": {"chunk_size": 128}}),
    (
        {"kind": "qa", "params": {"limit": 5}},
        "POST",
        "collections/shelf/jobs",
        {"kind": "qa", "params": {"limit": 6}},
    ),
    ({"action": HOOK}, "POST", "collections/shelf/actions", SUM_UP),
]


@pytest.mark.parametrize(("estimate", "method", "path", "other"), CHANGES)
def test_what_was_not_estimated_is_refused(small, estimate, method, path, other):
    """The fingerprint of an estimate holds for what was estimated: another value is 409."""
    small.shelf(paragraphs("alpha", 1))
    mark = estimated(small, **estimate)["fingerprint"]
    said = small.client.call(method, path, {**other, "estimate": mark})
    assert (said.status, said.code) == (409, "other_estimate")
    same = estimate.get("action", estimate)
    assert small.client.call(method, path, {**same, "estimate": mark}).status in (200, 201, 202)


def test_a_job_on_one_document_has_an_estimate_of_its_own(small):
    """It is the estimate of the job with that document named."""
    first, _ = small.shelf(paragraphs("alpha", 1), paragraphs("beta", 1))
    output = estimated(small, kind="qa", params={"limit": 5, "documents": [first["id"]]})
    said = small.client.post(
        f"documents/{first['id']}/jobs",
        {"kind": "qa", "params": {"limit": 5}, "estimate": output["fingerprint"]},
    )
    assert (output["documents"], said.status) == (1, 202)
    assert ask(small.client).status == 202


def test_a_person_at_a_terminal_may_say_no(small, monkeypatch):
    """What costs something is asked about; what costs nothing, and a script, is not held up."""
    small.shelf(paragraphs("alpha", 1))
    estimate = small.estimate("qa")
    items = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    console = terminal.console()
    monkeypatch.setattr(type(console), "is_terminal", True)
    monkeypatch.setattr(console, "input", lambda question: items.append(question) or "n")
    assert not costs.agreed(console, estimate, "the job", yes=False)
    assert costs.agreed(console, estimate, "the job", yes=True)
    assert len(items) == 1


class StoppedError(Exception):
    """The time for the estimate is over."""


def stop():
    raise StoppedError


@pytest.mark.parametrize("kind", ["raptor", "graph", "mindmap"])
def test_the_estimate_of_a_whole_job_ends_when_its_time_is_over(small, kind):
    """The kind itself looks at the clock, and what comes of it says what to do."""
    small.shelf(paragraphs("alpha", 2))
    engine, spec = small.runtime.engine, small.runtime.engine.registry.requested_job(kind)
    (source,) = job_sources.ready(engine.db, "default", "shelf", limit=2)
    looked = [(source.document, source.head_id, source.generation)]
    model, checked = model_calls.model(small.runtime.supplies), parameters.checked(spec, {})
    with pytest.raises(StoppedError):
        spec.estimate_job(JobEstimate("default", "shelf", checked, looked, model, engine.db, stop))
    timed = bootstrap.AppServices(small.runtime).estimates(1e-6)
    with pytest.raises(EstimateTimeoutError, match="fewer documents"):
        timed.of_job("default", "shelf", kind, {})


def test_the_estimate_of_a_whole_job_is_of_so_many_chunks_at_most(small, monkeypatch):
    """It looks at the first documents, at one at least, and says that they are a sample."""
    small.shelf(*(paragraphs(name, 4) for name in ("alpha", "beta", "gamma")))
    whole = small.estimate("raptor")
    monkeypatch.setattr(estimates, "MOST_CHUNKS", 2)
    sample = small.estimate("raptor")
    assert (whole.estimated_from, sample.estimated_from) == ("3 documents", "a sample of 1 of 3 documents")
    assert sample.forecast.calls > 0


class CountedMember(TreeMember):
    """A member that counts how often its name is read."""

    reads = 0

    @property
    def name(self):
        CountedMember.reads += 1
        return self.digest


def test_the_estimate_of_themes_reads_each_chunk_a_few_times(small):
    """Not once for every other chunk: a collection may have very many."""
    vectors = [encoding.encode([float(n % 7), float(n % 11), 1.0]) for n in range(300)]
    members = [CountedMember(f"{n}", each, None, None, (), None, f"d{n}") for n, each in enumerate(vectors)]
    model = model_calls.model(small.runtime.supplies)
    rules = SummaryRules(100, "")
    tree = raptor_estimates.TreeEstimate(small.runtime.db, "default", model, rules, 5, lambda: None)
    tree.tiers(members, {})
    assert len(raptor_nodes.items(members)) == 300
    assert CountedMember.reads < 20 * len(members)
