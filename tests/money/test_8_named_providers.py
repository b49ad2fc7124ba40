"""Several providers at once: a collection, a document and a job choose theirs by name."""

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from holdfast.chaos.waiting import until
from holdfast.cli.app import app
from holdfast.store.base.schema import calls, heads, runs
from holdfast.testing.meter import Meter
from tests.api.house import House
from tests.jobs.house import Author

TEXT = "The ferry leaves the harbour at noon."


def answered(messages):
    """A pair of question and answer for who asks for pairs; a sentence for everybody else."""
    author = Author()
    return author(messages) if "up to" in str(messages[0]["content"]) else "It is about a ferry."


@pytest.fixture
def north():
    with Meter(chat=answered) as running:
        yield running


@pytest.fixture
def south():
    with Meter(chat=answered) as running:
        yield running


@pytest.fixture
def tables(north, south):
    """Two servers by name."""
    prices = {"text-embedding-3-small": {"input": 1}}
    return {
        "north": {"base_url": north.base_url, "identity": "the-north", "prices": prices},
        "south": {"base_url": south.base_url},
    }


@pytest.fixture
def house(database_url, tmp_path, tables):
    """An installation that embeds on board where nobody says otherwise, and knows two servers by name."""
    made = House(database_url, tmp_path / "data", providers=tables)
    yield made
    made.close()


def collection(house, name, **options):
    said = house.client.post("collections", {"id": name, "options": options})
    assert said.status == 201, said.raw
    return said.json


def charges(*meters):
    return [each.totals().charges for each in meters]


def hits(house, name, question="boat"):
    found = house.client.get(f"search?collection={name}&q={question}&mode=vector").json
    assert found["notices"] == []
    return [hit["text"] for hit in found["hits"]]


def frozen(house, name):
    of_head = runs.c.head_id == heads.c.id
    statement = select(runs.c.options).join(heads, of_head).where(heads.c.collection == name)
    return [(row.options["provider"], row.options["model"]) for row in house.runtime.db.look(statement)]


def test_each_collection_is_embedded_and_searched_by_its_own_provider(house, north, south):
    """The bill of each server has its own collection, documents and questions, and no other."""
    collection(house, "cold", provider="north")
    collection(house, "warm", provider="south", model="bge-m3")
    house.client.indexed(TEXT, to="cold")
    assert charges(north, south) == [1, 0]
    house.client.indexed(TEXT, to="warm")
    house.client.indexed(TEXT)
    assert charges(north, south) == [1, 1]
    assert frozen(house, "cold") == [("the-north", "text-embedding-3-small")]
    assert [model for _, model in frozen(house, "warm")] == ["bge-m3"]
    assert hits(house, "cold") == hits(house, "shelf") == [TEXT]
    assert charges(north, south) == [2, 1]
    assert hits(house, "warm") == [TEXT]
    assert charges(north, south) == [2, 2]


def test_what_one_provider_was_paid_for_is_never_taken_for_the_answer_of_another(house, north, south):
    """The same text and the same name of a model are two content keys where two providers embed them."""
    for name, provider in (("cold", "north"), ("warm", "south"), ("frost", "north")):
        collection(house, name, provider=provider, model="same")
        house.client.indexed(TEXT, to=name)
    assert charges(north, south) == [1, 1]
    keys = [row.key for row in house.runtime.db.look(select(calls.c.key).where(calls.c.model == "same"))]
    assert len(set(keys)) == 2


def test_another_provider_of_a_collection_is_noticed_and_never_mixed(house, north, south):
    """Of a model of the same name: words alone answer, and a notice says so with the price."""
    collection(house, "cold", provider="north", model="same")
    house.client.indexed(TEXT, to="cold")
    assert hits(house, "cold") == [TEXT]
    assert house.client.call("PATCH", "collections/cold", {"options": {"provider": "south"}}).status == 200
    found = house.client.get("search?collection=cold&q=boat&mode=vector").json
    (notice,) = found["notices"]
    assert (found["hits"], notice["code"], notice["documents"]) == ([], "other_model", 1)
    assert house.client.post("estimate", notice["estimate"]["body"]).json["unpriced_calls"] == 1
    house.work()
    until(lambda: not house.client.get("search?collection=cold&q=boat").json["notices"], 30, "still told of")
    assert hits(house, "cold") == [TEXT]
    assert charges(north, south) == [2, 2]


def test_a_document_may_name_another_provider_than_its_collection(house, north, south):
    """Its own word counts, with the usual model of that provider; `null` goes back to the default."""
    collection(house, "cold", provider="north", model="odd")
    house.client.indexed(TEXT, to="cold", options={"provider": "south"})
    assert charges(north, south) == [0, 1]
    assert [model for _, model in frozen(house, "cold")] == ["text-embedding-3-small"]
    back = {"provider": None, "model": None}
    said = house.client.call("PATCH", "collections/cold", {"options": back}).json
    assert (said["collection"]["provider"], said["collection"]["options"]) == ("local", {})


