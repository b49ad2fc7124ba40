"""Filters mean the same in Python and on both databases, for every value that JSON has."""

import json
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core import document_metadata, filters
from holdfast.core.errors import BadRequestError
from holdfast.store.library import document_lists, document_values
from holdfast.store.library.document_lists import DocumentQuery
from holdfast.store.library.document_values import Description
from holdfast.store.library.documents import NEW, DocumentDraft, DocumentSource, row_of

LONG = "x" * document_metadata.MOST_KEY
TEXTS = ["", "1", "true", "a", "b", "ä", "\U0001f600", "￿", LONG, LONG + "a", LONG + "b"]
NUMBERS = [0, 1, -1, 1.0, 1.5, -1.25, -1.2, 2**53, 2**53 + 1, 10**30, -(10**30), 1e-300, 1e300, 0.1]
scalars = st.sampled_from([*TEXTS, *NUMBERS, True, False, None])
names = st.sampled_from(["a", "b", "c.d", "e~"])
metadata = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
documents = st.lists(st.dictionaries(names, metadata, max_size=4), min_size=1, max_size=6)
paths = st.sampled_from(["a", "b", "c~1d", "e~0", "a.a", "a.b", "b.c~1d", "a.a.b"])
ends = st.sampled_from(TEXTS), st.sampled_from(NUMBERS)
bounds = st.one_of(
    *(st.dictionaries(st.sampled_from(filters.BOUNDS), each, min_size=1, max_size=2) for each in ends)
)
conditions = st.one_of(
    st.builds(lambda path, value: {"eq": {path: value}}, paths, scalars),
    st.builds(lambda path, value: {"in": {path: value}}, paths, st.lists(scalars, max_size=3)),
    st.builds(lambda path, value: {"range": {path: value}}, paths, bounds),
    st.builds(lambda path: {"exists": path}, paths),
)
wholes = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"and": parts}, st.lists(inner, max_size=3)),
        st.builds(lambda parts: {"or": parts}, st.lists(inner, max_size=3)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=5,
)


def reached(value, steps):
    """Every value at the end of a path, through all elements of arrays."""
    if isinstance(value, list):
        return [each for one in value for each in reached(one, steps)]
    if not steps:
        return [value]
    return reached(value[steps[0]], steps[1:]) if isinstance(value, dict) and steps[0] in value else []


def is_there(value, steps):
    """True for any value, an empty array too."""
    if not steps:
        return True
    if isinstance(value, list):
        return any(is_there(each, steps) for each in value)
    return isinstance(value, dict) and steps[0] in value and is_there(value[steps[0]], steps[1:])


def comparable(value):
    """A value with its type, and numbers exactly as they are written."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    return ("number", Decimal(repr(value))) if isinstance(value, int | float) else ("group", id(value))


def naive(condition, document):
    """What a filter means, in the plainest words."""
    ((operator, operand),) = condition.items()
    if operator in {"and", "or"}:
        return {"and": all, "or": any}[operator](naive(each, document) for each in operand)
    if operator == "not":
        return not naive(operand, document)
    (path, expected), *_ = operand.items() if isinstance(operand, dict) else [(operand, None)]
    steps = [each.replace("~1", ".").replace("~0", "~") for each in path.split(".")]
    if operator == "exists":
        return is_there(document, steps)
    values = [comparable(each) for each in reached(document, steps)]
    if operator != "range":
        expected = [expected] if operator == "eq" else expected
        return any(each in [comparable(one) for one in expected] for each in values)
    return any(all(holds(each, name, bound) for name, bound in expected.items()) for each in values)


def holds(value, name, bound):
    kind, bound = comparable(bound)
    if value[0] != kind:
        return False
    return {"gt": value[1] > bound, "gte": value[1] >= bound, "lt": value[1] < bound}.get(
        name, value[1] <= bound
    )


def stored(db, number, described, properties=None, **more):
    """A document of its own collection's; the number tells the collections of one database apart."""
    source = DocumentSource(db.token(), 1, "text", **more)
    draft = DocumentDraft(db.token(), "t", source, None, described.metadata, described.labels)

    def body(tx):
        row = tx.one(NEW, row_of("acme", f"c{number}", draft))
        document_values.put(tx, ("acme", draft.id), f"c{number}", described)
        about = properties or {}, described.metadata
        document_values.put_file(tx, ("acme", draft.id), f"c{number}", *about)
        return row.id

    return db.write("by_hand", body)


def passing(db, number, condition, read=filters.parse):
    query = DocumentQuery("acme", f"c{number}", filter=read(condition))
    return {each.document.id: each.document for each in document_lists.page(db, query)}


