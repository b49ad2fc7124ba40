"""What a program imports from `holdfast`: documented names, quick to import, that work from a script."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import BadRequestError, Call, Chunk, Kind, SchemaError, StoreUnavailableError, WorkError

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("PIL", "celery", "fastapi", "kombu", "numpy", "psycopg", "pydantic", "redis", "typer", "wordllama")


def copy(work):
    if work.content == "bad":
        raise WorkError("it is bad; send another", code="bad_content")
    work.pay([Call("meter", "embeddings", "text-embedding-3-small", work.content)])
    work.stage([Chunk(number, f"{work.content} {number}") for number in range(2500)])


def in_python(program):
    """What the program prints, in a process of its own."""
    command = [sys.executable, "-c", program]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # an installed package has its bytecode
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout


def test_a_script_requests_works_and_reads(database_url, provider, meter):
    """The same request is paid for once; all its chunks are visible, in order; what failed says why."""
    with holdfast.open(database_url, kinds=[Kind("copy", copy)], providers={"meter": provider}) as hold:
        results = [hold.request("copy", "document:1", content="one") for _ in range(2)]
        hold.request("copy", "document:2", content="bad")
        ended = {task.subject: task.ending for task in hold.run_until_idle()}
        assert [each.disposition for each in results] == ["accepted", "duplicate"]
        assert ended == {"document:1": "published", "document:2": "failed"}
        assert [chunk.position for chunk in hold.visible_chunks("copy", "document:1")] == list(range(2500))
        state, failed = hold.read("copy", "document:1"), hold.read("copy", "document:2")
        assert (state.status, state.published_generation, state.error_code) == ("success", 1, None)
        assert (failed.status, failed.error_code) == ("failed", "bad_content")
        assert hold.read("copy", "document:3") is None
        assert hold.delete("document:1")
        assert hold.visible_chunks("copy", "document:1") == []
    assert meter.totals().charges == 1


def test_a_request_can_be_cancelled_and_limited(sqlite_url):
    """A live run ends when it is cancelled, once; a kind that is not known is refused in one line."""
    with holdfast.open(sqlite_url, kinds=[Kind("copy", copy)]) as hold:
        hold.request("copy", "document:1", content="one", max_cost=0.5)
        assert hold.cancel("copy", "document:1")
        assert not hold.cancel("copy", "document:1")
        assert hold.read("copy", "document:1").status == "idle"
        with pytest.raises(BadRequestError, match="kind 'other' is not known here"):
            hold.request("other", "document:1")
        with pytest.raises(holdfast.NotFoundError, match="copy of document:9 was never requested"):
            hold.cancel("copy", "document:9")


def test_open_makes_the_tables_or_leaves_all_as_it_is(tmp_path):
    """By default the database is created; with migrate=False a missing one stays missing."""
    file = tmp_path / "new.db"
    with pytest.raises(SchemaError, match=r"there is no database at .*new\.db"):
        holdfast.open(f"sqlite:///{file}", migrate=False)
    assert not file.exists()
    holdfast.open(f"sqlite:///{file}").close()
    holdfast.open(f"sqlite:///{file}", migrate=False).close()
    with pytest.raises(
        StoreUnavailableError, match=r"^the database is unreachable \(.+\); check that it is running"
    ):
        holdfast.open("postgresql://nobody@127.0.0.1:1/none")


def test_every_public_name_is_there_and_documented():
    """Each name of `__all__` can be imported, and docs/reference/python.md has it; no name is there twice."""
    page = (ROOT / "docs/reference/python.md").read_text()
    names = holdfast.__all__
    assert len(set(names)) == len(names)
    assert [name for name in names if getattr(holdfast, name, None) is None] == []
    assert [name for name in names if not re.search(rf"`(holdfast\.)?{name}\b", page)] == []
    assert set(names) <= set(dir(holdfast))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    """As with any other module."""
    with pytest.raises(AttributeError, match="module 'holdfast' has no attribute 'nothing'"):
        holdfast.nothing  # noqa: B018 - asking for it is the test


def test_importing_it_is_quick_and_loads_nothing_heavy():
    """Beyond SQLAlchemy, `import holdfast` and the names of a kind cost at most 0.35 s of processor time."""
    program = (
        "import sys, time, sqlalchemy; before = time.process_time(); import holdfast; "
        "from holdfast import Call, Chunk, HoldfastError, Kind, Slice, Work, WorkError; "
        f"print(time.process_time() - before, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    in_python(program)  # the first time, bytecode may have to be written
    seconds, heavy = min(
        (in_python(program).split(" ", 1) for _ in range(3)), key=lambda each: float(each[0])
    )
    assert heavy.strip() == "[]"
    assert float(seconds) <= 0.35
