"""Workers die while a flow is carried out: every step goes on where it was, and nothing is paid twice."""

import contextlib
import random
import time

import pytest

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.testing.meter import Meter
from tests.flows.install import GIST, TERMS, flow, say
from tests.jobs.install import Author, paragraphs
from tests.live_install import in_flight
from tests.live_install import mill as running

pytestmark = [pytest.mark.chaos, pytest.mark.slow]
STEPS = (
    "split: {size: 256}",
    GIST,
    TERMS.replace("{name: terms", "{name: terms, per: chunk"),
    'enrich: {name: caption, prompt: "Give it a title.", max_tokens: 20, input: "{gist}"}',
    'embed: {text: "{caption}\\n{text}"}',
    "publish: {search: [text, gist], fields: [gist, terms, caption]}",
)


def settings_of(meter, database_url):
    keys = "86400" if meter.honour_keys else "0"
    wire = {"database_url": database_url, "order_deadline": "4"}
    for name, model in (("llm", "gpt-4o-mini"), ("embedding", "text-embedding-3-small")):
        wire |= {f"{name}_provider": "openai", f"{name}_base_url": meter.base_url}
        wire |= {f"{name}_model": model, f"{name}_key_retention": keys}
    return wire


@pytest.mark.g4
@pytest.mark.g5
@pytest.mark.parametrize(
    ("database_url", "keyed", "kills", "documents"),
    [
        pytest.param("sqlite", True, 2, 1, marks=pytest.mark.timeout(300)),
        pytest.param("postgresql", False, 2, 1, marks=pytest.mark.timeout(300)),
        pytest.param("sqlite", True, 50, 12, marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
        pytest.param("sqlite", False, 50, 12, marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
    indirect=["database_url"],
    ids=["keyed", "unkeyed", "keyed-50", "unkeyed-50"],
)
def test_workers_killed_while_a_flow_is_carried_out(
    database_url, keyed, kills, documents, monkeypatch, tmp_path
):
    """Each dies at random with calls in flight; keyed, charges are as many as distinct calls."""
    chance = random.Random(15)
    author = Author()
    author.say = say
    uploads = [Upload(paragraphs(f"tide{n}", 20).encode(), f"{n}.txt") for n in range(documents)]
    with contextlib.ExitStack() as undo:
        meter = undo.enter_context(Meter(honour_keys=keyed, chat=author))
        wire = settings_of(meter, database_url)
        runtime, worker = undo.enter_context(running(monkeypatch, tmp_path, uploads, **wire))
        services = bootstrap.AppServices(runtime)
        meter.plan(latency=0.05)
        applied = services.flows.apply(RequestContext(), flow(*STEPS)).stored.id
        services.collections.change(RequestContext(), "shelf", options={"flow": applied})
        names = [each.id for each in services.documents.walk("default", "shelf")]

        def is_done():
            views = [services.views.view(services.documents.get("default", each)) for each in names]
            assert "failed" not in [each.word for each in views]
            return all(each.document.published_generation == 2 for each in views)

        hit = 0
        resumed = []
        for number in range(kills):
            meter.hold("after")
            began = time.monotonic()
            victim = worker(f"victim-{number}")
            # With keys all it has in flight may be answered from earlier charges, and held back uncharged.
            meter.wait_open(1, 60.0, charged=not keyed)
            resumed.append(time.monotonic() - began)
            goal = meter.totals().charges + 1 + chance.randrange(4)
            meter.release()
            until(lambda goal=goal: meter.totals().charges >= goal or is_done(), 60, "no charges")
            victim.kill()
            hit += in_flight(runtime.db)
        worker("survivor")
        until(is_done, 240, "the documents are not published")
        totals = meter.totals()
        # Shown by `pytest -s`, for docs/reference/benchmarks.md.
        print(f"{totals.charges} charges, {totals.distinct_inputs} distinct, {hit} in flight at kills")
        print(f"first call of a new worker within {max(resumed):.1f} s of its start")
        assert totals.excess <= (0 if keyed else hit)
        assert totals.distinct_inputs == documents * 20 * 5
