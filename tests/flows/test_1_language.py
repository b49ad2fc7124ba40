"""The language of flows: what is right, and what is said about what is wrong."""

import json
import time
import tracemalloc

import pytest

from holdfast.kinds.flows import checker, conditions, templates
from holdfast.kinds.flows.conditions import ConditionError
from holdfast.kinds.flows.faults import FlowError
from tests.flows.wrong_files import WRONG, WrongFile

CONTRACTS = """
flow: contracts
version: 3                      # published versions are immutable
steps:
  - parse: {ocr: off}
  - clean: {drop: [page_numbers, repeated_headers]}
  - split: {size: 256, overlap: 0}
  - when: format == "pdf" and pages > 3
    enrich: {name: gist, per: chunk, max_tokens: 60,
             prompt: "In one sentence: what does this passage settle?"}
  - extract: {name: terms, per: document, schema: terms.schema.json}
  - python: {name: pii, call: "acme.pii:mark", version: 2, per: chunk}
    on_error: skip
  - embed: {text: "{gist}\\n{text}"}
  - publish: {search: [text, gist], fields: [terms, pii]}
"""
SCHEMA = {"terms.schema.json": '{"type": "object", "properties": {"term": {"type": "string"}}}'}


def test_a_flow_is_read_with_its_defaults_and_its_files() -> None:
    """The file of the manual is a flow of eight steps, and its schema is that of the file it names."""
    flow = checker.read(CONTRACTS, SCHEMA)
    assert (flow.id, len(flow.steps)) == ("contracts@3", 8)
    terms = flow.makers[1]
    assert terms.params["schema"]["properties"] == {"term": {"type": "string"}}
    assert (terms.per, flow.makers[2].on_error, flow.files) == ("document", "skip", SCHEMA)
    assert flow.steps[0].params == {"ocr": "off"}


def test_json_and_other_spacing_are_the_same_flow() -> None:
    """What a flow does decides its digest: comments, order of names and JSON for YAML change nothing."""
    flow = checker.read("flow: a\nversion: 1\nsteps:\n  - split: {size: 64, overlap: 8} # small\n")
    written = {"version": 2, "flow": "b", "steps": [{"split": {"overlap": 8, "size": 64}}]}
    assert checker.read(json.dumps(written)).digest == flow.digest
    assert checker.read(json.dumps(written, indent="\t")).digest == flow.digest


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_says_where_it_is_wrong_and_what_would_be_right(wrong: WrongFile) -> None:
    """The first fault has the line and the column of the wrong word, and suggests the nearest name."""
    with pytest.raises(FlowError) as refusal:
        checker.read(wrong.text, SCHEMA)
    fault = refusal.value.faults[0]
    assert (fault.line, fault.column) == (wrong.line, wrong.column), fault
    assert wrong.says in fault.message
    assert fault.suggestion == wrong.suggestion


def test_every_fault_of_a_file_is_listed_in_its_order() -> None:
    """A file with six faults is corrected in one go: all are listed, none because of another."""
    text = (
        "flow: a\nversion: 1\nsteps:\n  - splitt: {}\n  - enrch: {name: gist}\n"
        '  - embed: {text: "{gist} {txt}"}\n  - publish: {felds: [gist]}\n'
        "  - enrich: {name: late, promt: Say it.}\n"
    )
    with pytest.raises(FlowError) as refusal:
        checker.read(text)
    assert [(each.line, each.suggestion) for each in refusal.value.faults] == [
        (4, "split"),
        (5, "enrich"),
        (6, "text"),
        (7, "fields"),
        (8, None),
        (8, "prompt"),
    ]
    assert refusal.value.message.endswith("(and 5 more)")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(40)),
        "flow: " + "x" * 10_000_000,
        "steps: " + "[" * 200_000,
        "steps: " + "{a: " * 100_000,
        "steps: [" + "1, " * 80_000 + "1]",
        "{" * 100_000,
        '"' + "\\u0000" * 20,
        "flow: a\x00",
        "flow: \ud800",
        "a: &a [" + "x," * 9000 + "x]\nb: [" + "*a," * 9000 + "*a]",
        "? " * 100_000,
        "- " * 100_000,
        "!" * 200_000,
        "flow: !!binary " + "A" * 200_000,
        "&a " * 60_000,
        "%TAG ! tag:x,2000:\n" * 10_000,
        "<<: " * 50_000,
        "\t" * 200_000,
        "a: |\n" + " " * 200_000,
        "{" + ",".join(f"k{n}: 1" for n in range(20_000)) + "}",
        "flow: a\n" * 20_000,
        "'" * 200_001,
        "# " + "x" * 200_000 + "\n\u2028",
        json.dumps({"flow": "a", "version": 10**2000, "steps": []}),
        json.dumps({"flow": "a", "version": 1, "steps": [{"split": {"size": 10**4000}}]}),
    ],
)
def test_a_bomb_is_refused_at_once(text: str) -> None:
    """Anchors that multiply, 10 MB, deep nesting and too many values are refused in a second and 64 MiB."""
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(FlowError) as refusal:
        checker.read(text)
    seconds, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(refusal.value.message) < 2000
    assert (seconds < 5, peak < 64 * 1024**2) == (True, True), (seconds, peak)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('format == "pdf" and pages > 3', True),
        ("format in ['md', 'pdf'] and not metadata.draft", True),
        ("pages >= 4.0 and pages <= 4", True),
        ('pages == "4"', False),
        ("metadata.missing == null", True),
        ("metadata.missing > 3 or metadata.missing < 3", False),
        ('metadata.author.name == "Ann" or (pages < 2 and pages > 9)', True),
        ('"con" in title and title not in ["x"]', True),
        ("not (not true) and 1 == 1", True),
        ("metadata.draft == 0", False),
        ('metadata.tags == "b"', False),
        ('"b" in metadata.tags', True),
    ],
)
def test_a_condition_is_decided_by_its_grammar(text: str, *, holds: bool) -> None:
    """Comparisons, and, or, not, in and brackets mean what they say; types are never mixed."""
    fields = {
        "format": "pdf",
        "pages": 4,
        "title": "contract",
        "metadata": {"draft": False, "author": {"name": "Ann"}, "tags": ["a", "b"]},
    }
    assert conditions.parse(text).holds(fields) is holds


@pytest.mark.parametrize("text", ["__import__('os')", "pages.__class__ > 3 +", "lambda: 1", "a b", "[pages]"])
def test_a_condition_is_never_code(text: str) -> None:
    """What looks like Python is no condition."""
    with pytest.raises(ConditionError):
        conditions.parse(text)


def test_a_template_without_a_value_leaves_no_blank_line() -> None:
    """A field that an item lacks leaves nothing; braces are written twice."""
    template = templates.parse("{gist}\n{text}")
    assert template.filled({"text": "words"}) == "words"
    assert template.filled({"text": "words", "gist": "short"}) == "short\nwords"
    assert templates.parse("{{x}} {terms}").filled({"terms": {"b": [1]}}) == '{x} {"b": [1]}'
