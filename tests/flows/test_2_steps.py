"""What the steps of a flow do with documents, and what they cost."""

from tests.flows.install import GIST, TERMS, FlowsInstall, flow
from tests.jobs.install import paragraphs

SPLIT = "split: {size: 256}"
PUBLISH = "publish: {search: [text, gist], fields: [gist, terms]}"


def test_steps_make_fields_that_are_shown_searched_and_embedded(install: FlowsInstall) -> None:
    """A field that publish names is on every chunk and hit, and its words find the chunk."""
    install.apply(flow(SPLIT, GIST, TERMS, 'embed: {text: "{gist}\\n{text}"}', PUBLISH), to="shelf")
    document = install.client.indexed(paragraphs("tide", 3))
    assert document["index_status"] == "success", document
    chunks = install.chunks(document["id"])
    assert len(chunks) == 3
    assert chunks[1]["fields"] == {
        "gist": "gist of tide paragraph 1",
        "terms": {"topic": "topic of tide"},
    }
    hits = install.client.get("search?collection=shelf&q=gist&mode=keyword").json["hits"]
    assert hits[0]["fields"]["terms"] == {"topic": "topic of tide"}
    assert "gist" not in hits[0]["text"]
    assert install.charged() == {"chat/completions": 4, "embeddings": 3}
    assert install.meter.charges_of(f"gist of tide paragraph 0\n{chunks[0]['text']}") == 1


def test_the_steps_of_a_document_show_their_time_cost_and_output(install: FlowsInstall) -> None:
    """By the API and on its page; a document of the built-in index has none."""
    plain = install.client.indexed("A note that no flow has read.", to="notes")
    install.apply(flow(SPLIT, GIST, TERMS, PUBLISH), to="shelf")
    document = install.client.indexed(paragraphs("tide", 3))
    shown = install.client.get(f"documents/{document['id']}/steps").json
    assert shown["flow"] == "contracts@1"
    gist, terms = shown["steps"]
    assert (gist["name"], gist["items"], gist["paid_calls"]) == ("gist", 3, 3)
    assert (terms["per"], terms["output"]) == ("document", '{"topic": "topic of tide"}')
    assert gist["output"] == "gist of tide paragraph 0"
    assert gist["cost"] > 0
    assert install.client.get(f"documents/{plain['id']}/steps").json["steps"] == []
    page = install.page(f"/documents/{document['id']}")
    assert "made by the flow <b>contracts@1</b>" in page
    assert "gist of tide paragraph 0" in page
    assert "Steps" not in install.page(f"/documents/{plain['id']}")
    assert '<option value="contracts@1" selected>' in install.page("/collections/shelf")


def test_a_changed_step_pays_nothing_before_it_and_only_what_reads_it(install: FlowsInstall) -> None:
    """Another prompt of the second step asks that step again; embedding follows where its text changed."""
    embed = 'embed: {text: "{gist}\\n{text}"}'
    install.apply(flow(SPLIT, GIST, TERMS, embed, PUBLISH), to="shelf")
    install.client.indexed(paragraphs("tide", 3))
    before = install.charged()
    terms = TERMS.replace("{name: terms", "{name: terms, instruction: Briefly.")
    install.apply(flow(SPLIT, GIST, terms, embed, PUBLISH, version=2), to="shelf")
    install.work()
    assert install.charged() == before | {"chat/completions": before["chat/completions"] + 1}
    longer = GIST.replace("max_tokens: 40", "max_tokens: 41")
    install.apply(flow(SPLIT, longer, terms, embed, PUBLISH, version=3), to="shelf")
    install.work()
    # The model says the same again, so that what is embedded is the same.
    assert install.charged() == before | {"chat/completions": before["chat/completions"] + 4}


def test_an_edited_document_pays_for_its_changed_chunks(install: FlowsInstall) -> None:
    """Of five chunks one changes: one question about it and one embedding are paid."""
    install.apply(flow(SPLIT, GIST, 'embed: {text: "{gist}\\n{text}"}'), to="shelf")
    text = paragraphs("tide", 5)
    document = install.client.indexed(text)
    before = install.charged()
    path = f"documents/{document['id']}/content"
    install.client.put(path, {"text": text.replace("tide2word7", "changed")})
    install.work()
    assert install.charged() == {name: count + 1 for name, count in before.items()}


def test_the_same_steps_under_another_name_cost_and_do_nothing(install: FlowsInstall) -> None:
    """A flow is what it does: a collection that takes an equal one keeps its chunks as they are."""
    install.apply(flow(SPLIT, GIST), to="shelf")
    document = install.client.indexed(paragraphs("tide", 3))
    before = install.charged()
    install.apply("# renamed\n" + flow(SPLIT, GIST, name="others"), to="shelf")
    install.work()
    log = install.client.get(f"documents/{document['id']}/runs").json["runs"][0]
    assert install.charged() == before
    assert log["status"] == "success"


def test_a_condition_decides_for_each_document_and_chunk(small: FlowsInstall) -> None:
    """A step, a split and a publication are left out where their conditions do not hold."""
    steps = (
        "when: metadata.draft\nsplit: {size: 16}",
        SPLIT,
        "when: position == 0 and metadata.draft != true\n" + GIST,
        'when: not ("paragraph 1 " in text)\npublish: {fields: [gist]}',
    )
    small.apply(flow(*steps), to="shelf")
    document = small.client.indexed(paragraphs("tide", 3))
    chunks = small.chunks(document["id"])
    assert [list(each["fields"]) for each in chunks] == [["gist"], []]
    assert "paragraph 1 " not in chunks[1]["text"]
    draft = small.client.indexed(paragraphs("wave", 3), metadata={"draft": True})
    assert len(small.chunks(draft["id"])) > 10
    assert small.charged()["chat/completions"] == 1


def test_an_answer_that_does_not_follow_the_schema_is_asked_for_once_more(small: FlowsInstall) -> None:
    """Then it fails the document, or with `on_error: skip` the field is missing."""
    small.author.say = lambda messages: "no JSON"
    small.apply(flow(SPLIT, f"{TERMS}\non_error: skip", GIST), to="shelf")
    document = small.client.indexed(paragraphs("tide", 2))
    assert document["index_status"] == "success"
    assert list(small.chunks(document["id"])[0]["fields"]) == ["gist"]
    assert small.charged()["chat/completions"] == 2 + 2
    small.apply(flow(SPLIT, TERMS, version=2), to="shelf")
    small.work()
    assert small.client.get(f"documents/{document['id']}").json["error"]["code"] == "bad_answer"


def test_clean_leaves_out_what_it_names(small: FlowsInstall) -> None:
    """Code blocks are gone from the chunks of a flow that drops them."""
    small.apply(flow("clean: {drop: [code]}"), to="shelf")
    text = "# Tide\n\nThe tide is high.\n\n```\nsecret = 1\n```\n\nThe lamp is lit.\n"
    document = small.client.indexed(text, title="tide.md")
    whole = " ".join(each["text"] for each in small.chunks(document["id"]))
    assert "lamp" in whole
    assert "secret" not in whole
