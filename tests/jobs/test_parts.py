"""The parts of jobs that need no database: reading answers, picking chunks, testing schemas, copying."""

import functools
import json

import pytest

from holdfast.core import keys
from holdfast.core.errors import BadRequestError, WorkError
from holdfast.engine.kinds import Supplies
from holdfast.engine.models import Model
from holdfast.kinds import chunk_sampling, model_calls, qa, schemas
from holdfast.ledger import prices
from holdfast.providers import extractive, local_llm
from holdfast.providers.base import Answered, Exchange, NotSent

MODEL = Model("openai", "gpt-4o-mini")


def answered(content, reason="stop", **more):
    return json.dumps({"content": content, "finish_reason": reason, **more}).encode()


@pytest.mark.parametrize(
    "said",
    [
        '{"a": 1}',
        '```json\n{"a": 1}\n```',
        'Sure! Here it is:\n{"a": 1}\nDo you need more?',
        '[1] as I said {not json} {"a": 1} {"b": 2}',
        '{"a": NaN} {"a": 1}',
        '\ufeff  {"a": 1}',
        '{"a": 1e999} {"a": 1}',
        '{"a": ' + "[" * 100 + "]" * 100 + '} then {"a": 1}',
    ],
)
def test_json_is_found_wherever_a_model_puts_it(said):
    """Bare, in a fence, among prose; the first value that is whole and of the right sort."""
    assert model_calls.value(answered(said), dict) == {"a": 1}


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (answered("I would rather not."), "bad_answer"),
        (answered('{"a": 1'), "bad_answer"),
        (answered('{"a": 1', "length"), "answer_cut"),
        (answered(None), "bad_answer"),
        (answered("", "content_filter"), "content_filtered"),
        (answered("[" * 100_000), "bad_answer"),
        (answered('{"a":' * 100_000), "bad_answer"),
        (b"no json", "bad_answer"),
        (b"[]", "bad_answer"),
    ],
)
def test_an_answer_that_cannot_be_read_says_which_sort_it_is(result, code):
    """Each with its own code, however deep or long it is."""
    with pytest.raises(WorkError) as failed:
        model_calls.value(result, dict)
    assert failed.value.code == code


def test_a_question_is_the_same_call_only_if_every_word_is():
    """Instruction, text, model and limits are in the content key; the hint is for the stand-in alone."""
    base = model_calls.question(MODEL, "Say.", "Text.", hint={"do": "pairs", "count": 1})
    assert local_llm.HINT not in base.params
    others = [
        model_calls.question(MODEL, "Tell.", "Text."),
        model_calls.question(MODEL, "Say.", "Texts."),
        model_calls.question(MODEL, "Say.", "Text.", max_tokens=7),
        model_calls.question(Model("openai", "gpt-4o"), "Say.", "Text."),
        model_calls.again(base, answered("x"), "No."),
    ]
    assert len({call.key("default") for call in (base, *others)}) == len(others) + 1
    assert model_calls.question(MODEL, "Say.", "Text.").key("a") != base.key("b")


def test_tools_are_offered_and_their_calls_are_read():
    """As an agent needs it."""
    call = model_calls.conversation(MODEL, [{"role": "user", "content": "Go."}], tools=[{"type": "function"}])
    assert call.params["tools"] == [{"type": "function"}]
    said = model_calls.answer(answered(None, "tool_calls", tool_calls=[{"id": "1"}, "rubbish"]))
    assert (said.text, list(said.tool_calls)) == ("", [{"id": "1"}])


def test_without_a_model_nothing_is_asked():
    """The error says what to set."""
    with pytest.raises(WorkError, match="LLM_PROVIDER"):
        model_calls.model(Supplies())


def test_any_beginning_of_the_order_is_spread():
    """Every number once, the first few far apart."""
    for count in (1, 2, 3, 7, 64, 100):
        assert sorted(chunk_sampling.spread(count)) == list(range(count))
    assert chunk_sampling.spread(8) == [0, 4, 2, 6, 1, 5, 3, 7]


