"""Who may look, and what a browser that is signed in can be made to do by others: nothing."""

import contextlib
import re
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest

from tests.api.install import ApiInstall

OWN = {"Sec-Fetch-Site": "same-origin"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", **OWN}
ACTS = {"X-Holdfast-Page": "1", **OWN}


def ask(install, method, path, body=None, **headers):
    """Status, headers and text of an answer; no cookie is kept."""
    connection = HTTPConnection("127.0.0.1", install.port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers.pop("headers", {}) | headers)
        answer = connection.getresponse()
        said = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, said, answer.read().decode()


def signed_in(install, client):
    """The cookie that a browser has after signing in with the client's key."""
    form = urlencode({"key": client.key, "goes_on": "/bill"})
    status, said, _ = ask(install, "POST", "/sign-in", form, headers=FORM)
    assert (status, said["location"]) == (303, "/bill")
    return said["set-cookie"].partition(";")[0]


def test_a_key_opens_the_page_for_some_hours(install):
    """Without a session one is led to the form; the cookie is out of reach of scripts and of other sites."""
    client = install.key("anna", "read", "write")
    status, said, _ = ask(install, "GET", "/search?q=a&collection=x")
    assert (status, said["location"]) == (303, "/sign-in?next=/search%3Fq%3Da%26collection%3Dx")
    form = urlencode({"key": client.key})
    _, said, _ = ask(install, "POST", "/sign-in", form, headers=FORM | {"X-Forwarded-Proto": "https"})
    flags = {part.strip().lower() for part in said["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "secure", "path=/"} <= flags
    cookie = signed_in(install, client)
    assert client.key not in cookie
    status, _, text = ask(install, "GET", "/", headers={"Cookie": cookie})
    assert (status, "Sign out" in text) == (200, True)


@pytest.fixture
def keyed(sqlite_url, tmp_path):
    """An installation for a browser, where keys are on."""
    install = ApiInstall(sqlite_url, tmp_path / "keyed")
    yield install
    install.close()


def test_somebody_signs_in_and_out_by_hand(keyed, look):
    """A wrong key is told beside the field; the right one leads where one wanted to go."""
    client = keyed.key("anna", "read")
    reader = look(f"http://127.0.0.1:{keyed.port}")
    page = reader.open("/bill", live=False)
    page.keyboard.type("hf_wrong")
    page.keyboard.press("Enter")
    reader.shows("#problem", "This key is unknown, has expired or was revoked")
    assert reader.judged() == []
    page.keyboard.type(client.key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/bill")
    page.wait_for_selector("#live[data-state=live]")
    page.click("text=Sign out")
    page.wait_for_url("**/sign-in")
    reader.open("/bill", live=False)
    assert reader.text("h1") == "Sign in"


def test_a_wrong_key_and_a_foreign_form_sign_nobody_in(install):
    """No cookie is set, and the answer tells nothing about the key."""
    client = install.key("anna")
    status, said, text = ask(install, "POST", "/sign-in", urlencode({"key": "hf_no"}), headers=FORM)
    assert (status, "set-cookie" in said, "has expired or was revoked" in text) == (401, False, True)
    for site in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://elsewhere.example"}, {}):
        headers = {"Content-Type": FORM["Content-Type"], **site}
        status, said, _ = ask(install, "POST", "/sign-in", urlencode({"key": client.key}), headers=headers)
        assert (status, "set-cookie" in said) == (403, False)


@pytest.mark.parametrize(
    "away", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere", "x\r\ny"]
)
def test_signing_in_leads_nowhere_else(install, away):
    """What follows is a path of ours, whatever the address said."""
    form = urlencode({"key": install.key("anna").key, "goes_on": away})
    status, said, _ = ask(install, "POST", "/sign-in", form, headers=FORM)
    assert (status, said["location"]) == (303, "/")


def test_a_session_acts_only_for_its_own_page(install):
    """A request that changes something needs the header and the browser's word; reading needs neither."""
    cookie = {"Cookie": signed_in(install, install.key("anna", "read", "write"))}
    make = ("POST", "/api/v1/collections", '{"id": "mine"}')
    json = {"Content-Type": "application/json"}
    for lacking in ({}, OWN, {"X-Holdfast-Page": "1"}, {**ACTS, "Sec-Fetch-Site": "same-site"}):
        status, _, text = ask(install, *make, headers=cookie | json | lacking)
        assert (status, "foreign_origin" in text) == (403, True), lacking
    assert ask(install, *make, headers=cookie | json | ACTS)[0] == 201
    assert ask(install, "GET", "/api/v1/collections/mine", headers=cookie)[0] == 200


def test_a_session_ends_with_sign_out_and_with_its_key(install):
    """Both are looked up anew by every request."""
    anna = install.key("anna")
    first, second = signed_in(install, anna), signed_in(install, anna)
    status, said, _ = ask(install, "POST", "/sign-out", headers={"Cookie": first, **OWN})
    assert (status, "Max-Age=0" in said["set-cookie"]) == (303, True)
    assert ask(install, "GET", "/", headers={"Cookie": first})[0] == 303
    assert ask(install, "GET", "/", headers={"Cookie": second})[0] == 200
    install.access.revoke(install.access.every()[0].id)
    assert ask(install, "GET", "/api/v1/status", headers={"Cookie": second})[0] == 401
    assert ask(install, "GET", "/", headers={"Cookie": second})[0] == 303


def test_nobody_sees_what_belongs_to_another_tenant(install):
    """Not there: 404 on every page, and no trace on those of the other."""
    anna, ben = install.key("anna", "read", "write"), install.key("ben", "read", "write")
    document = anna.indexed("The secret of anna.", to="annas")
    cookie = {"Cookie": signed_in(install, ben)}
    ben.collection("bens")
    paths = ("/collections/annas", "/collections/annas/rows", "/collections/annas/counts")
    for path in (
        *paths,
        f"/documents/{document['id']}",
        f"/documents/{document['id']}/text",
        "/jobs/nothing",
    ):
        status, _, text = ask(install, "GET", path, headers=cookie)
        assert (status, "secret" in text) == (404, False), path
    rows = ask(install, "GET", f"/collections/bens/rows?ids={document['id']}", headers=cookie)
    assert (rows[0], "A title" in rows[2]) == (200, False)
    for path in ("/", "/bill", "/operations", "/jobs", "/search?collection=annas&q=secret"):
        status, _, text = ask(install, "GET", path, headers=cookie)
        assert (status, re.search("annas|secret of|A title", text)) == (200, None), path


def test_a_key_that_only_reads_is_offered_nothing_to_change(install):
    """The buttons are not there; who makes the request all the same is refused."""
    writer, reader = install.key("anna", "write"), install.key("anna", "read")
    document = writer.indexed("Anchors hold.", to="shelf")
    cookie = {"Cookie": signed_in(install, reader)}
    _, _, text = ask(install, "GET", "/collections/shelf", headers=cookie)
    assert "A title" in text
    assert 'data-call="POST' not in text
    status, _, _ = ask(install, "DELETE", f"/api/v1/documents/{document['id']}", headers=cookie | ACTS)
    assert status == 403


def test_every_page_says_what_it_may_load(install):
    """Only its own files; nobody may frame it, and what it loads may be kept for ever."""
    _, said, text = ask(install, "GET", "/")
    policy = said["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<style|\sstyle=|<script(?! type=\"module\" src=)|\son[a-z]+=", text)
    style = re.search(r'href="(/static/[^"]+\.css)"', text)[1]
    status, saved, _ = ask(install, "GET", style)
    assert (status, saved["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert ask(install, "GET", "/static/x/..%2fparts.py")[0] == 404


def test_an_address_of_the_wrong_form_is_answered_with_a_page(install):
    """Whatever somebody types, or a script tries."""
    name = install.client.text("Anchors hold.")["id"]
    for path, status in (
        ("/collections/..", 404),
        ("/collections/shelf?status=%00&sort=%00&q=%00%ff", 200),
        (f"/collections/shelf?q={'x' * 5000}", 200),
        ("/collections/shelf/rows?cursor=%00", 400),
        ("/collections/shelf/rows?ids=%00,,;drop", 200),
        ("/documents/%00", 404),
        (f"/documents/{name}/text?at=1.x", 400),
        ("/jobs/x?after=zzz", 400),
        (f"/search?q={'x' * 10_001}", 400),
    ):
        got, said, _ = ask(install, "GET", path)
        assert (got, said["content-type"]) == (status, "text/html; charset=utf-8"), path


def test_without_keys_only_this_machine_is_served(install):
    """A name that is not this machine's is refused, as a page."""
    status, said, text = ask(install, "GET", "/", headers={"Host": "elsewhere.example"})
    assert (status, said["content-type"], "localhost" in text) == (403, "text/html; charset=utf-8", True)
