"""Several providers at once: a collection, a document and a job choose theirs by name."""

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from holdfast.chaos.waiting import until
from holdfast.cli.app import app
from holdfast.store.base.schema import calls, heads, runs
from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall
from tests.jobs.install import Author

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
def install(database_url, tmp_path, tables):
    """An installation that embeds on board where nobody says otherwise, and knows two servers by name."""
    installation = ApiInstall(database_url, tmp_path / "data", providers=tables)
    yield installation
    installation.close()


def collection(install, name, **options):
    said = install.client.post("collections", {"id": name, "options": options})
    assert said.status == 201, said.raw
    return said.json


def charges(*meters):
    return [each.totals().charges for each in meters]


def hits(install, name, question="boat"):
    body = install.client.get(f"search?collection={name}&q={question}&mode=vector").json
    assert body["notices"] == []
    return [hit["text"] for hit in body["hits"]]


def frozen(install, name):
    of_head = runs.c.head_id == heads.c.id
    statement = select(runs.c.options).join(heads, of_head).where(heads.c.collection == name)
    return [(row.options["provider"], row.options["model"]) for row in install.runtime.db.look(statement)]


def test_each_collection_is_embedded_and_searched_by_its_own_provider(install, north, south):
    """The bill of each server has its own collection, documents and questions, and no other."""
    collection(install, "cold", provider="north")
    collection(install, "warm", provider="south", model="bge-m3")
    install.client.indexed(TEXT, to="cold")
    assert charges(north, south) == [1, 0]
    install.client.indexed(TEXT, to="warm")
    install.client.indexed(TEXT)
    assert charges(north, south) == [1, 1]
    assert frozen(install, "cold") == [("the-north", "text-embedding-3-small")]
    assert [model for _, model in frozen(install, "warm")] == ["bge-m3"]
    assert hits(install, "cold") == hits(install, "shelf") == [TEXT]
    assert charges(north, south) == [2, 1]
    assert hits(install, "warm") == [TEXT]
    assert charges(north, south) == [2, 2]


def test_what_one_provider_was_paid_for_is_never_taken_for_the_answer_of_another(install, north, south):
    """The same text and the same name of a model are two content keys where two providers embed them."""
    for name, provider in (("cold", "north"), ("warm", "south"), ("frost", "north")):
        collection(install, name, provider=provider, model="same")
        install.client.indexed(TEXT, to=name)
    assert charges(north, south) == [1, 1]
    keys = [row.key for row in install.runtime.db.look(select(calls.c.key).where(calls.c.model == "same"))]
    assert len(set(keys)) == 2


def test_another_provider_of_a_collection_is_noticed_and_never_mixed(install, north, south):
    """Of a model of the same name: words alone answer, and a notice says so with the price."""
    collection(install, "cold", provider="north", model="same")
    install.client.indexed(TEXT, to="cold")
    assert hits(install, "cold") == [TEXT]
    assert install.client.call("PATCH", "collections/cold", {"options": {"provider": "south"}}).status == 200
    body = install.client.get("search?collection=cold&q=boat&mode=vector").json
    (notice,) = body["notices"]
    assert (body["hits"], notice["code"], notice["documents"]) == ([], "other_model", 1)
    assert install.client.post("estimate", notice["estimate"]["body"]).json["unpriced_calls"] == 1
    install.work()
    until(
        lambda: not install.client.get("search?collection=cold&q=boat").json["notices"], 30, "still told of"
    )
    assert hits(install, "cold") == [TEXT]
    assert charges(north, south) == [2, 2]


def test_a_document_may_name_another_provider_than_its_collection(install, north, south):
    """Its own word counts, with the usual model of that provider; `null` goes back to the default."""
    collection(install, "cold", provider="north", model="odd")
    install.client.indexed(TEXT, to="cold", options={"provider": "south"})
    assert charges(north, south) == [0, 1]
    assert [model for _, model in frozen(install, "cold")] == ["text-embedding-3-small"]
    back = {"provider": None, "model": None}
    said = install.client.call("PATCH", "collections/cold", {"options": back}).json
    assert (said["collection"]["provider"], said["collection"]["options"]) == ("local", {})


def test_a_collection_shows_who_embeds_it(install):
    """By its name, whether it was chosen or is the default."""
    assert collection(install, "cold", provider="north")["provider"] == "north"
    collection(install, "usual")
    shown = {each["id"]: each for each in install.client.get("collections").json["collections"]}
    assert (shown["cold"]["provider"], shown["usual"]["provider"]) == ("north", "local")
    assert shown["cold"]["model"] == "text-embedding-3-small"


