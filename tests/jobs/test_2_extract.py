"""Fields out of documents: tested against the schema, repaired once, recorded one by one."""

import enum
from decimal import Decimal
from typing import Annotated

import pydantic

from holdfast.kinds import extract
from tests.jobs.install import ask, done, paragraphs, results

SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "total": {"type": "number", "minimum": 0},
        "due": {"type": "string", "format": "date"},
    },
    "required": ["number", "total"],
}
GOOD = {"number": "A-17", "total": 12.5}


def invoice(number, total):
    return f"Invoice {number}\n\nThe total of this invoice is {total} euros, to be paid soon by the customer."


def test_each_document_gives_its_fields_and_where_they_stand(install):
    """One call for each; a value that stands in the text has its place."""
    shelf = install.shelf(invoice("A-17", 12.5), invoice("B-20", 7))
    install.author.say = lambda messages: {
        "number": install.author.passage(messages).split()[1],
        "total": 12.5 if "A-17" in install.author.passage(messages) else 7,
        "due": None,
    }
    finished = done(install, "extract", schema=SCHEMA, instruction="Amounts in euros.")
    assert (finished["state"], install.paid, finished["results"], finished["failed_results"]) == (
        "success",
        2,
        2,
        0,
    )
    assert finished["progress"]["stages"]["collecting"] == [2, 2]
    result = {one["document_id"]: one for one in results(install.client, finished["job_id"])}
    assert result[shelf[0]["id"]]["fields"] == GOOD
    assert result[shelf[1]["id"]]["fields"] == {"number": "B-20", "total": 7}
    assert result[shelf[0]["id"]]["sources"]["number"]["chunk"] == 0
    assert "Amounts in euros." in install.author.heard[0][0]["content"]


def test_an_answer_that_fails_is_sent_back_once_with_what_is_wrong(install):
    """Two calls, each paid once, also when the job is done again by force."""
    install.shelf(invoice("A-17", 12.5))
    install.author.say = lambda messages: {"number": "A-17"} if len(messages) == 2 else GOOD
    finished = done(install, "extract", schema=SCHEMA)
    assert (finished["state"], install.paid) == ("success", 2)
    complaint = install.author.heard[1]
    assert [message["role"] for message in complaint] == ["system", "user", "assistant", "user"]
    assert "answer.total is required" in complaint[3]["content"]
    assert results(install.client, finished["job_id"])[0]["fields"] == GOOD
    again = done(install, "extract", schema=SCHEMA, mode="force")
    assert (again["state"], install.paid, again["cost"]["reused_calls"]) == ("success", 2, 2)


def test_a_document_that_fails_twice_is_recorded_and_the_others_stay(install):
    """Its reason stands in the results; there is no third try."""
    shelf = install.shelf(invoice("A-17", 12.5), invoice("B-20", 7))
    install.author.say = lambda messages: (
        GOOD if "A-17" in install.author.passage(messages) else "I would rather not."
    )
    finished = done(install, "extract", schema=SCHEMA)
    assert (finished["state"], finished["results"], finished["failed_results"], install.paid) == (
        "success",
        1,
        1,
        3,
    )
    bad = next(
        one for one in results(install.client, finished["job_id"]) if one["document_id"] == shelf[1]["id"]
    )
    assert (bad["fields"], bad["error"]["code"]) == (None, "bad_answer")
    assert finished["counters"] == {
        "asked": 2,
        "found": 1,
        "failed": 1,
        "unusable": 1,
        "refused": 0,
        "replaced": 0,
        "duplicates": 0,
    }


def test_the_job_fails_when_no_document_gives_anything(install):
    """With the reason of the first, in the category of content; nothing is left to read."""
    install.shelf(invoice("A-17", 12.5))
    install.author.say = lambda messages: {"number": 3, "total": -1}
    finished = done(install, "extract", schema=SCHEMA)
    assert (finished["state"], finished["error"]["code"], finished["error"]["category"]) == (
        "failed",
        "invalid_answer",
        "content",
    )
    assert "answer.number must be of type string" in finished["error"]["message"]
    assert results(install.client, finished["job_id"]) == []


