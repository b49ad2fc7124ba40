"""What a change of a flow pays for, step by step; and what a collection shows while it takes another flow."""

import hashlib
import itertools

import pytest

from tests.flows.install import TERMS, FlowsInstall, flow
from tests.jobs.install import paragraphs
from tests.moving.bundle_files import brought, exported

SPLIT = "split: {size: 256}"
STEPS = (
    SPLIT,
    'enrich: {name: gist, prompt: "Gist, please.", max_tokens: 40}',
    f'{TERMS[:-1]}, instruction: "Terms, please."}}',
    'enrich: {name: caption, prompt: "Caption, please.", max_tokens: 20, input: "{gist}: {text}"}',
    'enrich: {name: mood, per: document, prompt: "Mood, please.", max_tokens: 20, input: "{terms}"}',
    'embed: {text: "{caption}\\n{text}"}',
    "publish: {search: [text, gist], fields: [gist, terms, caption, mood]}",
)
# A change of the step with this number asks these steps again: itself, and those that read what it makes
# and get another value.
ASKED_AGAIN = {2: {"Gist", "Caption"}, 3: {"Terms", "Mood"}, 4: {"Caption"}, 5: {"Mood"}, 6: set(), 7: set()}
CHANGES = {
    2: ("Gist, please.", "Gist, in short."),
    3: ("Terms, please.", "Terms, in short."),
    4: ("Caption, please.", "Caption, in short."),
    5: ("Mood, please.", "Mood, in short."),
    6: ("{caption}", "{caption}."),
    7: ("search: [text, gist]", "search: [text, caption]"),
}


def say(messages):
    """An answer that is another one for each prompt and each text."""
    instruction, text = str(messages[0]["content"]), str(messages[-1]["content"])
    answer = f"{hashlib.sha256(instruction.encode()).hexdigest()[:8]} of {text}"
    return {"topic": answer} if "JSON Schema" in instruction else answer


def prompts(install, since):
    """The steps that the model was asked for since then, by the first words of their prompts."""
    heard = [str(messages[0]["content"]) for messages in install.author.heard[since:]]
    names = ("Gist", "Terms", "Caption", "Mood")
    return {name for name in names for each in heard if f"{name}, " in each}


@pytest.mark.g5
def test_a_change_of_step_k_pays_nothing_before_k(install: FlowsInstall) -> None:
    """For every step that can be changed: only it and what reads its new output is asked, and paid, again."""
    install.author.say = say
    install.apply(flow(*STEPS), to="shelf")
    install.client.indexed(paragraphs("tide", 3))
    assert prompts(install, 0) == {"Gist", "Terms", "Caption", "Mood"}
    version = itertools.count(2)
    for number, (old, new) in CHANGES.items():
        changed = [step.replace(old, new) for step in STEPS]
        assert changed != list(STEPS)
        since, before = len(install.author.heard), install.charged()
        install.apply(flow(*changed, version=next(version)), to="shelf")
        install.work()
        assert prompts(install, since) == ASKED_AGAIN[number], number
        embedded = install.charged()["embeddings"] - before["embeddings"]
        assert embedded == (3 if number in {2, 4, 6} else 0), number
        # Back to the first version: all of it is known.
        before = install.charged()
        install.apply(flow(*STEPS, version=1), to="shelf")
        install.work()
        assert install.charged() == before, number
    assert install.meter.totals().excess == 0


def test_the_old_version_answers_until_the_new_one_is_published(install: FlowsInstall) -> None:
    """From the built-in steps to a flow and back: what is searched is one whole version, and nothing is paid
    on the way back.
    """
    document = install.client.indexed(paragraphs("tide", 3))
    find = "search?collection=shelf&q=gist&mode=keyword"
    install.apply(flow(SPLIT, STEPS[1], "publish: {search: [text, gist], fields: [gist]}"), to="shelf")
    assert install.client.get(find).json["hits"] == []
    assert install.chunks(document["id"])[0]["fields"] == {}
    install.work()
    hits = install.client.get(find).json["hits"]
    assert [hit["generation"] for hit in hits] == [2] * 3
    before = install.charged()
    change = {"options": {"flow": None}}
    assert install.client.call("PATCH", "collections/shelf", change).status == 200
    assert len(install.client.get(find).json["hits"]) == 3
    install.work()
    assert install.client.get(find).json["hits"] == []
    assert install.client.get(f"documents/{document['id']}/steps").json["flow"] is None
    assert install.charged() == before


