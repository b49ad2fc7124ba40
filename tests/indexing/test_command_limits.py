"""Commands at the edge: text that would command the terminal, and a tenant that holds as much as it may."""

import contextlib
import json

from holdfast.chaos.waiting import until
from tests.indexing.background_worker import BackgroundWorker
from tests.indexing.test_command import index, shelf, staff  # noqa: F401 - fixtures


def test_escape_codes_of_a_document_are_shown_and_not_carried_out(staff, tmp_path, holdfast):  # noqa: F811
    """Neither by search nor by its JSON; the words around them are."""
    (tmp_path / "papers").mkdir()
    page = "<html><body><p>Delta &#27;[2J&#27;]0;owned&#7; follows.</p></body></html>"
    (tmp_path / "papers/evil.html").write_text(page)
    assert holdfast("index", str(tmp_path / "papers"))[0] == 0
    for more in ((), ("--json",)):
        code, out, _ = holdfast("search", "delta", "--mode", "keyword", *more)
        assert code == 0
        assert "follows" in out
        assert not {"\x1b", "\x07", "\x9b"} & set(out)
        assert "1b[2J" in out


def test_a_folder_is_refused_where_the_quota_ends(staff, shelf, holdfast):  # noqa: F811
    """Exit code 3 with the numbers; when it is raised the same command goes on."""
    code, out, _ = holdfast("quota", "set", "--documents", "2", "--json")
    assert (code, json.loads(out)["quota"]) == (0, {"documents": 2, "bytes": None})
    code, _, complaint = holdfast("index", str(shelf))
    assert (code, "2 documents" in complaint, "quota_exceeded" in complaint) == (3, True, True)
    assert (
        holdfast("quota", "set", "--bytes", "1000000")[1]
        == "default: 0 of 2 documents, 0 of 1,000,000 bytes\n"
    )
    assert holdfast("quota", "set", "--remove")[1] == "default: 0 documents, 0 bytes\n"
    assert holdfast("index", str(shelf))[0] == 0
    assert holdfast("quota")[1].startswith("default: 3 documents, ")
    assert holdfast("quota", "set")[0] == 2


def test_index_and_retry_take_a_limit(staff, shelf, holdfast):  # noqa: F811
    """A retry has the limit of before unless another is given; with enough it succeeds."""
    code, out, _ = holdfast("index", str(shelf), "--max-cost", "0")
    assert (code, "[over_max_cost]" in out) == (1, True)
    failed = json.loads(holdfast("documents", "list", "--json")[1])
    subject = f"document:{failed[0]['id']}"

    def ended():
        documents = json.loads(holdfast("documents", "list", "--json")[1])
        return {each["id"]: each for each in documents}[failed[0]["id"]]["index_status"]

    for more, expected in (((), "failed"), (("--max-cost", "1"), "success")):
        assert holdfast("retry", subject, *more)[0] == 0
        until(lambda: ended() in {"failed", "success"}, 60, "nobody took it")
        assert ended() == expected


def test_calls_without_a_price_are_counted_and_said(installed, shelf, holdfast, monkeypatch):  # noqa: F811
    """The last line says unpriced instead of $0.00, and scripts get the number."""
    monkeypatch.setenv("HOLDFAST_EMBEDDING_MODEL", "a-model-of-the-house")
    with contextlib.closing(BackgroundWorker()):
        code, out, _ = holdfast("index", str(shelf))
        assert (code, "4 paid, 0 reused" in out) == (0, True)
        assert "tokens, unpriced, $0.00 saved" in out
        (shelf / "delta.txt").write_text("Delta is new.")
        assert json.loads(holdfast("index", str(shelf), "--json")[1])["unpriced"] == 1