@given(documents=documents, conditions=st.lists(wholes, min_size=1, max_size=4))
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_a_filter_means_the_same_everywhere(world, documents, conditions):
    """The database, Python and the plainest reading agree on every document."""
    number = next(world.numbers)
    ids = {stored(world.db, number, Description(each)): each for each in documents}
    for condition in conditions:
        plain = {name for name, each in ids.items() if naive(condition, each)}
        assert set(passing(world.db, number, condition)) == plain, condition
        parsed = filters.read(json.dumps(condition))
        for name, each in ids.items():
            fields = dict.fromkeys(filters.FIELDS.values())
            document = SimpleNamespace(**fields | {"metadata": each, "labels": (), "properties": {}})
            assert filters.matches(parsed, document) is (name in plain), condition


@given(documents=documents, files=documents, conditions=st.lists(wholes, min_size=1, max_size=4))
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_properties_fill_what_metadata_leaves_and_count_for_no_key(world, documents, files, conditions):
    """A filter sees both, metadata first; that of a key gives what it gives without any properties."""
    number = next(world.numbers)
    pairs = [(each, files[at % len(files)]) for at, each in enumerate(documents)]
    ids = {stored(world.db, number, Description(own), file): (own, file) for own, file in pairs}
    for condition in conditions:
        plain = {name for name, (own, file) in ids.items() if naive(condition, file | own)}
        trusted = {name for name, (own, _) in ids.items() if naive(condition, own)}
        assert set(passing(world.db, number, condition)) == plain, condition
        assert set(passing(world.db, number, condition, filters.of_key)) == trusted, condition
        for name, (own, file) in ids.items():
            fields = dict.fromkeys(filters.FIELDS.values())
            document = SimpleNamespace(**fields | {"metadata": own, "labels": (), "properties": file})
            assert filters.matches(filters.parse(condition), document) is (name in plain), condition
            assert filters.matches(filters.of_key(condition), document) is (name in trusted), condition


@pytest.mark.parametrize("field", ["$type", "$pages", "$title"])
def test_what_a_file_holds_is_nothing_that_a_key_can_be_limited_to(field):
    """Otherwise the uploader of a file would choose who sees it."""
    with pytest.raises(BadRequestError) as refused:
        filters.of_key({"not": {"and": [{"exists": "a"}, {"exists": field}]}})
    assert refused.value.code == "bad_filter"


@given(
    st.lists(
        st.sampled_from(NUMBERS)
        | st.integers(-(10**40), 10**40)
        | st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_keys_of_numbers_sort_as_the_numbers_do(numbers):
    """Exactly: 2**53 + 1 is not 2**53, though both are the same floating-point value."""
    exact = sorted(numbers, key=lambda each: Decimal(repr(each)))
    keys = [document_metadata.number_key(each) for each in exact]
    assert keys == sorted(keys)
    assert len(set(keys)) == len({Decimal(repr(each)) for each in numbers})


def test_built_in_fields_are_compared_like_metadata(world):
    """Name, source, time and labels, with the same operators; a document without a URL has none."""
    first = stored(world.db, 1, Description({}, ["hr", "public"]), name="a.md", url="http://x/")
    second = stored(world.db, 1, Description({}, ["hr"]), name="b.md")
    expected = {
        '{"eq": {"$name": "a.md"}}': {first},
        '{"range": {"$name": {"gt": "a.md"}}}': {second},
        '{"not": {"exists": "$url"}}': {second},
        '{"not": {"eq": {"$url": "http://x/"}}}': {second},
        '{"in": {"$labels": ["public", "none"]}}': {first},
        '{"eq": {"$size": 1, "$source": "text"}}': {first, second},
        '{"range": {"$created": {"gte": "2020-01-01"}}}': {first, second},
        '{"range": {"$created": {"lt": "2020-01-01T00:00:00Z"}}}': set(),
        '{"eq": {"$name": 5}}': set(),
    }
    for text, ids in expected.items():
        documents = passing(world.db, 1, json.loads(text))
        assert set(documents) == ids, text
        assert all(filters.matches(filters.read(text), each) for each in documents.values())


@pytest.mark.parametrize(
    "condition",
    [
        {},
        [],
        {"like": {"a": 1}},
        {"eq": {"$nothing": 1}},
        {"eq": {"a": [1]}},
        {"eq": {"a": "\ud800"}},
        {"eq": {"a": float("nan")}},
        {"in": {"a": 1}},
        {"range": {"a": {"gt": 1, "lt": "2"}}},
        {"range": {"a": {"gt": True}}},
        {"range": {"$created": {"gt": "yesterday"}}},
        {"in": {"a": list(range(501))}},
        {"and": [{"exists": "a"}] * 101},
        {"not": {"not": {"not": {"not": {"not": {"not": {"not": {"not": {"exists": "a"}}}}}}}}},
    ],
)
def test_a_filter_that_cannot_be_used_is_refused(condition):
    """With its code, before any database sees it."""
    with pytest.raises(BadRequestError) as refused:
        filters.parse(condition)
    assert refused.value.code == "bad_filter"