def test_a_client_is_opened_when_it_is_first_needed(install):
    """Names cost nothing; one call opens one client."""
    before = install.worker.providers.opened
    assert "the-north" not in before
    collection(install, "cold", provider="north")
    install.client.indexed(TEXT, to="cold")
    assert set(install.worker.providers.opened) - set(before) == {"the-north"}


def test_a_job_asks_the_provider_that_it_names(install, north, south):
    """It is frozen into the job, charged to that server alone, and part of what makes two jobs the same."""
    install.client.indexed(TEXT)
    requested = {"kind": "qa", "params": {"limit": 1, "per_chunk": 1, "provider": "south", "model": "talker"}}
    said = install.client.post("collections/shelf/jobs", requested)
    assert said.status == 202, said.raw
    install.work()
    job = install.client.get(f"jobs/{said.json['job_id']}").json["job"]
    assert (job["state"], job["results"], job["model"]) == ("success", 1, "talker")
    assert job["provider"] == f"openai@{south.base_url.split('/')[2]}"
    assert charges(north, south) == [0, 1]
    requested["params"]["provider"] = "north"
    assert install.client.post("collections/shelf/jobs", requested).status == 202
    install.work()
    assert charges(north, south) == [1, 1]


def test_an_action_asks_the_provider_that_it_names(install, north, south):
    """And its estimate is that of the same provider."""
    install.client.indexed(TEXT)
    action = {"sort": "prompt", "params": {"instruction": "Sum up.", "provider": "north"}}
    said = install.client.post("collections/shelf/actions", action)
    assert said.status == 201, said.raw
    install.work()
    assert charges(north, south) == [1, 0]


@pytest.mark.g6
def test_an_unknown_name_is_refused_at_once_with_those_that_exist(install, north, south):
    """For a collection, a document, an estimate, a job and an action; nothing is made or paid."""
    install.client.indexed(TEXT)
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
        said = install.client.call(method, path, body)
        assert (said.status, said.code) == (400, "unknown_provider"), (path, said.raw)
        assert "local, north, south" in said.message
    assert install.client.get("collections/attic").status == 404
    assert charges(north, south) == [0, 0]


def test_a_provider_that_has_gone_from_the_settings_leaves_words_and_says_so(
    database_url, tmp_path, tables, north
):
    """The collection can be looked at and searched by words; asking for more names what is missing."""
    before = ApiInstall(database_url, tmp_path / "data", providers=tables)
    collection(before, "cold", provider="north")
    before.client.indexed(TEXT, to="cold")
    before.close()
    install = ApiInstall(database_url, tmp_path / "data")
    try:
        assert install.client.get("collections/cold").json["provider"] == "north"
        body = install.client.get("search?collection=cold&q=ferry").json
        assert [hit["text"] for hit in body["hits"]] == [TEXT]
        assert "not_embedded" in [each["code"] for each in body["notices"]]
        said = install.client.post("collections/cold/documents", {"text": "More."})
        assert (said.status, said.code) == (400, "unknown_provider")
    finally:
        install.close()
    assert charges(north) == [1]


def test_the_command_line_shows_the_provider_and_refuses_an_unknown_one(
    install, tables, tmp_path, monkeypatch
):
    """`collections show` names it; a job and an estimate with a wrong name end with the list of names."""
    collection(install, "cold", provider="north")
    install.client.indexed(TEXT, to="cold")
    north, south = (tables[name]["base_url"] for name in ("north", "south"))
    file = tmp_path / "own.toml"
    file.write_text(
        f'[providers.north]\nbase_url = "{north}"\nidentity = "the-north"\n'
        f'[providers.south]\nbase_url = "{south}"\n'
    )
    monkeypatch.setenv("HOLDFAST_CONFIG", str(file))
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", install.settings.database_url.get_secret_value())
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(install.settings.data_dir))
    shown = CliRunner().invoke(app, ["collections", "show", "cold"])
    assert "north" in shown.output, shown.output
    for command in (
        ["jobs", "qa", "--collection", "cold", "--provider", "west", "--yes"],
        ["estimate", "--collection", "cold", "--option", "provider=west"],
    ):
        said = CliRunner().invoke(app, command)
        assert (said.exit_code, getattr(said.exception, "code", "")) == (1, "unknown_provider"), said.output
        assert "local, north, south" in str(said.exception)