def test_a_long_document_is_shown_in_windows_until_every_field_has_a_value(install, monkeypatch):
    """The first value of each counts; windows after the last field are not paid for."""
    monkeypatch.setattr(extract, "WINDOW", 1500)
    install.shelf(paragraphs("alpha", 12))
    shown = []

    def say(messages):
        shown.append(install.author.passage(messages))
        assert len(shown[-1]) <= 1500
        return [{"number": "A-17"}, {}, {"number": "Z-99", "total": 3}, {}][min(len(shown) - 1, 3)]

    install.author.say = say
    schema = {
        "type": "object",
        "properties": {name: SCHEMA["properties"][name] for name in ("number", "total")},
    }
    finished = done(install, "extract", schema={**schema, "required": ["number", "total"]})
    assert finished["state"] == "success"
    assert results(install.client, finished["job_id"])[0]["fields"] == {"number": "A-17", "total": 3}
    assert install.paid == len(shown) == 3


def test_fields_as_a_table(install):
    """A column for each field, and one for the reason where there is none."""
    install.shelf(invoice("A-17", 12.5))
    install.author.say = lambda messages: GOOD
    finished = done(install, "extract", schema=SCHEMA)
    said = install.client.get(f"jobs/{finished['job_id']}/results?format=csv").raw.decode().splitlines()
    assert said[0] == "number,total,due,document_id,generation,page,chunk,error"
    assert said[1].startswith("A-17,12.5,,")


UNUSABLE = [
    ({"type": "array"}, "must be an object"),
    ({"type": "object", "properties": {}}, "must be an object"),
    ({"type": "object", "properties": {"a": {"$ref": "#/x"}}}, "must refer to a definition"),
    ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, "must refer to a definition"),
    ({"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}, "in bounded time: look-around"),
    ({"type": "object", "properties": {"a": {"pattern": "\\w{999}"}}}, "in bounded time: "),
    ({"type": "object", "properties": {"a": {"unevaluatedItems": {}}}}, "which is not supported"),
    ({"type": "object", "properties": {"a": {"type": "text"}}}, "type must be one of"),
    ({"type": "object", "properties": {"a": {"enum": []}}}, "enum must be a list"),
    ({"type": "object", "properties": {"a": {"minimum": "1"}}}, "minimum must be of type number"),
    ({"type": "object", "properties": {"a": 7}}, "is not an object"),
    (
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": "a"},
        "required must be of type array",
    ),
]


def test_a_schema_that_would_not_be_kept_is_refused(small):
    """Before anything is spent, with the part that is not understood."""
    small.shelf("A short text of a few words.")
    for schema, output in UNUSABLE:
        said = ask(small.client, "extract", schema=schema)
        assert (said.status, said.code) == (400, "bad_schema"), schema
        assert output in said.message


class Currency(enum.StrEnum):
    EUR = "EUR"
    USD = "USD"


class Address(pydantic.BaseModel):
    city: str
    postcode: Annotated[str, pydantic.Field(pattern=r"^\d{5}$")] | None = None


class Invoice(pydantic.BaseModel):
    """As a user writes it: models in models, optional fields, an enum, a list of models."""

    number: str
    total: Decimal | None = None
    currency: Currency = Currency.EUR
    seller: Address
    earlier: list["Invoice"] = []


def test_the_schema_of_a_pydantic_model_is_taken_as_it_is_written(install):
    """References, anyOf and patterns hold for the answer, and the model reads the fields."""
    install.shelf(invoice("A-17", 12.5))
    answers = iter(["1", "00184"])
    install.author.say = lambda messages: {
        "number": "A-17",
        "total": None,
        "seller": {"city": "Rome", "postcode": next(answers)},
        "earlier": [{"number": "A-16", "seller": {"city": "Rome"}}],
    }
    job = done(install, "extract", schema=Invoice.model_json_schema())
    assert (job["state"], install.paid) == ("success", 2)
    assert "answer.seller.postcode must match the pattern" in install.author.heard[1][3]["content"]
    fields = Invoice.model_validate(results(install.client, job["job_id"])[0]["fields"])
    assert (fields.seller.postcode, fields.earlier[0].number, fields.total) == ("00184", "A-16", None)