def test_every_document_has_its_turn_before_one_has_two():
    """A long document does not crowd out the short ones; an empty one has none."""
    first, more = chunk_sampling.pick([100, 1, 0, 5], 3, 2)
    assert {document for document, _ in first} == {0, 1, 3}
    assert {document for document, _ in more} == {0, 3}
    everything, none = chunk_sampling.pick([2, 1], 50, 50)
    assert (everything, none) == ([(0, 0), (0, 1), (1, 0)], [])


def test_spellings_of_one_question_have_one_mark():
    """Case, spaces and punctuation do not make another question; words do."""
    marks = {qa.mark_of(text) for text in ("What is it?", " what  IS it", "WHAT IS IT!?")}
    assert len(marks) == 1
    assert qa.mark_of("What is this?") not in marks
    assert qa.mark_of("?!") is None


@pytest.mark.parametrize(
    ("value", "schema", "fault"),
    [
        (True, {"type": "integer"}, "of type integer"),
        (1, {"enum": [True]}, "must be one of"),
        (3.0, {"type": "integer"}, None),
        (None, {"type": ["string", "null"]}, None),
        ("2026-02-30", {"type": "string", "format": "date"}, "must be a date"),
        ("2026-02-28", {"type": "string", "format": "date"}, None),
        ("20260228", {"type": "string", "format": "date"}, "must be a date"),
        ("2026-02-28T10:00:00Z", {"type": "string", "format": "date-time"}, None),
        ("nobody", {"type": "string", "format": "email"}, "must be a email"),
        ("a@b.org", {"type": "string", "format": "email"}, None),
        ("x", {"minLength": 2}, "at least 2 characters"),
        ([1, 1], {"uniqueItems": True}, "same item twice"),
        ([1, "x"], {"items": {"type": "number"}}, r"answer[1] must be of type number"),
        (5, {"exclusiveMaximum": 5}, "less than 5"),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, "must not have b"),
        ({"a": {"c": 1}}, {"properties": {"a": {"required": ["b"]}}}, "answer.a.b is required"),
    ],
)
def test_an_answer_is_held_against_its_schema(value, schema, fault):
    """With words that a model can follow."""
    result = schemas.faults(value, schema)
    assert (fault is None) == (result == [])
    assert fault is None or fault in result[0]


HOSTILE = [
    ({"pattern": r"(a+)+$"}, "a" * 9000 + "b", "must match the pattern"),
    ({"pattern": "^a*$"}, "a" * 1_000_000, "must match the pattern"),
    ({"items": {"enum": list(range(5000))}}, [4999] * 5000, "too large"),
    ({"$ref": "#/$defs/0"}, 1, "too large"),
    ({"$ref": "#/$defs/deep"}, None, "too deeply nested"),
]


@pytest.mark.parametrize(("field", "value", "fault"), HOSTILE)
def test_no_schema_makes_a_test_run_for_long(field, value, fault):
    """Patterns, long lists, two ways at each of thirty steps and a very deep answer all end."""
    ways = {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(30)}
    if value is None:
        value = functools.reduce(lambda inner, _: [inner], range(900), [])
    definitions = {**ways, "30": {"type": "null"}, "deep": {"items": {"$ref": "#/$defs/deep"}}}
    schema = schemas.checked({"type": "object", "properties": {"a": field}, "$defs": definitions})
    assert fault in schemas.faults({"a": value}, schema)[0]


@pytest.mark.parametrize("inner", [{"$ref": "#/$defs/a"}, {"anyOf": [{"not": {"$ref": "#/$defs/a"}}]}])
def test_a_definition_that_is_only_itself_is_refused(inner):
    """It would test the same value for ever; a list of itself is fine."""
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
    with pytest.raises(BadRequestError, match="refers to itself"):
        schemas.checked({**schema, "$defs": {"a": inner}})
    schemas.checked({**schema, "$defs": {"a": {"items": inner}}})