def test_a_collection_shows_who_embeds_it(house):
    """By its name, whether it was chosen or is the default."""
    assert collection(house, "cold", provider="north")["provider"] == "north"
    collection(house, "usual")
    shown = {each["id"]: each for each in house.client.get("collections").json["collections"]}
    assert (shown["cold"]["provider"], shown["usual"]["provider"]) == ("north", "local")
    assert shown["cold"]["model"] == "text-embedding-3-small"


def test_a_client_is_opened_when_it_is_first_needed(house):
    """Names cost nothing; one call opens one client."""
    before = house.worker.providers.opened
    assert "the-north" not in before
    collection(house, "cold", provider="north")
    house.client.indexed(TEXT, to="cold")
    assert set(house.worker.providers.opened) - set(before) == {"the-north"}


def test_a_job_asks_the_provider_that_it_names(house, north, south):
    """It is frozen into the job, charged to that server alone, and part of what makes two jobs the same."""
    house.client.indexed(TEXT)
    asked = {"kind": "qa", "params": {"limit": 1, "per_chunk": 1, "provider": "south", "model": "talker"}}
    said = house.client.post("collections/shelf/jobs", asked)
    assert said.status == 202, said.raw
    house.work()
    job = house.client.get(f"jobs/{said.json['job_id']}").json["job"]
    assert (job["state"], job["results"], job["model"]) == ("success", 1, "talker")
    assert job["provider"] == f"openai@{south.base_url.split('/')[2]}"
    assert charges(north, south) == [0, 1]
    asked["params"]["provider"] = "north"
    assert house.client.post("collections/shelf/jobs", asked).status == 202
    house.work()
    assert charges(north, south) == [1, 1]


def test_an_action_asks_the_provider_that_it_names(house, north, south):
    """And its estimate is that of the same provider."""
    house.client.indexed(TEXT)
    action = {"sort": "prompt", "params": {"instruction": "Sum up.", "provider": "north"}}
    said = house.client.post("collections/shelf/actions", action)
    assert said.status == 201, said.raw
    house.work()
    assert charges(north, south) == [1, 0]


@pytest.mark.g6
def test_an_unknown_name_is_refused_at_once_with_those_that_exist(house, north, south):
    """For a collection, a document, an estimate, a job and an action; nothing is made or paid."""
    house.client.indexed(TEXT)
    wrong = {"provider": "west"}
    job = {"kind": "qa", "params": wrong}
    action = {"sort": "prompt", "params": {"instruction": "Sum up.", **wrong}}
    for method, path, body in (
        ("POST", "collections", {"id": "attic", "options": wrong}),
        ("PATCH", "collections/shelf", {"options": wrong}),
        ("POST", "collections/shelf/documents", {"text": "Other.", "options": wrong}),
        ("POST", "estimate", {"collection": "shelf", "options": wrong}),
        ("POST", "collections/shelf/jobs", job),
        ("POST", "collections/shelf/actions", action),
    ):
        said = house.client.call(method, path, body)
        assert (said.status, said.code) == (400, "unknown_provider"), (path, said.raw)
        assert "local, north, south" in said.message
    assert house.client.get("collections/attic").status == 404
    assert charges(north, south) == [0, 0]


def test_a_provider_that_has_gone_from_the_settings_leaves_words_and_says_so(
    database_url, tmp_path, tables, north
):
    """The collection can be looked at and searched by words; asking for more names what is missing."""
    before = House(database_url, tmp_path / "data", providers=tables)
    collection(before, "cold", provider="north")
    before.client.indexed(TEXT, to="cold")
    before.close()
    house = House(database_url, tmp_path / "data")
    try:
        assert house.client.get("collections/cold").json["provider"] == "north"
        found = house.client.get("search?collection=cold&q=ferry").json
        assert [hit["text"] for hit in found["hits"]] == [TEXT]
        assert "not_embedded" in [each["code"] for each in found["notices"]]
        said = house.client.post("collections/cold/documents", {"text": "More."})
        assert (said.status, said.code) == (400, "unknown_provider")
    finally:
        house.close()
    assert charges(north) == [1]


def test_the_command_line_shows_the_provider_and_refuses_an_unknown_one(house, tables, tmp_path, monkeypatch):
    """`collections show` names it; a job and an estimate with a wrong name end with the list of names."""
    collection(house, "cold", provider="north")
    house.client.indexed(TEXT, to="cold")
    north, south = (tables[name]["base_url"] for name in ("north", "south"))
    file = tmp_path / "own.toml"
    file.write_text(
        f'[providers.north]\nbase_url = "{north}"\nidentity = "the-north"\n'
        f'[providers.south]\nbase_url = "{south}"\n'
    )
    monkeypatch.setenv("HOLDFAST_CONFIG", str(file))
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", house.settings.database_url.get_secret_value())
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(house.settings.data_dir))
    shown = CliRunner().invoke(app, ["collections", "show", "cold"])
    assert "north" in shown.output, shown.output
    for command in (
        ["jobs", "qa", "--collection", "cold", "--provider", "west", "--yes"],
        ["estimate", "--collection", "cold", "--option", "provider=west"],
    ):
        said = CliRunner().invoke(app, command)
        assert (said.exit_code, getattr(said.exception, "code", "")) == (1, "unknown_provider"), said.output
        assert "local, north, south" in str(said.exception)
