"""The OpenAPI is true: what fits it, and what nearly does, is answered as it says, and never with a 5xx."""

import copy
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from holdfast.api import app
from holdfast.core.states import LIVE
from holdfast.store.base.schema import runs
from tests.api.accepted_requests import FLOW, TAKEN
from tests.api.install import PREFIX, ApiInstall
from tests.api.test_3_history import an_order
from tests.jobs.graph_rows import GraphRows, key

EXAMPLES = 15
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
PAGE = Path(__file__).resolve().parents[2] / "docs/reference/errors.md"
CODES = set(re.findall(r"^\| `(\w+)`", PAGE.read_text(), re.MULTILINE))
# Never ends by itself; tests/api/test_stream.py reads it.
STREAMS = {"/api/v1/events/stream"}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def hall(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiInstall]:
    """One installation for all routes: what one of them leaves is what the next one finds."""
    folder = tmp_path_factory.mktemp("hall")
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("sqlite_template"), folder / "holdfast.db")
        url = f"sqlite:///{folder}/holdfast.db"
    else:
        url = request.getfixturevalue("postgresql_slate").wiped()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
            patch.delenv(name)
        install = ApiInstall(url, folder / "data", api_rate=100_000.0, webhook_private=True)
    yield install
    install.close()


@pytest.fixture(scope="module")
def shelves(hall: ApiInstall) -> dict[str, list[str]]:
    """What `stock` found; empty when it may be there no more."""
    return {}


@pytest.fixture
def stock(hall: ApiInstall, shelves: dict[str, list[str]], method: str) -> Iterator[dict[str, list[str]]]:
    """Ids of things that are there, whatever was deleted before; who only reads leaves them as they were."""
    if not shelves:
        shelves.update(_stocked(hall))
    yield shelves
    if method != "GET":
        shelves.clear()


def _stocked(hall: ApiInstall) -> dict[str, list[str]]:
    """Ids of new things, in every state that is easy to be had."""
    client = hall.client
    client.collection("shelf")
    client.post("collections/shelf/actions", {"sort": "prompt", "params": {"instruction": "Sum up."}})
    hook = {"sort": "webhook", "params": {"url": "http://127.0.0.1:9/"}}
    client.post("collections/shelf/actions", hook)
    listed = {"type": "urls", "options": {"urls": ["http://127.0.0.1:9/"]}}
    client.post("collections/shelf/sources", listed)
    ready = client.post("collections/shelf/documents", {"text": "All is ready here.", "title": "Ready"}).json
    hall.work()
    client.post("collections/shelf/jobs", {"kind": "qa"})
    hall.work()
    rows = GraphRows(hall.runtime.db, {ready["document"]["id"]: 1})
    entity = rows.entity("Here", "Where all is ready.", ready["document"]["id"])
    rows.report("All", "All is ready.", ready["document"]["id"], children=(entity,))
    rows.publish()
    queued = client.post("collections/shelf/documents", {"text": "This one waits.", "title": "Waits"}).json
    if not client.get("orders").json["orders"]:
        an_order(hall, secrets.token_hex(8))
    return {
        "collection_id": ["shelf"],
        "document_id": [ready["document"]["id"], queued["document"]["id"]],
        "run_id": [ready["run"]["id"]],
        "job_id": [each["job_id"] for each in client.get("jobs?limit=3").json["jobs"]],
        "action_id": [str(each["id"]) for each in client.get("collections/shelf/actions").json["actions"]],
        "delivery_id": [each["id"] for each in client.get("deliveries?limit=3").json["deliveries"]],
        "page": ["1"],
        "flow_id": [client.post("flows", {"source": FLOW}).json["id"]],
        "entity": [entity],
        "community": [key("All")],
        "source_id": [each["id"] for each in client.get("collections/shelf/sources").json["sources"]][:2],
        "chunk": [
            each["id"] for each in client.get(f"documents/{ready['document']['id']}/chunks").json["chunks"]
        ],
        "order_id": [each["id"] for each in client.get("orders").json["orders"]],
    }


def operations() -> list[tuple[str, str]]:
    """Every route below the prefix, by method and path."""
    return [
        (method, PREFIX + route.path)
        for router in app.routers()
        for route in router.routes
        for method in sorted(route.methods)
    ]


@pytest.fixture(scope="module")
def schema(hall: ApiInstall) -> Any:
    """What the API says of itself; without its keys, for a key that is made up answers 401 to everything."""
    output = copy.deepcopy(hall.openapi)
    for methods in output["paths"].values():
        for one in methods.values():
            one.pop("security", None)
    return schemathesis.openapi.from_dict(output)


@pytest.mark.parametrize(("method", "path"), [one for one in operations() if one[1] not in STREAMS])
def test_every_answer_is_documented(hall, schema, stock, method, path):
    """Its status, its type, its shape; and the code of an error is on the page of errors."""
    operation = schema[path][method]
    names = re.findall(r"\{(\w+)\}", path)
    # What is made up alone seldom gets past the first check.
    good = TAKEN.get(f"{method} {path.removeprefix(PREFIX)}", [])
    with requests.Session() as session:

        @hypothesis.settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(st.data())
        def judge(data):
            bad = data.draw(st.integers(0, 3)) == 3
            mode = GenerationMode.NEGATIVE if bad else GenerationMode.POSITIVE
            values: dict[str, Any] = {}
            if data.draw(st.integers(0, 4)):
                values["path_parameters"] = {name: data.draw(st.sampled_from(stock[name])) for name in names}
            if good and data.draw(st.booleans()):
                values["query" if method == "GET" else "body"] = data.draw(st.sampled_from(good))
                values |= {"media_type": "application/json"} if method != "GET" else {}
            case = data.draw(operation.as_strategy(mode, **values))
            said = case.call(base_url=f"http://127.0.0.1:{hall.port}", session=session, timeout=30)
            case.validate_response(said, checks=CHECKS)
            if said.status_code >= 400:
                assert said.json()["error"]["code"] in CODES
            else:
                assert str(said.status_code) in operation.definition.raw["responses"]

        judge()


def test_all_that_was_taken_came_to_an_end(hall):
    """Whatever the requests above asked for: no task is left that could be done and is not."""
    hall.work()
    query = runs.select().where(runs.c.status.in_([str(each) for each in LIVE]), runs.c.kind != "webhook")
    assert [(row.kind, row.subject) for row in hall.runtime.db.read(lambda tx: tx.all(query))] == []