def test_a_decimal_of_pydantic_is_matched():
    """Its pattern begins with what must not be there, which takes two linear matches."""
    pattern = {"pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}
    assert [bool(schemas.faults(text, pattern)) for text in ("1.50", "-3", "", "-.", "x")] == [0, 0, 1, 1, 1]


def test_the_key_of_a_job_is_what_it_was():
    """A schema that was taken before comes back as it is, so that its calls keep their keys."""
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"], "title": "A"}}}
    assert keys.digest(keys.canonical(schemas.checked(schema))).startswith("55642c3a0573c4c4")


def test_a_schema_of_a_thousand_faults_tells_ten():
    """An answer that is wrong everywhere does not make a prompt without end."""
    assert len(schemas.faults(["x"] * 1000, {"items": {"type": "number"}})) == schemas.MOST_FAULTS


@pytest.mark.parametrize(
    ("written", "number"),
    [("1,234.50", 1234.5), ("1.234,50", 1234.5), ("1'234", 1234.0), ("12,5", 12.5), ("7", 7.0), ("x", None)],
)
def test_amounts_as_people_write_them(written, number):
    """The last sign before one or two digits is the decimal one."""
    assert extractive.amount(written) == number


def test_dates_that_do_not_exist_are_passed_over():
    """The first that does is taken."""
    assert extractive.date("On 31.02.2024 or 3rd of May; July 4, 2023, then 2024-01-01.") == "2023-07-04"


def test_the_stand_in_goes_through_the_same_door():
    """The same order gives the same answer, costs nothing, and is withheld by a closed gate."""
    provider = local_llm.LocalLanguageProvider()
    call = model_calls.question(
        Model(local_llm.NAME, local_llm.MODEL), "Ask.", "The sky is blue and wide.", hint={"do": "pairs"}
    )
    body = provider.encode(call.endpoint, call.model, call.params, [call.text])
    exchange = Exchange(call.endpoint, body, "key", 1.0, 1.0)
    assert isinstance(provider.send(exchange, lambda: False), NotSent)
    one, two = (provider.send(exchange, lambda: True) for _ in range(2))
    assert isinstance(one, Answered)
    assert one == two
    assert qa.pairs_of(one.results[0], 3) == [
        ("What does the text say about the sky?", "The sky is blue and wide.")
    ]
    assert prices.DEFAULT.cost(local_llm.MODEL, 10**9, 10**9) == 0


def test_the_stand_in_calls_a_tool_once_and_then_answers():
    """Out of what the tool said."""
    tools = [{"type": "function", "function": {"name": "load"}}]
    items = [{"role": "user", "content": "Tell me."}]
    first = local_llm.answer(items, tools, {})
    assert first["tool_calls"][0]["function"]["name"] == "load"
    values = [*items, {"role": "tool", "content": "The harbour was closed on Monday."}]
    assert local_llm.answer(values, tools, {})["content"] == "The harbour was closed on Monday."


def test_the_stand_in_refuses_what_it_is_not():
    """Another endpoint, another model."""
    provider = local_llm.LocalLanguageProvider()
    for endpoint, model in (("embeddings", local_llm.MODEL), (local_llm.ENDPOINT, "gpt-4o")):
        with pytest.raises(ValueError, match="the local stand-in"):
            provider.encode(endpoint, model, {}, ["x"])


def test_a_tagged_union_names_the_branch_that_was_chosen():
    """Of shapes told apart by `kind`, the fault is in the one whose `kind` the value has."""
    size = {"type": "integer", "minimum": 1}
    shapes = {
        name: {"type": "object", "required": ["kind"], "properties": {"kind": {"const": name}, **fields}}
        for name, fields in {"square": {"side": size}, "circle": {"radius": size}, "point": {}}.items()
    }
    union = {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in shapes]}
    schema = schemas.checked({"type": "object", "properties": {"shape": union}, "$defs": shapes})
    assert schemas.faults({"shape": {"kind": "circle", "radius": 0}}, schema) == [
        "answer.shape.radius must be at least 1"
    ]
