"""The command line: what it prints, what it changes, and what its exit codes mean."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from holdfast import __version__, cli
from holdfast.core.errors import WorkError
from holdfast.core.records import Ask, Slice
from holdfast.core.states import CallState
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.pay import Call
from holdfast.store.features import open_database
from holdfast.store.money import orders
from holdfast.store.views import reads
from holdfast.testing.meter import Meter
from holdfast.testing.prices import PRICES


def run(work):
    """Pay for the text of the subject; fail if there is none."""
    if not work.content:
        raise WorkError("there is no text; upload it again", code="no_text")
    work.pay([Call("meter", "embeddings", "text-embedding-3-small", work.content)])


@pytest.fixture
def install(database_url, monkeypatch, tmp_path):
    """An engine on a fresh database that the command line is pointed at."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", database_url)
    database = open_database(database_url)
    with Meter() as meter, closing(meter.provider(meter.profile(deadline=1.0))) as provider:
        parts = EngineDependencies(
            kinds=[Kind("index", run=run), Kind("qa", run=run)],
            providers={"meter": provider},
            prices=PRICES,
            policy=Policy(in_doubt="park", parked_delay=0.2),
        )
        engine = Engine(database, parts)
        engine.meter = meter
        yield engine
    database.close()


@pytest.fixture
def holdfast(monkeypatch, capsys):
    """`holdfast("status")` runs a command in this process; answers exit code, output and complaint."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["holdfast", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call


def test_help_is_quick_and_imports_no_database(tmp_path):
    """`--help` and `--version` load neither SQLAlchemy nor pydantic nor numpy."""
    code = (
        "import sys; from holdfast import cli\n"
        "try: cli.main()\n"
        "except SystemExit: print(sorted({'sqlalchemy', 'pydantic', 'numpy'} & set(sys.modules)))"
    )
    for word in ("--help", "--version"):
        began = time.monotonic()
        result = subprocess.run(
            [sys.executable, "-c", code, word], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert result.stdout.endswith("[]\n")
        assert time.monotonic() - began < 10
    assert f"holdfast {__version__}\n" in result.stdout


def test_a_command_on_a_database_imports_neither_alembic_nor_redis(sqlite_url):
    """They would be a fifth of its start; only `migrate` and leases in Redis need them."""
    code = (
        "import sys; from holdfast import cli\n"
        "try: cli.main()\n"
        "finally: print(sorted({'alembic', 'redis'} & set(sys.modules)), file=sys.stderr)"
    )
    environment = {**os.environ, "HOLDFAST_DATABASE_URL": sqlite_url}
    result = subprocess.run(
        [sys.executable, "-c", code, "status"], capture_output=True, text=True, check=True, env=environment
    )
    assert result.stderr == "[]\n"


def test_a_database_that_is_not_there_yet_says_what_to_run(holdfast, monkeypatch, tmp_path):
    """Exit code 4 and one line; `migrate` makes it, folder and all; then the same command works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "a/b"))
    code, out, err = holdfast("status")
    assert (code, out) == (4, "")
    assert err.endswith("run: holdfast migrate [schema_mismatch]\n")
    assert not (tmp_path / "a").exists()
    assert holdfast("migrate")[0] == 0
    assert holdfast("status")[0] == 0


