"""Who may ask, and what they may do."""

import contextlib
from http.client import HTTPConnection

import pytest
from sqlalchemy import update

from holdfast.api import server
from holdfast.api.access import COOKIE
from holdfast.store.base.schema import api_keys, charges
from holdfast.testing.meter import Meter
from tests.api.install import PREFIX, ApiInstall


def test_from_the_first_key_on_nobody_comes_in_without_one(small):
    """Also not from this machine, and not after the last key was revoked."""
    client = small.client
    assert client.get("collections").status == 200
    member = small.key("default")
    said = client.get("collections")
    assert (said.status, said.code, said.headers["www-authenticate"]) == (401, "key_needed", "Bearer")
    assert member.get("collections").status == 200
    (key,) = small.access.every()
    small.access.revoke(key.id)
    assert member.get("collections").code == "key_needed"
    assert client.get("collections").code == "key_needed"


def test_a_key_is_shown_in_either_header(small):
    """Two different ones at once are refused rather than chosen from."""
    token = small.key("default").key
    client = small.client
    assert client.get("collections", headers={"Authorization": f"Bearer {token}"}).status == 200
    assert client.get("collections", headers={"X-API-Key": token}).status == 200
    both = {"X-API-Key": token, "Authorization": "Bearer another"}
    assert client.get("collections", headers=both).status == 401
    for wrong in ("", "hf_unknown", "x" * 5000, token + "x"):
        assert client.get("collections", headers={"X-API-Key": wrong}).status == 401


def test_a_key_runs_out(small):
    """By the clock of the database."""
    member = small.key("default", days=1)
    assert member.get("collections").status == 200
    past = update(api_keys).values(expires_at=1.0)
    small.runtime.db.write("by_hand", lambda tx: tx.execute(past))
    assert member.get("collections").code == "key_needed"


def test_the_token_is_kept_nowhere(small):
    """The database has its digest alone."""
    token = small.key("default").key
    rows = small.runtime.db.read(lambda tx: tx.all(api_keys.select()))
    assert token not in str(rows)
    assert len(token) > 40


def test_a_scope_includes_those_before_it_and_no_other(small):
    """403 is told of one's own things; admin is needed for what concerns the whole installation."""
    writer = small.key("default")
    created = writer.text("Some words.")
    reader = small.key("default", "read")
    assert reader.get(f"documents/{created['id']}").status == 200
    for method, path in (
        ("DELETE", f"documents/{created['id']}"),
        ("POST", f"documents/{created['id']}/cancel"),
        ("DELETE", "collections/shelf"),
    ):
        said = reader.call(method, path)
        assert (said.status, said.code) == (403, "scope_missing")
    assert reader.post("collections", {"id": "other"}).status == 403
    assert writer.get("/metrics").status == 403
    assert writer.get("status").json["installation"] is None
    admin = small.key("default", "admin")
    assert admin.get("/metrics").status == 200
    assert admin.get("status").json["installation"] is not None


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
        {"Host": "["},
        {"Host": "[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_without_keys_no_page_of_another_site_is_served(small, headers):
    """A browser on this machine sends what any page tells it to."""
    said = small.client.post("collections", {"id": "shelf"}, headers=headers)
    assert (said.status, said.code) == (403, "foreign_origin")


LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def charged(install):
    """The questions that were paid for."""
    return install.runtime.db.read(lambda tx: tx.all(charges.select()))


@pytest.fixture
def paying(sqlite_url, tmp_path):
    """An installation whose questions cost something."""
    with Meter() as meter:
        provider = {"embedding_provider": "openai", "embedding_base_url": meter.base_url}
        install = ApiInstall(sqlite_url, tmp_path / "data", embedding_api_key="key", **provider)
        install.client.collection()
        yield install
        install.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        LINK | {"Sec-Fetch-Dest": "iframe"},
    ],
)
def test_without_keys_no_other_page_asks_a_question(paying, headers):
    """An image, a script or a frame of any page in a browser here would spend its owner's money."""
    for path in (f"{PREFIX}/search?collection=shelf&q=words", "/search?collection=shelf&q=words"):
        assert page(paying, path, headers)[0] == 403
    assert page(paying, f"{PREFIX}/search?collection=shelf&q=words", LINK)[0] == 403
    assert charged(paying) == []


def test_a_link_to_a_question_waits_for_enter(paying):
    """It is followed, and the question stands in its field under an address that asks nothing."""
    status, where, _ = page(paying, "/search?collection=shelf&q=some+words", LINK)
    assert (status, where) == (303, "/search?suggest=some+words&collection=shelf")
    for headers in (LINK, {"Sec-Fetch-Site": "same-origin"}):
        status, _, text = page(paying, where, headers)
        assert (status, 'value="some words"' in text, "Press Enter" in text) == (200, True, True)
    assert charged(paying) == []
    assert page(paying, "/search?collection=shelf&q=some+words", {"Sec-Fetch-Site": "same-origin"})[0] == 200
    assert len(charged(paying)) == 1


def page(install, path, headers):
    """The status of the answer to a browser, where it sends that to, and its text."""
    with contextlib.closing(HTTPConnection("127.0.0.1", install.port, timeout=60)) as line:
        line.request("GET", path, headers=headers)
        answer = line.getresponse()
        return answer.status, answer.getheader("Location"), answer.read().decode()


def test_a_session_is_not_lent_to_a_page_of_another_port(small):
    """A browser sends its cookie to the same site, whichever port; only what our own page asks is served."""
    session = small.access.sign_in(small.key("default", "admin").key)
    cookie = {"Cookie": f"{COOKIE}={session}"}
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
        assert page(small, f"{PREFIX}/collections", cookie | {"Sec-Fetch-Site": site})[0] == status
    link = LINK | {"Sec-Fetch-Site": "same-site"}
    assert page(small, "/operations", cookie | link)[0] == 200


def test_a_key_is_served_whatever_a_browser_says(small):
    """No other site can send one along."""
    client = small.key("default")
    assert client.get("collections", headers={"Sec-Fetch-Site": "cross-site"}).status == 200


def test_without_keys_only_this_machine_is_local():
    """Every address and every other one is not."""
    assert server.is_local("127.0.0.1")
    assert server.is_local("::1")
    assert server.is_local("localhost")
    for host in ("", "0.0.0.0", "::", "10.0.0.1", "no such name"):
        assert not server.is_local(host)


def test_no_header_invites_other_sites_and_all_answers_are_guarded(small):
    """No CORS; the same headers on success, refusal and unknown paths."""
    for path in ("collections", "nowhere", "documents/x"):
        said = small.client.get(path, headers={"Origin": f"http://127.0.0.1:{small.port}"})
        assert not [name for name in said.headers if name.startswith("access-control")]
        assert said.headers["x-content-type-options"] == "nosniff"
        assert said.headers["x-frame-options"] == "DENY"
        assert said.headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in said.headers
    assert small.client.get("/docs").status == 404
