"""One visit to a thread for a request, and nobody learns of a request's form who may not make it."""

import pytest
from anyio import to_thread
from fastapi import Request
from fastapi.responses import Response

from holdfast.api import routing
from holdfast.api.dependencies import resolve
from holdfast.service.access import Scope
from tests.api.install import ApiInstall, Client


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was sent to a thread, by name."""
    sent: list[str] = []
    plain = to_thread.run_sync

    async def noted(do, *arguments, **more):
        sent.append(getattr(do, "__name__", str(do)))
        return await plain(do, *arguments, **more)

    monkeypatch.setattr(to_thread, "run_sync", noted)
    return sent


def test_a_request_visits_a_thread_once(small: ApiInstall, visits: list[str]) -> None:
    """Whatever is found first, however the answer is checked; with a body twice, which is read in between."""
    client = small.client
    response = client.text("Some words.")
    for method, path, body, most in (
        ("GET", "collections", None, 1),
        ("GET", "collections/shelf/documents", None, 1),
        ("GET", f"documents/{response['id']}", None, 1),
        ("GET", "search?collection=shelf&q=words", None, 1),
        ("GET", "jobs", None, 1),
        ("POST", f"documents/{response['id']}/cancel", None, 1),
        ("POST", f"documents/{response['id']}/index", {"mode": "retry"}, 2),
        ("POST", "collections/shelf/documents", {"text": "Other words."}, 2),
    ):
        visits.clear()
        assert client.call(method, path, body).status < 500
        assert len(visits) == most, (path, visits)


@pytest.mark.parametrize("raw", [b'{"mode": 7}', b"{", b""])
def test_who_may_not_ask_is_told_that_and_not_the_form(small: ApiInstall, raw: bytes) -> None:
    """Without a key 401, of another's document 404, with too small a scope 403: malformed or not."""
    created = small.key("default").text("Some words.")
    path, json = f"documents/{created['id']}/index", {"Content-Type": "application/json"}
    assert small.client.post(path, raw=raw, headers=json).status == 401
    assert small.key("other").post(path, raw=raw, headers=json).status == 404
    assert small.key("default", "read").post(path, raw=raw, headers=json).status == 403
    assert small.key("default").post(path, raw=raw, headers=json).code == "bad_request"
    assert small.client.get("search?k=none").status == 401


def test_a_malformed_request_counts_against_the_limit(small: ApiInstall) -> None:
    """Once, as any other does."""
    created = small.access.make(tenant="default", name="slow", scopes=[Scope.READ], rate=0.001)
    client = Client(small, created.token)
    assert [client.get("search?k=none").code for _ in range(2)] == ["bad_request", "rate_limited"]


def test_what_is_found_is_found_once() -> None:
    """For one request; another asks anew."""
    items: list[Request] = []
    one, other = Request({"type": "http"}), Request({"type": "http"})

    def find(request: Request) -> int:
        items.append(request)
        return len(items)

    assert [resolve(each, find) for each in (one, one, other, one)] == [1, 1, 2, 1]


def test_a_route_that_would_change_its_response_is_refused() -> None:
    """Its headers would be lost: what a route answers is already written when the framework sees it."""

    def route(response: Response) -> None:
        """Answer nothing."""

    with pytest.raises(TypeError, match="route must return a Response"):
        routing.router("t").get("/")(route)