@pytest.mark.parametrize("command", ["status", "migrate"])
def test_a_database_that_does_not_answer_is_one_line(holdfast, monkeypatch, tmp_path, command):
    """Exit code 4, no traceback and no password."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://anna:sesame@127.0.0.1:1/none")
    code, _, err = holdfast(command)
    assert (code, err.count("\n")) == (4, 1)
    assert "[database_unavailable]" in err
    assert "sesame" not in err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("why", "nonsense"), 2, "[bad_subject]"),
        (("why", "document:1"), 5, "[unknown_subject]"),
        (("retry", "document:1"), 5, "[unknown_subject]"),
        (("cancel", "document:1"), 5, "[unknown_subject]"),
        (("orders", "resolve", "none", "--charged"), 5, "[unknown_order]"),
        (("orders", "resolve", "none"), 2, "Missing option"),
        (("migrate", "--to", "nowhere"), 2, "[bad_revision]"),
        (("import-documents", "--from", "mysql://host/name"), 2, "[bad_database_url]"),
        (("dance",), 2, "No such command"),
    ],
)
def test_mistakes_have_their_exit_codes(install, holdfast, words, code, said):
    """2 for usage, 5 for what is not there; the reason is on standard error, and nothing on the other."""
    got, out, err = holdfast(*words)
    assert (got, out) == (code, "")
    assert said in err


def test_a_misspelt_setting_is_an_error_of_usage(install, holdfast, monkeypatch):
    """Exit code 2, and the closest name."""
    monkeypatch.setenv("HOLDFAST_LEASE_TLL", "3")
    code, _, err = holdfast("status")
    assert code == 2
    assert "HOLDFAST_LEASE_TTL [bad_setting]" in err


def test_status_tells_lanes_runs_orders_and_the_bill(install, holdfast):
    """For people in words, for scripts as one JSON document."""
    requested = install.request(Ask("index", "document:1", content="a"))
    code, out, _ = holdfast("status")
    assert code == 0
    assert "document:1" in out
    body = json.loads(holdfast("status", "--json")[1])
    assert [(lane["lane"], lane["queued"]) for lane in body["lanes"]] == [
        ("interactive", 0),
        ("bulk", 1),
        ("follow-up", 0),
    ]
    assert [run["run_id"] for run in body["live"]] == [requested.run_id]
    assert (body["unsettled"], body["bill"]["total"]) == ([], 0)


@pytest.mark.g6
def test_why_tells_the_story_in_words(install, holdfast):
    """Who asked, what was refused, who worked, what it cost, how it failed and what to do."""
    install.request(Ask("index", "document:1", content="a", actor="anna"))
    install.request(Ask("index", "document:1", content="a", actor="ben"))
    install.run_until_idle()
    install.request(Ask("index", "document:1", content="", actor="anna"))
    install.run_until_idle()
    code, out, _ = holdfast("why", "document:1")
    assert code == 0
    for said in (
        "document:1 (index, tenant default) is failed; generation 1 stays searchable",
        "first indexing (requested by anna)",
        "rejected as a duplicate: the same work is already queued or running (requested by ben)",
        f"{install.owner} published the generation",
        "paid 1 call",
        "no_text: there is no text; upload it again",
        "To continue: fix the cause, then holdfast retry document:1.",
    ):
        assert said in out
    (story,) = json.loads(holdfast("why", "document:1", "--json")[1])
    assert [run["run"]["generation"] for run in story["story"]["runs"]] == [2, 1]


def test_status_and_why_say_which_phase_a_run_is_in(database_url, install, holdfast):
    """Counts are those of the phase, named by its number; a run that has ended says how many it had."""
    kind = Kind(
        "index",
        lambda _: None,
        plan=lambda _: [Slice({})] * 3,
        plan_next=lambda work: [Slice({})] * 2 * (work.phase < 2),
    )
    engine = Engine(install.db, EngineDependencies(kinds=[kind]))
    engine.request(Ask("index", "document:7"))
    engine.work_off(most=6)  # a plan and its three slices, then a plan and one of its two
    assert "phase 2: 1/2" in holdfast("status")[1]
    assert ", phase 2" in holdfast("why", "document:7")[1]
    engine.run_until_idle()
    assert ", 2 phases" in holdfast("why", "document:7")[1]


def test_several_kinds_of_one_subject_are_told_apart(install, holdfast):
    """`why` tells all of them; what changes something wants to know which."""
    install.request(Ask("index", "document:1", content="a"))
    install.request(Ask("qa", "document:1", content="a"))
    assert "(qa, tenant default)" in holdfast("why", "document:1")[1]
    code, _, err = holdfast("cancel", "document:1")
    assert (code, "index, qa [several_kinds]" in err) == (2, True)
    assert holdfast("cancel", "document:1", "--kind", "qa")[0] == 0


def test_cancel_ends_the_live_run_and_says_when_there_is_none(install, holdfast):
    """0 and what stays published; the second time 3."""
    install.request(Ask("index", "document:1", content="a"))
    assert holdfast("cancel", "document:1")[:2] == (
        0,
        "cancelled generation 1 of document:1; nothing was published before\n",
    )
    code, _, err = holdfast("cancel", "document:1")
    assert (code, "not_indexed [nothing_to_cancel]" in err) == (3, True)


@pytest.mark.g6
def test_retry_asks_again_and_refuses_a_duplicate(install, holdfast):
    """Failed: accepted. Queued: duplicate, exit code 3. Succeeded: unchanged and 0, unless forced."""
    install.request(Ask("index", "document:1", content=""))
    install.run_until_idle()
    assert holdfast("retry", "document:1")[:2] == (0, "accepted: generation 2 of document:1 is queued\n")
    code, out, _ = holdfast("retry", "document:1", "--json")
    assert (code, json.loads(out)["disposition"]) == (3, "duplicate")
    install.request(Ask("index", "document:1", content="a"))
    install.run_until_idle()
    code, out, _ = holdfast("retry", "document:1")
    assert (code, out.split(":")[0]) == (0, "unchanged")
    assert holdfast("retry", "document:1", "--force")[1].startswith("accepted: generation 4")


def test_sweep_once_does_one_round(install, holdfast):
    """It says what it found, and ends."""
    install.request(Ask("index", "document:1", content="a"))
    assert holdfast("sweep", "--once")[:2] == (
        0,
        "swept: tasks due 1 in bulk; orders repaired 0; runs repaired 0\n",
    )
    assert json.loads(holdfast("sweep", "--once", "--json")[1])["won"] == []


@pytest.mark.g5
def test_the_bill_shows_what_was_paid_saved_and_refused(install, holdfast):
    """A duplicate is refused, a known text is free, and the sum is in dollars."""
    for subject in ("document:1", "document:1", "document:2"):
        install.request(Ask("index", subject, content="a text"))
    install.run_until_idle()
    bill = json.loads(holdfast("bill", "--json")[1])
    sums = bill["sums"]
    assert (sums["orders"], sums["calls"], sums["reused_calls"], sums["duplicates"]) == (1, 1, 1, 1)
    assert bill["total"] == sums["paid"] == sums["refused"] == sums["saved"] > 0
    assert "1 rejected duplicate" in holdfast("bill")[1]
    assert "nothing has been charged yet" in holdfast("bill", "--tenant", "nobody")[1]


@pytest.mark.g5
@pytest.mark.parametrize(("word", "state"), [("--charged", "in_doubt"), ("--not-charged", "void")])
def test_a_parked_order_waits_until_a_person_resolves_it(install, holdfast, word, state):
    """`orders` shows it, `resolve` decides, a second decision is refused, and the work then ends."""
    install.meter.plan(script=["charge_then_cut"])
    install.request(Ask("index", "document:1", content="a text"))
    install.work_off()
    (parked,) = json.loads(holdfast("orders", "--state", "parked", "--json")[1])
    assert (parked["subject"], parked["calls"]) == ("document:1", 1)
    assert "parked orders wait for you" in holdfast("orders")[1]
    assert "holdfast orders --state parked" in holdfast("why", "document:1")[1]
    code, out, _ = holdfast("orders", "resolve", parked["id"], word)
    assert (code, parked["id"] in out) == (0, True)
    assert holdfast("orders", "--json")[1].count(parked["id"]) == (state == "in_doubt")
    install.run_until_idle()
    assert reads.head(install.db, "default", "index", "document:1").status == "success"
    assert holdfast("orders", "resolve", parked["id"], word)[0] == 3
    assert orders.recover(install.db, parked["id"]) is (
        CallState.SETTLED if state == "in_doubt" else CallState.VOID
    )


def test_documents_of_another_system_are_taken_over(install, holdfast, tmp_path):
    """Active ones are published, the others not indexed, and a second import changes nothing."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as old:
        old.execute("CREATE TABLE documents (id INTEGER, is_active INTEGER)")
        old.executemany("INSERT INTO documents VALUES (?, ?)", [(1, 1), (2, 0)])
        old.commit()
    words = ("import-documents", "--from", f"sqlite:///{tmp_path}/old.db", "--json")
    assert json.loads(holdfast(*words)[1]) == {"active": 1, "idle": 1, "existing": 0}
    assert json.loads(holdfast(*words)[1]) == {"active": 0, "idle": 0, "existing": 2}
    assert "imported as published" in holdfast("why", "document:1")[1]
    for imported in ("document:1", "document:2"):
        code, _, err = holdfast("retry", imported)
        assert (code, "[no_content]" in err) == (3, True)