def test_a_model_that_disappears_fails_clearly_and_loses_nothing(install: FlowsInstall) -> None:
    """Half of the answers are there when the model goes; when it is back the rest is paid for, once."""
    install.shelf(paragraphs("tide", 4))
    install.meter.plan(script=["answer", "answer", {"do": "fail", "status": 404, "times": 9}])
    install.apply(flow(SPLIT, STEPS[1]), to="shelf")
    install.work()
    (document,) = install.client.get("collections/shelf/documents").json["documents"]
    assert (document["index_status"], document["published_generation"]) == ("failed", 1)
    assert document["error"]["message"]
    install.meter.plan(script=[])
    install.client.post(f"documents/{document['id']}/index", {"mode": "retry"})
    install.work()
    document = install.client.get(f"documents/{document['id']}").json
    assert (document["index_status"], document["published_generation"]) == ("success", 3)
    assert (install.charged()["chat/completions"], install.meter.totals().excess) == (4, 0)


def test_two_tenants_have_flows_of_the_same_name(install: FlowsInstall) -> None:
    """Each has its own steps under it, and neither sees or pays for those of the other."""
    mine, theirs = install.key("default"), install.key("other")
    install.client = mine
    install.apply(flow(SPLIT, STEPS[1], "publish: {fields: [gist]}"), to="shelf")
    install.client = theirs
    install.apply(flow(SPLIT, STEPS[1].replace("gist", "point"), "publish: {fields: [point]}"), to="shelf")
    fields = []
    for client in (mine, theirs):
        document = client.indexed(paragraphs("tide", 1))
        install.client = client
        fields += [list(each["fields"]) for each in install.chunks(document["id"])]
        assert [each["id"] for each in client.get("flows").json["flows"]] == ["contracts@1"]
    assert fields == [["gist"], ["point"]]
    assert mine.get("flows/contracts@1").json["digest"] != theirs.get("flows/contracts@1").json["digest"]


def test_an_exported_collection_keeps_its_fields(install: FlowsInstall) -> None:
    """Where the bundle is imported the chunks have their fields and are found by them, by words and by
    meaning; nothing is paid. Where the flow is not known, the import says which to apply.
    """
    embed, publish = 'embed: {text: "{gist} {text}"}', "publish: {search: [text, gist], fields: [gist]}"
    install.apply(flow(SPLIT, STEPS[1], embed, publish), to="shelf")
    document = install.client.indexed(paragraphs("tide", 2))
    expected = [each["fields"] for each in install.chunks(document["id"])]
    bundle = exported(install.client)
    before = install.charged()
    brought(install.client, bundle, collection="copy")
    (copy,) = install.client.get("collections/copy/documents").json["documents"]
    assert [each["fields"] for each in install.chunks(copy["id"])] == expected
    hits = install.client.get("search?collection=copy&q=gist&mode=keyword").json["hits"]
    assert sorted(hit["fields"]["gist"] for hit in hits) == sorted(each["gist"] for each in expected)
    near = install.client.get("search?collection=copy&q=tide+paragraph+1&mode=vector").json["hits"]
    assert len(near) == 2
    assert install.charged() == before | {"embeddings": before["embeddings"] + 1}  # that of the question
    stranger = install.key("other").upload("imports", bundle, "shelf.zip", collection="copy")
    assert (stranger.status, stranger.code) == (404, "unknown_flow")
    assert "there is no flow 'contracts@1'" in stranger.message
